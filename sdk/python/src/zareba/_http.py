"""What both clients have in common of HTTP: addresses, time, and what an exception means."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Dict, Type, TypeVar

import httpcore
import httpx
from pydantic import BaseModel, ValidationError

from . import errors
from ._http1 import Answer
from ._place import Place

VERSION = "0.1.0"
CONNECT_TIMEOUT = 10.0
STREAM_SILENCE_MAX = 90.0
"""Seconds without a byte on a stream; the server fills silence more often than that."""
PIECE_BYTES = 256 * 1024
"""How much of a file is read and sent at a time."""
_CONNECTIONS_MAX = 200
_ADDRESSES_MAX = 256

FAILURES = (
    httpx.HTTPError,
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
)
"""What goes wrong with a request on its way: the library's, and those of our own connections."""
_UNCONNECTED = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
    httpcore.PoolTimeout,
)

Document = TypeVar("Document", bound=BaseModel)


def options(place: Place) -> Dict[str, Any]:
    """How to make an HTTP client for a place, beside its transport."""
    return {"trust_env": not place.is_local, "follow_redirects": False}


def headers(place: Place) -> Dict[str, str]:
    """What every request to a place carries."""
    made = {"user-agent": f"zareba-python/{VERSION}", "accept": "*/*"}
    if place.key:
        made["authorization"] = f"Bearer {place.key}"
    return made


@lru_cache(maxsize=_ADDRESSES_MAX)
def address(base: str, target: str) -> httpx.URL:
    """A parsed address: most requests go where one has gone before."""
    return httpx.URL(base + target)


def transport_options(place: Place) -> Dict[str, Any]:
    """How to make its transport, when that is a socket in the file system."""
    limits = httpx.Limits(max_connections=_CONNECTIONS_MAX, max_keepalive_connections=20)
    return {"uds": place.socket, "limits": limits}


def within(seconds: float) -> httpx.Timeout:
    """Time for an answer to come."""
    return httpx.Timeout(seconds, connect=min(CONNECT_TIMEOUT, seconds), pool=seconds)


def failure(place: Place, error: Exception) -> errors.ZarebaError:
    """The error that an exception of the HTTP libraries stands for."""
    reason = str(error) or type(error).__name__
    if isinstance(error, _UNCONNECTED):
        return errors.DisconnectedError(
            f"the server at `{place.url}` cannot be reached: {reason}",
            code="disconnected",
            hint="is it running, and is this the right address?",
        )
    # What was not written whole, on connections of our own, has not been acted on.
    is_written = not isinstance(error, (httpcore.WriteError, httpcore.WriteTimeout))
    if isinstance(error, (httpx.TimeoutException, httpcore.TimeoutException)):
        return errors.TimedOutError(
            f"the server at `{place.url}` did not answer in time",
            code="timeout",
            may_have_happened=is_written,
        )
    return errors.DisconnectedError(
        f"the connection to the server at `{place.url}` broke: {reason}",
        code="disconnected",
        may_have_happened=is_written,
    )


def answer(response: httpx.Response) -> Answer:
    """An answer of the library that was read whole."""
    return Answer(response.status_code, response.headers, response.content)


def refusal(answer: Answer) -> errors.ZarebaError:
    """The error that an answer stands for which is no success."""
    return errors.refusal(answer.status, answer.content, answer.headers.get("x-request-id"))


def parse(kind: Type[Document], content: bytes) -> Document:
    """An answer as a document of one kind."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise nonsense(str(error)) from error


def checked(kind: Type[Document], value: Any) -> Document:
    """A part of an answer as a document of one kind."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise nonsense(str(error)) from error


def parse_object(content: bytes) -> Dict[str, Any]:
    """An answer as any JSON object."""
    try:
        # Told to be UTF-8, it is not looked at twice.
        value = json.loads(content.decode())
    except ValueError as error:
        raise nonsense(str(error)) from error
    if not isinstance(value, dict):
        raise nonsense("it is no JSON object")
    return value


def nonsense(problem: str) -> errors.InternalError:
    """The error of an answer that is not what the API says."""
    return errors.InternalError(
        f"the server's answer makes no sense: {problem}", code="internal", may_have_happened=True
    )
