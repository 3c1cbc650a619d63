"""The HTTP contract of CAMEL's tool server, the side of the client."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Dict, List, Optional, Set, Tuple
from urllib.parse import quote, unquote

import httpcore

from .. import models
from .._http1 import Answer
from .._place import Address
from .._sync.connections import Connections
from ..errors import DisconnectedError, InternalError, TimedOutError, ToolError, of_tool
from ..result import ToolResult

_LOOK_TIMEOUT = 5.0
"""Seconds that a server has to say that it is there."""
_SHOWN_MAX = 2000
_UNREACHABLE = (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout)
_BROKEN = (httpcore.NetworkError, httpcore.ProtocolError)
_JSON = {"content-type": "application/json"}


class Wire:
    """A server that speaks CAMEL's contract, ours or theirs. Any number of threads may ask."""

    def __init__(self, host: str, port: int, key: Optional[str]) -> None:
        host, password = _parted(host)
        key = _sendable("key", (key or password or "").strip())
        host = _sendable("host", host)
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.url = f"http://{name}"
        headers = {"accept": "*/*"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        self._connections = Connections(Address(name, host, port), headers)

    def close(self) -> None:
        """Closes the connections. Others are made when something is asked again."""
        self._connections.close()

    def endpoints(self) -> Optional[Set[str]]:
        """The names of its tools; nothing when no such server answers."""
        try:
            answer = self._connections.ask("GET", "/health", {}, None, _LOOK_TIMEOUT)
            told = json.loads(answer.content) if answer.status == HTTPStatus.OK else None
        except (*_BROKEN, httpcore.TimeoutException, ValueError):
            return None
        names = told.get("endpoints") if isinstance(told, dict) else None
        return {str(each) for each in names} if isinstance(names, list) else None

    def call(
        self,
        name: str,
        positional: List[Any],
        named: Dict[str, Any],
        redirect_stdout: bool,
        timeout: Optional[float],
    ) -> ToolResult:
        """Calls a tool. A failure has the text that the server gives it, and no more."""
        body = {"args": positional, "kwargs": named, "redirect_stdout": redirect_stdout}
        content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        try:
            answer = self._connections.ask("POST", f"/{quote(name)}", _JSON, content, timeout)
        except _UNREACHABLE as error:
            raise DisconnectedError(
                f"the tool server at `{self.url}` cannot be reached: {error}",
                code="disconnected",
                hint="start it, or call build()",
            ) from error
        except httpcore.TimeoutException as error:
            raise TimedOutError(
                f"the tool `{name}` has not answered within {timeout} seconds",
                code="timeout",
                may_have_happened=True,
            ) from error
        except _BROKEN as error:
            raise DisconnectedError(
                f"the tool server at `{self.url}` went away before `{name}` had answered: {error}",
                code="disconnected",
                hint="look whether the call has happened before you repeat it",
                may_have_happened=True,
            ) from error
        if answer.status != HTTPStatus.OK:
            raise _failure(name, answer)
        return _result(name, answer)


def _sendable(what: str, text: str) -> str:
    """What stands in the head of a request must not end it, nor begin another."""
    if not all("!" <= character <= "~" for character in text):
        raise ValueError(f"the {what} holds spaces, or letters that are not ASCII")
    return text


def _parted(host: str) -> Tuple[str, Optional[str]]:
    """A host and the password before it, which is how CAMEL's own client is given a token."""
    user, is_there, host = host.rpartition("@")
    return host, unquote(user.partition(":")[2]) if is_there else None


def _result(name: str, answer: Answer) -> ToolResult:
    try:
        told = json.loads(answer.content)
        value = json.loads(told["output"])
    except (ValueError, KeyError, TypeError) as error:
        raise InternalError(f"the answer of `{name}` makes no sense: {error}") from error
    return ToolResult(name, value, str(told.get("stdout", "")), "", False, -1, -1, raw=told)


def _failure(name: str, answer: Answer) -> ToolError:
    kind = "not_found" if answer.status == HTTPStatus.NOT_FOUND else "error"
    message = answer.content.decode(errors="replace")[:_SHOWN_MAX]
    failure = models.ToolFailure.model_validate(
        {"type": kind, "class": "internal", "message": message}
    )
    return of_tool(models.ToolOutcome(name=name, error=failure))
