"""Sandboxes for agents: run commands, change files and watch what happens.

from zareba import Sandbox

with Sandbox.create() as sandbox:
    print(sandbox.run("echo hello").output)
"""

from ._async.client import AsyncClient
from ._async.command import AsyncCommand
from ._async.env import AsyncEnv
from ._async.files import AsyncFiles, AsyncWatch
from ._async.messages import AsyncEvents
from ._async.sandbox import AsyncSandbox
from ._async.shell import AsyncShell
from ._http import VERSION as __version__
from ._sync.client import Client
from ._sync.command import Command
from ._sync.env import Env
from ._sync.files import Files, Watch
from ._sync.messages import Events
from ._sync.sandbox import Sandbox
from ._sync.shell import Shell
from .errors import (
    BusyError,
    CommandError,
    DisconnectedError,
    InternalError,
    InvalidError,
    NotFoundError,
    PermissionDeniedError,
    TimedOutError,
    UnsupportedError,
    ZarebaError,
)
from .models import (
    ChangeKind,
    Event,
    EventKind,
    FileChange,
    FileEntry,
    FileKind,
    FileStatus,
    Idle,
    Port,
    Session,
    SessionState,
)
from .result import Edit, Result

__all__ = [
    "AsyncClient",
    "AsyncCommand",
    "AsyncEnv",
    "AsyncEvents",
    "AsyncFiles",
    "AsyncSandbox",
    "AsyncShell",
    "AsyncWatch",
    "BusyError",
    "ChangeKind",
    "Client",
    "Command",
    "CommandError",
    "DisconnectedError",
    "Edit",
    "Env",
    "Event",
    "EventKind",
    "Events",
    "FileChange",
    "FileEntry",
    "FileKind",
    "FileStatus",
    "Files",
    "Idle",
    "InternalError",
    "InvalidError",
    "NotFoundError",
    "PermissionDeniedError",
    "Port",
    "Result",
    "Sandbox",
    "Session",
    "SessionState",
    "Shell",
    "TimedOutError",
    "UnsupportedError",
    "Watch",
    "ZarebaError",
    "__version__",
]
