# Made by scripts/unasync.py from ../_async/client.py; change that one.
"""The connection to a server."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import TracebackType
from typing import Any, Dict, List, Optional, Tuple, Type

import httpx

from .. import _blobs, _calls, _checks, _find, _http, _place, models
from .._calls import Call
from .._http1 import Answer
from .._tries import Tries
from .._wait import (
    Lock,
    Owned,
    beside,
    cancelled,
    in_the_end,
    pause,
)
from ..errors import ClosedError, DisconnectedError, ZarebaError
from .link import Body, Link
from .wire import Wire

_INTERRUPTS = 3
"""How often a command is interrupted before it is killed."""
_INTERRUPTED = 2.0
"""Seconds that a command has to end after each interruption."""


class Client:
    """A server, and the key to it.

    Without an address it is the one that `ZAREBA_URL` and `ZAREBA_API_KEY` name, else one of this
    user that runs already, else a private one that is started when it is first needed and ends
    with this process. A `key` without an address is the key to the first two. Whoever uses it,
    wherever that is, has connections that can be used there: threads share them, a copy of the
    process has its own, and so has each event loop.
    """

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None) -> None:
        self._place = _place.checked(url, key) if url is not None else None
        self._is_named = url is not None
        self._key = _checks.optional_text(key, "key")
        self._is_stale = False
        self._links: Owned[Link] = Owned()
        self._opening = Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._place.url!r})" if self._place else "Client()"

    def place(self) -> _place.Place:
        """Where the server is, and the key to it; one that is needed first is found now."""
        return (self._found()).place

    @property
    def address(self) -> str:
        """The server's address, once it is known: that of a port, or `unix:` and a path."""
        return self._place.url.rstrip("/") if self._place else ""

    def close(self) -> None:
        """Closes the connections of whoever asks. Sandboxes go on."""
        link = self._links.take()
        if link is not None:
            link.close()

    def health(self) -> models.Health:
        """Whether the server answers at all."""
        return self.ask(_calls.call("health"), models.Health)

    def status(self) -> models.ServerStatus:
        """How the server is."""
        return self.ask(_calls.call("status"), models.ServerStatus)

    def runtimes(self) -> List[models.RuntimeDescription]:
        """Where sandboxes can run, and what each of these can promise."""
        page = self.ask(_calls.call("list_runtimes"), models.RuntimePage)
        return page.runtimes

    def limits(self) -> models.Limits:
        """What may be asked for at most."""
        return self.ask(_calls.call("limits"), models.Limits)

    def ask(self, call: Call, kind: Type[_http.Document]) -> _http.Document:
        """Sends a request whose answer is a document of one kind."""
        return _http.parse(kind, (self.send(call)).content)

    def send(self, call: Call, body: Optional[Body] = None) -> Answer:
        """Sends a request until it is answered, as often as that is harmless."""
        tries: Optional[Tries] = None
        while True:
            try:
                return self._send_once(call, body)
            except ZarebaError as error:
                tries = tries or Tries(call)
                error.in_doubt = tries.in_doubt
                wait = tries.wait_after(error)
                if wait is None:
                    self._explain(call, error)
                    raise
            pause(wait)

    def open(self, call: Call) -> httpx.Response:
        """Sends a request, once, and returns its answer before the body has come.

        Whoever asked has to close it.
        """
        link = self._found()
        try:
            response = link.open(call, _http.STREAM_SILENCE_MAX)
            if not response.is_success:
                response.read()
                raise _http.refusal(_http.answer(response))
            return response
        except httpx.HTTPError as error:
            raise _http.failure(link.place, error) from error

    def upgrade(self, call: Call, asked: Dict[str, str]) -> Tuple[Wire, httpx.Headers]:
        """Sends a request, once, after which its connection is something else than HTTP.

        `asked` are the headers that say what. Whoever asked has to close it.
        """
        link = self._found()
        wanted = replace(call, headers={**call.headers, **asked})
        try:
            response = link.open(wanted, call.deadline)
            if response.status_code == httpx.codes.SWITCHING_PROTOCOLS:
                return Wire(response), response.headers
            response.read()
        except httpx.HTTPError as error:
            raise _http.failure(link.place, error) from error
        if response.is_success:
            raise _http.nonsense("it is no connection of the kind that was asked for")
        raise _http.refusal(_http.answer(response))

    def perform(self, session: str, action: Dict[str, Any]) -> Dict[str, Any]:
        """Runs an action and returns its observation."""
        call = _calls.run_action(session, action, wait=True)
        try:
            return self._performed(session, call)
        except cancelled:
            in_the_end(lambda: self._abandon(session, call))
            raise

    def _performed(self, session: str, call: Call) -> Dict[str, Any]:
        answer = self.send(call)
        while answer.status == httpx.codes.ACCEPTED:
            # The wait got too long for one request.
            accepted = _http.parse(models.ActionAccepted, answer.content)
            answer = self.send(_calls.observation(session, accepted.action, 60.0))
        return self.observation(session, answer)

    def stop(self, session: str, action: int) -> None:
        """Brings an action to its end: with Ctrl-C, and if that is not heard, without asking."""
        # A key that is pressed while a program is being started may be lost.
        for means in [*["interrupt"] * _INTERRUPTS, "kill"]:
            self.send(_calls.stop(session, action, means))
            answer = self.send(_calls.observation(session, action, _INTERRUPTED))
            if answer.status != httpx.codes.ACCEPTED:
                return

    def _abandon(self, session: str, call: Call) -> None:
        """Stops the action of a request whose answer nobody wants any more."""
        with contextlib.suppress(ZarebaError):
            # Its number is what the same request gets under the same name.
            accepted = self.ask(_calls.accepted(call), models.ActionAccepted)
            self.stop(session, accepted.action)

    def _explain(self, call: Call, error: ZarebaError) -> None:
        """Says that a sandbox has ended, where the server says that it is in the wrong state."""
        if call.session is None or error.code != "conflict":
            return
        try:
            asked = _calls.session("get_session", call.session)
            session = _http.parse(models.Session, (self._send_once(asked, None)).content)
        except ZarebaError:
            return
        if session.state in (models.SessionState.CLOSED, models.SessionState.FAILED):
            raise ClosedError(
                f"the sandbox `{call.session}` is {session.state}",
                code="closed",
                request_id=error.request_id,
                status=error.status,
            ) from error

    def observation(self, session: str, answer: Answer) -> Dict[str, Any]:
        """The observation in an answer, with all of its parts."""
        observation: Dict[str, Any] = _http.parse_object(answer.content)
        if _blobs.MARK in answer.content:
            self.put_back(session, observation.get("id"), observation)
        return observation

    def put_back(self, session: str, event: Any, document: Dict[str, Any]) -> None:
        """Puts back the parts of an event that the server keeps apart."""
        for reference, put in _blobs.references(document):
            call = _calls.call("get_blob", session=session, digest=reference.digest)
            part = self.send(call.asking(event=event).within(_calls.LONG))
            put(reference.value(part.content))

    def _send_once(self, call: Call, body: Optional[Body]) -> Answer:
        link = self._found()
        try:
            answer = link.answer(call, body)
        except _http.FAILURES as error:
            failed = _http.failure(link.place, error)
            # A server that was found and not named may be elsewhere by now.
            self._is_stale = isinstance(failed, DisconnectedError) and not self._is_named
            raise failed from error
        if not answer.is_success:
            raise _http.refusal(answer)
        return answer

    def _found(self) -> Link:
        with self._opening:
            place = self._place
            if place is None or self._is_stale:
                found = beside(lambda: _find.find(self._key))
                if found != place:
                    # The old one may be in use, and is closed by whoever uses it last.
                    self._place = place = found
                    self._links.forget()
                self._is_stale = False
            return self._links.ours() or self._links.keep(Link(place))
