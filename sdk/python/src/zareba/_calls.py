"""The operations of the API as data: what to send, how long to wait, when to send it again.

Nothing here does any input or output, so that the two clients, one that blocks and one that does
not, differ in nothing but that.
"""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Any, Dict, List, Mapping, Optional, Tuple
from urllib.parse import quote, urlencode

from pydantic import BaseModel

from . import _checks, models
from ._shell_words import exports, in_shell
from .errors import InvalidError

OPERATIONS: Dict[str, Tuple[str, str]] = {
    "health": ("GET", "/v1/health"),
    "status": ("GET", "/v1/status"),
    "list_runtimes": ("GET", "/v1/runtimes"),
    "limits": ("GET", "/v1/limits"),
    "create_session": ("POST", "/v1/sessions"),
    "list_sessions": ("GET", "/v1/sessions"),
    "get_session": ("GET", "/v1/sessions/{session}"),
    "update_session": ("PATCH", "/v1/sessions/{session}"),
    "delete_session": ("DELETE", "/v1/sessions/{session}"),
    "pause_session": ("POST", "/v1/sessions/{session}/pause"),
    "resume_session": ("POST", "/v1/sessions/{session}/resume"),
    "keep_session_alive": ("POST", "/v1/sessions/{session}/keep_alive"),
    "inspect_session": ("GET", "/v1/sessions/{session}/inspect"),
    "list_changes": ("GET", "/v1/sessions/{session}/changes"),
    "set_variables": ("POST", "/v1/sessions/{session}/variables"),
    "run_action": ("POST", "/v1/sessions/{session}/actions"),
    "get_observation": ("GET", "/v1/sessions/{session}/actions/{action}"),
    "stream_output": ("GET", "/v1/sessions/{session}/actions/{action}/output"),
    "stop_action": ("POST", "/v1/sessions/{session}/actions/{action}/stop"),
    "list_events": ("GET", "/v1/sessions/{session}/events"),
    "stream_events": ("GET", "/v1/sessions/{session}/events/stream"),
    "get_blob": ("GET", "/v1/sessions/{session}/blobs/{digest}"),
    "list_files": ("GET", "/v1/sessions/{session}/files"),
    "get_file_status": ("GET", "/v1/sessions/{session}/files/status"),
    "read_file": ("GET", "/v1/sessions/{session}/files/content"),
    "write_file": ("PUT", "/v1/sessions/{session}/files/content"),
    "remove_file": ("DELETE", "/v1/sessions/{session}/files/content"),
    "create_directory": ("POST", "/v1/sessions/{session}/files/directories"),
    "rename_file": ("POST", "/v1/sessions/{session}/files/rename"),
    "pack_files": ("GET", "/v1/sessions/{session}/files/archive"),
    "unpack_files": ("PUT", "/v1/sessions/{session}/files/archive"),
    "watch_files": ("GET", "/v1/sessions/{session}/files/watch"),
    "open_terminal": ("POST", "/v1/sessions/{session}/terminals"),
    "list_terminals": ("GET", "/v1/sessions/{session}/terminals"),
    "get_terminal": ("GET", "/v1/sessions/{session}/terminals/{terminal}"),
    "close_terminal": ("DELETE", "/v1/sessions/{session}/terminals/{terminal}"),
    "terminal_socket": ("GET", "/v1/sessions/{session}/terminals/{terminal}/socket"),
    "start_program": ("POST", "/v1/sessions/{session}/programs"),
    "add_tools": ("POST", "/v1/sessions/{session}/tools"),
    "list_tools": ("GET", "/v1/sessions/{session}/tools"),
    "remove_tool": ("DELETE", "/v1/sessions/{session}/tools/{tool}"),
    "reset_tools": ("POST", "/v1/sessions/{session}/tools/reset"),
    "list_ports": ("GET", "/v1/sessions/{session}/ports"),
    "share_port": ("POST", "/v1/sessions/{session}/ports/{port}"),
    "unshare_port": ("DELETE", "/v1/sessions/{session}/ports/{port}"),
}
"""Every operation that this client uses; a test compares it with the API's document."""

SHORT = 40.0
"""Seconds that a request may take which waits for nothing."""
LONG = 300.0
"""Seconds that starting, freezing or ending a sandbox may take."""
GRACE = 10.0
"""Seconds beyond an action's own timeout: its answer has to be recorded and sent."""
ACTION_TIMEOUT = 3600.0
"""Seconds that an action is waited for which names no timeout."""
_ADDRESSES_MAX = 256
_JSON = {"content-type": "application/json"}


class Repeat(Enum):
    """When a request may be sent again."""

    ALWAYS = "always"
    """It looks, carries a name, or is the same when it is done twice."""
    UNSENT = "unsent"
    """Only when it has not arrived."""


@dataclass(frozen=True)
class Call:
    """One request."""

    method: str
    path: str
    query: Dict[str, str] = field(default_factory=dict)
    headers: Dict[str, str] = field(default_factory=dict)
    content: Optional[bytes] = None
    repeat: Repeat = Repeat.UNSENT
    deadline: float = SHORT
    session: Optional[str] = None
    """The sandbox that it is about."""

    @property
    def target(self) -> str:
        """The path with its parameters."""
        return f"{self.path}?{_encoded(tuple(self.query.items()))}" if self.query else self.path

    def asking(self, **query: Any) -> Call:
        """The same with more parameters; those that are `None` are left out."""
        more = {name: _text(value) for name, value in query.items() if value is not None}
        return replace(self, query={**self.query, **more})

    def carrying(self, document: BaseModel) -> Call:
        """The same with a JSON body."""
        try:
            text = document.model_dump_json(exclude_none=True, by_alias=True)
        except ValueError as error:
            raise InvalidError(f"this cannot be said in JSON: {error}", code="invalid") from error
        return self.with_json(text.encode())

    def with_json(self, text: bytes) -> Call:
        """The same with a JSON body that is written already."""
        return replace(self, content=text, headers={**self.headers, **_JSON})

    def with_bytes(self, content: bytes) -> Call:
        """The same with a body."""
        return replace(self, content=content)

    def saying(self, name: str, value: Optional[str]) -> Call:
        """The same with one more header, unless it is `None`."""
        if value is None:
            return self
        return replace(self, headers={**self.headers, name: value})

    def repeated(self) -> Call:
        """The same, which may be sent any number of times."""
        return replace(self, repeat=Repeat.ALWAYS)

    def within(self, seconds: float) -> Call:
        """The same with another deadline."""
        return replace(self, deadline=seconds)


def call(operation: str, **parts: object) -> Call:
    """A request for an operation, with the parts of its path."""
    method, path = _filled(operation, tuple(parts.items()))
    session = parts.get("session")
    about = None if session is None else str(session)
    if method == "GET":
        return Call(method, path, repeat=Repeat.ALWAYS, session=about)
    # So that the server's log tells which requests were meant as one.
    return Call(method, path, headers={"idempotency-key": _name()}, session=about)


def create_session(new: models.CreateSession) -> Call:
    """The name is chosen by the client, so that there is never a second one for one wish."""
    return call("create_session").asking(wait=True).carrying(new).within(LONG)


def session(operation: str, name: str) -> Call:
    """Something about a whole sandbox; done twice it is the same as done once."""
    return call(operation, session=name).repeated().within(LONG)


def run_action(name: str, action: Mapping[str, Any], wait: bool) -> Call:
    """An action under a name: a repeated request gets the first one's answer."""
    timeout = action.get("timeout")
    patience = LONG
    if wait:
        told = _checks.wait(timeout)
        patience = ACTION_TIMEOUT if told is None else told
    method, path = _filled("run_action", (("session", name),))
    # In one step, because there is hardly a request that is made more often.
    return Call(
        method,
        path,
        {"wait": _text(wait)},
        {"idempotency-key": _name(), **_JSON},
        _json(action),
        Repeat.ALWAYS,
        patience + GRACE,
        name,
    )


def observation(name: str, action: int, wait: float) -> Call:
    """What came of an action, if that is known within some seconds."""
    made = call("get_observation", session=name, action=action)
    return made.asking(wait=wait).within(wait + GRACE)


def stop(name: str, action: int, means: str) -> Call:
    """Brings an action to its end before its time; twice is no error."""
    return call("stop_action", session=name, action=action).asking(means=means).repeated()


def accepted(asked: Call) -> Call:
    """The same action once more, for its number instead of what came of it."""
    return replace(asked, query={**asked.query, "wait": "false"}, deadline=SHORT)


def run(
    text: str,
    *,
    timeout: Optional[float] = None,
    shell: Optional[str] = None,
    cwd: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
    typed: bool = False,
    whole: bool = False,
    alone: bool = False,
) -> Dict[str, Any]:
    """The action that runs a command, or types text at one that runs."""
    if cwd is not None:
        # A directory that is not there is told by the shell, and nothing is run elsewhere.
        text = f"cd -- {shlex.quote(cwd)} && {in_shell(text)}"
    if env:
        text = f"{exports(env)} && {in_shell(text)}"
    # Of `models.RunCommand` what is not its default, without the time that a model takes.
    arguments: Dict[str, Any] = {"command": text, "blocking": True}
    if typed:
        arguments["is_input"] = True
    if cwd is not None or env or alone:
        # A new shell of its own, so that nothing of this stays in another one.
        arguments["is_static"] = True
    if whole:
        arguments["hidden"] = True
    action: Dict[str, Any] = {"action": "run", "args": arguments}
    if timeout is not None:
        action["timeout"] = timeout
    if shell is not None:
        action["shell"] = shell
    return action


def call_tool(
    name: str,
    arguments: Dict[str, Any],
    positional: List[Any],
    timeout: Optional[float],
    checked: bool,
) -> Dict[str, Any]:
    """The action that calls a tool."""
    made = _checks.made(
        models.UseTool, name=name, arguments=arguments, positional=positional, unchecked=not checked
    )
    action: Dict[str, Any] = {"action": "call_tool", "args": made.model_dump(exclude_defaults=True)}
    if timeout is not None:
        action["timeout"] = timeout
    return action


def edit(path: str, **arguments: Any) -> Dict[str, Any]:
    """The action that changes a text file."""
    made = _checks.made(models.EditFile, path=path, **arguments)
    return {"action": "edit", "args": made.model_dump(exclude_defaults=True)}


def _name() -> str:
    """A name that no other request has."""
    return f"py-{os.urandom(16).hex()}"


@lru_cache(maxsize=_ADDRESSES_MAX)
def _filled(operation: str, parts: Tuple[Tuple[str, object], ...]) -> Tuple[str, str]:
    """The method and the path of an operation: most requests go where one has gone before."""
    method, path = OPERATIONS[operation]
    for name, value in parts:
        path = path.replace("{" + name + "}", quote(str(value), safe=""))
    return method, path


@lru_cache(maxsize=_ADDRESSES_MAX)
def _encoded(query: Tuple[Tuple[str, str], ...]) -> str:
    return urlencode(query, quote_via=quote)


def _json(document: Mapping[str, Any]) -> bytes:
    """A document as JSON, which not every value has a form in."""
    try:
        return json.dumps(document, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidError(f"this cannot be said in JSON: {error}", code="invalid") from error


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
