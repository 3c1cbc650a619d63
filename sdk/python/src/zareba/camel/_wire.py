"""The HTTP contract of CAMEL's tool server, the side of the client."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import suppress
from select import POLLIN, poll
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple
from urllib.parse import quote, unquote

from .. import models
from ..errors import DisconnectedError, InternalError, TimedOutError, ToolError, of_tool
from ..result import ToolResult

_LOOK_TIMEOUT = 5.0
"""Seconds that a server has to say that it is there."""
_SHOWN_MAX = 2000
_IDLE_MAX = 64
"""Connections that are kept for later; more than that are closed after their answer."""
_BROKEN = (OSError, http.client.HTTPException)


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    content: bytes


class Wire:
    """A server that speaks CAMEL's contract, ours or theirs, on connections that are kept.

    A call of a tool takes less time than most libraries for HTTP do, so this is the plain module of
    Python, with each request written at once. Any number of threads may ask; each has a connection
    to itself meanwhile.
    """

    def __init__(self, host: str, port: int, key: Optional[str]) -> None:
        host, password = _parted(host)
        key = _sendable("key", (key or password or "").strip())
        host = _sendable("host", host)
        self._address = (host, port)
        named = f"[{host}]" if ":" in host else host
        self.url = f"http://{named}:{port}"
        self._head = f"Host: {named}:{port}\r\nAccept: */*\r\n"
        if key:
            self._head += f"Authorization: Bearer {key}\r\n"
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []

    def close(self) -> None:
        """Closes the connections. Others are made when something is asked again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def endpoints(self) -> Optional[Set[str]]:
        """The names of its tools; nothing when no such server answers."""
        try:
            answer = self._exchange(self._connection(_LOOK_TIMEOUT), "GET", "/health", None)
            told = json.loads(answer.content) if answer.status == http.client.OK else None
        except (*_BROKEN, ValueError):
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
            connection = self._connection(timeout)
        except _BROKEN as error:
            raise DisconnectedError(
                f"the tool server at `{self.url}` cannot be reached: {error}",
                code="disconnected",
                hint="start it, or call build()",
            ) from error
        try:
            answer = self._exchange(connection, "POST", f"/{quote(name)}", content)
        # One of its own until Python 3.10.
        except socket.timeout as error:
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
        if answer.status != http.client.OK:
            raise _failure(name, answer)
        return _result(name, answer)

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: Optional[bytes],
    ) -> Answer:
        head = f"{method} {target} HTTP/1.1\r\n{self._head}"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        is_kept = False
        try:
            connection.sock.sendall(f"{head}\r\n".encode("latin-1") + (body or b""))
            with http.client.HTTPResponse(connection.sock, method=method) as response:
                response.begin()
                answer = Answer(response.status, response.read())
                is_kept = not response.will_close
        finally:
            if is_kept:
                self._keep(connection)
            else:
                connection.close()
        return answer

    def _connection(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        """One that was kept and is still open, or a new one."""
        while True:
            with self._lock:
                kept = self._idle.pop() if self._idle else None
            if kept is None:
                break
            if not _has_ended(kept):
                kept.sock.settimeout(timeout)
                return kept
            kept.close()
        connection = http.client.HTTPConnection(*self._address, timeout=timeout)
        connection.connect()
        return connection

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < _IDLE_MAX:
                self._idle.append(connection)
                return
        connection.close()


def _has_ended(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has closed it: nothing else can come where nothing was asked."""
    looked = poll()
    with suppress(OSError, ValueError):
        looked.register(connection.sock, POLLIN)
        return bool(looked.poll(0))
    return True


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
    kind = "not_found" if answer.status == http.client.NOT_FOUND else "error"
    message = answer.content.decode(errors="replace")[:_SHOWN_MAX]
    failure = models.ToolFailure.model_validate(
        {"type": kind, "class": "internal", "message": message}
    )
    return of_tool(models.ToolOutcome(name=name, error=failure))
