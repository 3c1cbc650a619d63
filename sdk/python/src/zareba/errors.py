"""Why something could not be done, in the classes that every client of Zareba tells apart.

A command that fails is not an error: it is a result with an exit code. See
:meth:`zareba.Result.check` for those who want it to be one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, Optional, Type

if TYPE_CHECKING:
    from .models import ToolOutcome
    from .result import Result

__all__ = [
    "BusyError",
    "ClosedError",
    "CommandError",
    "DisconnectedError",
    "InternalError",
    "InvalidError",
    "LocalFileError",
    "LocalFileNotFoundError",
    "LocalPermissionError",
    "NotFoundError",
    "NotTextError",
    "PermissionDeniedError",
    "StoppedError",
    "TimedOutError",
    "ToolArgumentsError",
    "ToolError",
    "ToolLostError",
    "ToolNotFoundError",
    "ToolTimedOutError",
    "UnsupportedError",
    "ZarebaError",
]

_KEY_HINT = "pass `Client(url=…, key=…)` as `client=`, or set `ZAREBA_API_KEY`"
"""What a caller without a key can do: the server's own hint is about HTTP."""
_SHOWN_MAX = 500
"""Characters that are shown of an answer that is no error body of ours."""


class ZarebaError(Exception):
    """What went wrong, for people as text and for programs as attributes."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        hint: Optional[str] = None,
        request_id: Optional[str] = None,
        status: Optional[int] = None,
        may_have_happened: bool = False,
    ) -> None:
        # Some of these are errors of Python's own as well, which take other arguments.
        Exception.__init__(self, message)
        self.message = message
        self.code = code
        """The server's stable word for it, or the class in small letters."""
        self.hint = hint
        """What to do about it, when that is known."""
        self.request_id = request_id
        """The name of the request in the server's log."""
        self.status = status
        """The HTTP status of the answer, when there was one."""
        self.may_have_happened = may_have_happened
        """Whether the server may have acted although this error came back."""
        self.in_doubt = False
        """Whether an earlier try of the same request may have been acted on."""

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class DisconnectedError(ZarebaError):
    """The server, or the sandbox behind it, cannot be reached."""


class NotFoundError(ZarebaError):
    """There is nothing with that name."""


class PermissionDeniedError(ZarebaError):
    """The key, or the permissions of a file, do not allow it."""


class TimedOutError(ZarebaError):
    """It took longer than allowed."""


class InvalidError(ZarebaError):
    """What was asked for makes no sense."""


class BusyError(ZarebaError):
    """It cannot be done now, in the state that things are in."""


class ClosedError(ZarebaError):
    """The sandbox has ended."""


class StoppedError(ZarebaError):
    """It was stopped before its turn came, and was not run."""


class UnsupportedError(ZarebaError):
    """This runtime, or this server, cannot do that at all."""


class InternalError(ZarebaError):
    """A fault of the server, or an answer that makes no sense."""


class NotTextError(InvalidError, UnicodeDecodeError):
    """A file that was read as text is none; Python's `UnicodeDecodeError` as well."""

    def __init__(self, message: str, told: UnicodeDecodeError) -> None:
        UnicodeDecodeError.__init__(
            self, told.encoding, told.object, told.start, told.end, told.reason
        )
        ZarebaError.__init__(
            self,
            message,
            code="invalid",
            hint='use `read_bytes`, or `errors="replace"`',
        )


class LocalFileError(ZarebaError, OSError):
    """A file of this machine, and not of the sandbox; Python's `OSError` as well."""

    def __init__(self, message: str, told: OSError) -> None:
        ZarebaError.__init__(self, message, code="local_file")
        self.errno, self.strerror = told.errno, told.strerror
        self.filename, self.filename2 = told.filename, told.filename2


class LocalFileNotFoundError(LocalFileError, NotFoundError, FileNotFoundError):
    """There is no such file on this machine."""


class LocalPermissionError(LocalFileError, PermissionDeniedError, PermissionError):
    """The permissions of a file of this machine do not allow it."""


class CommandError(ZarebaError):
    """A command did not exit with 0; raised by :meth:`zareba.Result.check` only."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message, code="command_failed")
        self.result = result
        """What came of the command."""


class ToolError(ZarebaError):
    """A tool failed: it raised, took too long, or returned what cannot be said in JSON."""

    def __init__(self, message: str, outcome: ToolOutcome) -> None:
        error = outcome.error
        super().__init__(message, code=error.class_ if error else "", may_have_happened=True)
        self.tool = outcome.name
        """The tool."""
        self.kind = error.type if error else ""
        """The class of the exception that it raised, or a word of ours such as `timed_out`."""
        self.detail = error.message if error else ""
        """What the exception said."""
        self.traceback = error.traceback if error else None
        """Where the exception came from, inside the sandbox."""
        self.stdout = outcome.stdout
        """What it had printed."""
        self.stderr = outcome.stderr
        """What it had printed as errors."""


class ToolTimedOutError(ToolError, TimedOutError):
    """A tool took longer than allowed, and was ended."""


class ToolNotFoundError(ToolError, NotFoundError):
    """There is no tool with that name."""


class ToolArgumentsError(ToolError, InvalidError):
    """The arguments are not those that the tool takes."""


class ToolLostError(ToolError, DisconnectedError):
    """What ran the tool has died, and nobody knows how far it had come."""


CLASSES: Dict[str, Type[ZarebaError]] = {
    "disconnected": DisconnectedError,
    "not_found": NotFoundError,
    "permission": PermissionDeniedError,
    "timeout": TimedOutError,
    "invalid": InvalidError,
    "busy": BusyError,
    "unsupported": UnsupportedError,
    "internal": InternalError,
}
"""The classes by the words that the contract has for them."""

CLASS_OF_CODE: Dict[str, Type[ZarebaError]] = {
    "invalid_request": InvalidError,
    "limit_exceeded": InvalidError,
    "invalid_path": InvalidError,
    "name_too_long": InvalidError,
    "too_many_links": InvalidError,
    "unauthorized": PermissionDeniedError,
    "forbidden": PermissionDeniedError,
    "path_outside_root": PermissionDeniedError,
    "permission_denied": PermissionDeniedError,
    "guard_denied": PermissionDeniedError,
    "read_only_file_system": PermissionDeniedError,
    "not_found": NotFoundError,
    "program_not_found": NotFoundError,
    "program_not_executable": PermissionDeniedError,
    "bad_directory": InvalidError,
    "method_not_allowed": InvalidError,
    "request_timeout": TimedOutError,
    "conflict": BusyError,
    "exists": BusyError,
    "directory_not_empty": BusyError,
    "body_too_large": InvalidError,
    "file_too_large": InvalidError,
    "uri_too_long": InvalidError,
    "unsupported_media_type": InvalidError,
    "range_not_satisfiable": InvalidError,
    "misdirected_request": PermissionDeniedError,
    "idempotency_mismatch": InvalidError,
    "not_a_regular_file": InvalidError,
    "is_a_directory": InvalidError,
    "not_a_directory": InvalidError,
    "other_file_system": InvalidError,
    "unsupported": UnsupportedError,
    "too_many_requests": BusyError,
    "quota_exceeded": BusyError,
    "internal": InternalError,
    "log_io_error": InternalError,
    "start_failed": InternalError,
    "bad_gateway": DisconnectedError,
    "overloaded": BusyError,
    "shutting_down": DisconnectedError,
    "backend_unavailable": DisconnectedError,
    "too_many_open_files": BusyError,
    "file_busy": BusyError,
    "timeout": TimedOutError,
    "log_full": BusyError,
    "disk_full": BusyError,
    "disk_quota_exceeded": BusyError,
}
"""What each code of the contract belongs to; a test compares it with the server's own table."""


def refusal(status: int, document: bytes, request_id: Optional[str]) -> ZarebaError:
    """The error that an answer which is no success stands for."""
    detail = _detail(document)
    code = str(detail.get("code") or "")
    made = CLASS_OF_CODE.get(code) or _class_of_status(status)
    message = str(detail.get("message") or f"the server answered with status {status}")
    hint = _KEY_HINT if code == "unauthorized" else detail.get("hint")
    return made(
        message[:_SHOWN_MAX],
        code=code or _word_of(made),
        hint=str(hint)[:_SHOWN_MAX] if hint else None,
        request_id=str(detail.get("request_id") or request_id or "") or None,
        status=status,
        # These were turned away at the door.
        may_have_happened=status >= 500 and status not in (503, 507),
    )


_CLASS_OF_ERROR_ID: Dict[str, Type[ZarebaError]] = {
    "guard_denied": PermissionDeniedError,
    "stopped": StoppedError,
}
"""What the words of observations mean that are no class of the contract."""


def of_local_file(error: OSError) -> ZarebaError:
    """The error of ours for one that a file of this machine has caused."""
    if isinstance(error, ZarebaError):
        return error
    made = LocalFileError
    if isinstance(error, FileNotFoundError):
        made = LocalFileNotFoundError
    elif isinstance(error, PermissionError):
        made = LocalPermissionError
    reason = (error.strerror or str(error)).lower()
    named = f"`{error.filename}`" if error.filename is not None else "a file"
    return made(f"{named} of this machine: {reason}", error)


def of_observation(error_id: str, text: str) -> ZarebaError:
    """The error that an observation tells of, when there was nothing else to tell."""
    message = text[len("ERROR:") :].strip() if text.startswith("ERROR:") else text
    made = CLASSES.get(error_id) or _CLASS_OF_ERROR_ID.get(error_id, InvalidError)
    return made(message, code=error_id or _word_of(made))


_TOOL_CLASSES: Dict[str, Type[ToolError]] = {
    "timed_out": ToolTimedOutError,
    "not_found": ToolNotFoundError,
    "invalid_arguments": ToolArgumentsError,
    "gone": ToolLostError,
}
"""What the words mean that stand where an exception has the name of its class."""


def of_tool(outcome: ToolOutcome) -> ToolError:
    """The error that a failed call of a tool stands for."""
    failure = outcome.error
    if failure is None:
        return ToolError(f"the tool `{outcome.name}` failed", outcome)
    if failure.traceback is None:
        return _TOOL_CLASSES.get(failure.type, ToolError)(failure.message, outcome)
    raised = f"{failure.type}: {failure.message}" if failure.message else failure.type
    return ToolError(f"the tool `{outcome.name}` raised {raised}", outcome)


def _detail(document: bytes) -> Dict[str, Any]:
    """The part of an error body that tells what went wrong; nothing of anybody else's body."""
    try:
        body = json.loads(document)
    except ValueError:
        return {}
    detail = body.get("error") if isinstance(body, dict) else None
    return detail if isinstance(detail, dict) else {}


def _class_of_status(status: int) -> Type[ZarebaError]:
    """For codes of later versions, and for proxies on the way."""
    if status in (401, 403, 421):
        return PermissionDeniedError
    if status == 404:
        return NotFoundError
    if status in (405, 501):
        return UnsupportedError
    if status in (408, 504):
        return TimedOutError
    if status in (409, 429, 503, 507):
        return BusyError
    if status == 502:
        return DisconnectedError
    return InvalidError if 300 <= status < 500 else InternalError


def _word_of(made: Type[ZarebaError]) -> str:
    return next(word for word, known in CLASSES.items() if known is made)
