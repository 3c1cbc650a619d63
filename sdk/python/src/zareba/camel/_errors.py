"""What can go wrong with CAMEL's runtimes beside what can go wrong with any sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional

from .. import models
from ..errors import InvalidError, PermissionDeniedError, ZarebaError

if TYPE_CHECKING:
    from ._tasks import TaskResult


class NotBuiltError(ZarebaError, RuntimeError):
    """Something needs the sandbox, and there is none yet, or no more."""

    def __init__(self, deed: str) -> None:
        super().__init__(
            f"cannot {deed}: there is no sandbox", code="conflict", hint="call build()"
        )


class LoadError(InvalidError, RuntimeError):
    """Tools could not be loaded inside the sandbox."""

    def __init__(
        self,
        message: str,
        failures: Optional[List[models.ToolLoadFailure]] = None,
        hint: Optional[str] = None,
    ) -> None:
        super().__init__(message, code="invalid", hint=hint)
        self.failures = failures or []
        """What was said of each entrypoint."""


class TaskFailedError(ZarebaError, RuntimeError):
    """A task that was to run before the tools did not exit with 0."""

    def __init__(self, message: str, result: TaskResult, hint: Optional[str] = None) -> None:
        super().__init__(message, code="command_failed", hint=hint)
        self.result = result
        """What came of it."""


class GuardDeniedError(PermissionDeniedError):
    """The guard did not let a call through."""

    def __init__(self, message: str, hint: Optional[str] = None) -> None:
        super().__init__(message, code="guard_denied", hint=hint)


def load_failure(failures: List[models.ToolLoadFailure], hint: str) -> LoadError:
    """The error of entrypoints that could not be loaded."""
    told = "; ".join(f"`{each.entrypoint}`: {each.type}: {each.message}" for each in failures)
    return LoadError(f"tools could not be loaded inside the sandbox: {told}", failures, hint)
