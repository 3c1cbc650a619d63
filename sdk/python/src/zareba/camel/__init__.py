"""CAMEL's runtimes on sandboxes: the same names, constructors and return values, behind walls.

`from zareba.camel import RemoteHttpRuntime` in place of `from camel.runtimes import ...` is all
that a program has to change. With `camel-ai` installed the classes here are subclasses of its own
`BaseRuntime`; without it they work as well, on plain functions.
"""

from ._base import BaseRuntime
from ._errors import GuardDeniedError, LoadError, NotBuiltError, TaskFailedError
from ._tasks import ExecResult, TaskConfig, TaskResult
from ._tool import FunctionTool
from .docker import DockerRuntime, UbuntuDockerRuntime
from .guard import LLMGuardRuntime, Verdict
from .remote import RemoteHttpRuntime
from .runtime import ZarebaRuntime

__all__ = [
    "BaseRuntime",
    "DockerRuntime",
    "ExecResult",
    "FunctionTool",
    "GuardDeniedError",
    "LLMGuardRuntime",
    "LoadError",
    "NotBuiltError",
    "RemoteHttpRuntime",
    "TaskConfig",
    "TaskFailedError",
    "TaskResult",
    "UbuntuDockerRuntime",
    "Verdict",
    "ZarebaRuntime",
]
