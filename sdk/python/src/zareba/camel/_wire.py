"""The HTTP contract of CAMEL's tool server, the side of the client."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Set

import httpx

from .. import models
from ..errors import DisconnectedError, InternalError, TimedOutError, ToolError, of_tool
from ..result import ToolResult

_LOOK_TIMEOUT = 5.0
"""Seconds that a server has to say that it is there."""
_SHOWN_MAX = 2000


class Wire:
    """A server that speaks CAMEL's contract, ours or theirs, on connections that are kept."""

    def __init__(self, host: str, port: int, key: Optional[str]) -> None:
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._http = self._new()

    def close(self) -> None:
        """Closes the connections. Others are made when something is asked again."""
        self._http.close()
        self._http = self._new()

    def _new(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self._headers, trust_env=False)

    def endpoints(self) -> Optional[Set[str]]:
        """The names of its tools; nothing when no such server answers."""
        try:
            answer = self._http.get("/health", timeout=_LOOK_TIMEOUT)
            told = answer.json() if answer.is_success else None
        except (httpx.HTTPError, ValueError):
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
        try:
            answer = self._http.post(f"/{name}", json=body, timeout=timeout)
        except httpx.TimeoutException as error:
            raise TimedOutError(
                f"the tool `{name}` has not answered within {timeout} seconds",
                code="timeout",
                may_have_happened=True,
            ) from error
        except httpx.HTTPError as error:
            raise DisconnectedError(
                f"the tool server at `{self.url}` cannot be reached: {error}",
                code="disconnected",
                hint="start it, or call build()",
            ) from error
        if answer.status_code != httpx.codes.OK:
            raise _failure(name, answer)
        return _result(name, answer)


def _result(name: str, answer: httpx.Response) -> ToolResult:
    try:
        told = answer.json()
        value = json.loads(told["output"])
    except (ValueError, KeyError, TypeError) as error:
        raise InternalError(f"the answer of `{name}` makes no sense: {error}") from error
    return ToolResult(name, value, str(told.get("stdout", "")), "", False, -1, -1, raw=told)


def _failure(name: str, answer: httpx.Response) -> ToolError:
    kind = "not_found" if answer.status_code == httpx.codes.NOT_FOUND else "error"
    failure = models.ToolFailure.model_validate(
        {"type": kind, "class": "internal", "message": answer.text[:_SHOWN_MAX]}
    )
    return of_tool(models.ToolOutcome(name=name, error=failure))
