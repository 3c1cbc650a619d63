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
from ._async.program import AsyncProgram
from ._async.sandbox import AsyncSandbox
from ._async.shell import AsyncShell
from ._async.terminal import AsyncTerminal
from ._async.tools import AsyncTools
from ._http import VERSION as __version__
from ._sync.client import Client
from ._sync.command import Command
from ._sync.env import Env
from ._sync.files import Files, Watch
from ._sync.messages import Events
from ._sync.program import Program
from ._sync.sandbox import Sandbox
from ._sync.shell import Shell
from ._sync.terminal import Terminal
from ._sync.tools import Tools
from .errors import (
    BusyError,
    ClosedError,
    CommandError,
    DisconnectedError,
    InternalError,
    InvalidError,
    LocalFileError,
    LocalFileNotFoundError,
    LocalPermissionError,
    NotFoundError,
    NotTextError,
    PermissionDeniedError,
    StoppedError,
    TimedOutError,
    ToolArgumentsError,
    ToolError,
    ToolLostError,
    ToolNotFoundError,
    ToolTimedOutError,
    UnsupportedError,
    ZarebaError,
)
from .models import (
    ChangeKind,
    ChangeList,
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
    TerminalExit,
    Tool,
    WorkspaceChange,
)
from .result import Edit, ProgramOutput, ProgramResult, Result, ToolResult

__all__ = [
    "AsyncClient",
    "AsyncCommand",
    "AsyncEnv",
    "AsyncEvents",
    "AsyncFiles",
    "AsyncProgram",
    "AsyncSandbox",
    "AsyncShell",
    "AsyncTerminal",
    "AsyncTools",
    "AsyncWatch",
    "BusyError",
    "ClosedError",
    "ChangeKind",
    "ChangeList",
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
    "LocalFileError",
    "LocalFileNotFoundError",
    "LocalPermissionError",
    "NotFoundError",
    "NotTextError",
    "PermissionDeniedError",
    "Port",
    "Program",
    "ProgramOutput",
    "ProgramResult",
    "Result",
    "Sandbox",
    "Session",
    "SessionState",
    "Shell",
    "StoppedError",
    "Terminal",
    "TerminalExit",
    "TimedOutError",
    "Tool",
    "ToolArgumentsError",
    "ToolError",
    "ToolLostError",
    "ToolNotFoundError",
    "ToolResult",
    "ToolTimedOutError",
    "Tools",
    "UnsupportedError",
    "Watch",
    "WorkspaceChange",
    "ZarebaError",
    "__version__",
]
