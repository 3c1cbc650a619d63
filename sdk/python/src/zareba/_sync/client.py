# Made by scripts/unasync.py from ../_async/client.py; change that one.
"""The connection to a server."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Type

import httpx

from .. import _blobs, _calls, _find, _http, _place, models
from .._calls import Call
from .._tries import Tries
from .._wait import Lock, beside, pause
from ..errors import DisconnectedError, ZarebaError
from .wire import Wire

Body = Callable[[], Iterator[bytes]]


class Client:
    """A server, and the key to it.

    Without an address it is the one that `ZAREBA_URL` and `ZAREBA_API_KEY` name, else one of this
    user that runs already, else a private one that is started when it is first needed and ends
    with this process.
    """

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None) -> None:
        self._place = _place.checked(url, key) if url else None
        self._is_named = url is not None
        self._is_stale = False
        self._http: Optional[httpx.Client] = None
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
        _, place = self._connection()
        return place

    @property
    def address(self) -> str:
        """The server's address, once it is known: that of a port, or `unix:` and a path."""
        return self._place.url.rstrip("/") if self._place else ""

    def close(self) -> None:
        """Closes the connections. Sandboxes go on."""
        http, self._http = self._http, None
        if http is not None:
            http.close()

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
        response = self.send(call)
        return _http.parse(kind, response.content)

    def send(self, call: Call, body: Optional[Body] = None) -> httpx.Response:
        """Sends a request until it is answered, as often as that is harmless."""
        tries = Tries(call)
        while True:
            try:
                return self._send_once(call, body)
            except ZarebaError as error:
                error.in_doubt = tries.in_doubt
                wait = tries.wait_after(error)
                if wait is None:
                    raise
            pause(wait)

    def open(self, call: Call) -> httpx.Response:
        """Sends a request, once, and returns its answer before the body has come.

        Whoever asked has to close it.
        """
        http, place = self._connection()
        request = _request(place, call, None, _http.within(_http.STREAM_SILENCE_MAX))
        try:
            response = http.send(request, stream=True)
            if not response.is_success:
                response.read()
                raise _http.refusal(response)
            return response
        except httpx.HTTPError as error:
            raise _http.failure(place, error) from error

    def upgrade(self, call: Call, asked: Dict[str, str]) -> Tuple[Wire, httpx.Headers]:
        """Sends a request, once, after which its connection is something else than HTTP.

        `asked` are the headers that say what. Whoever asked has to close it.
        """
        http, place = self._connection()
        wanted = replace(call, headers={**call.headers, **asked})
        request = _request(place, wanted, None, _http.within(call.deadline))
        try:
            response = http.send(request, stream=True)
            if response.status_code == httpx.codes.SWITCHING_PROTOCOLS:
                return Wire(response), response.headers
            response.read()
        except httpx.HTTPError as error:
            raise _http.failure(place, error) from error
        if response.is_success:
            raise _http.nonsense("it is no connection of the kind that was asked for")
        raise _http.refusal(response)

    def perform(self, session: str, action: Dict[str, Any]) -> Dict[str, Any]:
        """Runs an action and returns its observation."""
        response = self.send(_calls.run_action(session, action).asking(wait=True))
        while response.status_code == httpx.codes.ACCEPTED:
            # The wait got too long for one request.
            accepted = _http.parse(models.ActionAccepted, response.content)
            response = self.send(_calls.observation(session, accepted.action, 60.0))
        return self.observation(session, response)

    def observation(self, session: str, response: httpx.Response) -> Dict[str, Any]:
        """The observation in an answer, with all of its parts."""
        observation: Dict[str, Any] = _http.parse_object(response.content)
        self.put_back(session, observation.get("id"), observation)
        return observation

    def put_back(self, session: str, event: Any, document: Dict[str, Any]) -> None:
        """Puts back the parts of an event that the server keeps apart."""
        for reference, put in _blobs.references(document):
            call = _calls.call("get_blob", session=session, digest=reference.digest)
            response = self.send(call.asking(event=event).within(_calls.LONG))
            put(reference.value(response.content))

    def _send_once(self, call: Call, body: Optional[Body]) -> httpx.Response:
        http, place = self._connection()
        try:
            response = http.send(_request(place, call, body, _http.within(call.deadline)))
        except httpx.HTTPError as error:
            failed = _http.failure(place, error)
            # A server that was found and not named may be elsewhere by now.
            self._is_stale = isinstance(failed, DisconnectedError) and not self._is_named
            raise failed from error
        if not response.is_success:
            raise _http.refusal(response)
        return response

    def _connection(self) -> Tuple[httpx.Client, _place.Place]:
        with self._opening:
            if self._place is None or self._is_stale:
                found = beside(_find.find)
                if found != self._place:
                    # The old one may be in use, and is closed by whoever uses it last.
                    self._place, self._http = found, None
                self._is_stale = False
            if self._http is None:
                transport = None
                if self._place.socket is not None:
                    transport = httpx.HTTPTransport(**_http.transport_options(self._place))
                self._http = httpx.Client(transport=transport, **_http.options(self._place))
            return self._http, self._place


def _request(
    place: _place.Place, call: Call, body: Optional[Body], timeout: httpx.Timeout
) -> httpx.Request:
    """Made directly: what the library would do for it costs as much again as all the rest."""
    return httpx.Request(
        call.method,
        _http.address(place.base_url, call.target),
        headers={**_http.headers(place), **call.headers},
        content=call.content if body is None else body(),
        extensions={"timeout": timeout.as_dict()},
    )
