# Made by scripts/unasync.py from ../_async/link.py; change that one.
"""The ways to one server: connections of our own, and a library for what is more than that."""

from __future__ import annotations

from typing import Callable, Iterator, Optional

import httpx

from .. import _http
from .._calls import Call
from .._http1 import Answer
from .._place import Place
from .._wait import Lock
from .connections import Connections

Body = Callable[[], Iterator[bytes]]


class Link:
    """A server that was found. What goes wrong is told by the exceptions in `_http.FAILURES`."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._headers = _http.headers(place)
        self._own: Optional[Connections] = None
        if place.address is not None:
            self._own = Connections(place.address, self._headers)
        self._http: Optional[httpx.Client] = None
        self._opening = Lock()

    def close(self) -> None:
        """Closes the connections."""
        if self._own is not None:
            self._own.close()
        if self._http is not None:
            self._http.close()

    def answer(self, call: Call, body: Optional[Body]) -> Answer:
        """Sends a request, once, and reads its answer whole."""
        if self._own is not None and body is None:
            return self._own.ask(
                call.method, call.target, call.headers, call.content, call.deadline
            )
        http = self._library()
        return _http.answer(http.send(self._request(call, body, call.deadline)))

    def open(self, call: Call, patience: float) -> httpx.Response:
        """Sends a request, once, and returns its answer before the body has come."""
        http = self._library()
        return http.send(self._request(call, None, patience), stream=True)

    def _library(self) -> httpx.Client:
        """Made when it is first needed, which takes longer than most commands."""
        with self._opening:
            if self._http is None:
                transport = None
                if self.place.socket is not None:
                    transport = httpx.HTTPTransport(**_http.transport_options(self.place))
                self._http = httpx.Client(transport=transport, **_http.options(self.place))
            return self._http

    def _request(self, call: Call, body: Optional[Body], patience: float) -> httpx.Request:
        """Made directly: what the library would do for it costs as much again as all the rest."""
        return httpx.Request(
            call.method,
            _http.address(self.place.base_url, call.target),
            headers={**self._headers, **call.headers},
            content=call.content if body is None else body(),
            extensions={"timeout": _http.within(patience).as_dict()},
        )
