"""The ways to one server: connections of our own, and a library for what is more than that."""

from __future__ import annotations

from typing import AsyncIterator, Callable, Optional

import httpx

from .. import _http
from .._calls import Call
from .._http1 import Answer
from .._place import Place
from .._wait import AsyncLock
from .connections import AsyncConnections

Body = Callable[[], AsyncIterator[bytes]]


class AsyncLink:
    """A server that was found. What goes wrong is told by the exceptions in `_http.FAILURES`."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._headers = _http.headers(place)
        self._own: Optional[AsyncConnections] = None
        if place.address is not None:
            self._own = AsyncConnections(place.address, self._headers)
        self._http: Optional[httpx.AsyncClient] = None
        self._opening = AsyncLock()

    async def close(self) -> None:
        """Closes the connections."""
        if self._own is not None:
            await self._own.close()
        if self._http is not None:
            await self._http.aclose()

    async def answer(self, call: Call, body: Optional[Body]) -> Answer:
        """Sends a request, once, and reads its answer whole."""
        if self._own is not None and body is None:
            return await self._own.ask(
                call.method, call.target, call.headers, call.content, call.deadline
            )
        http = await self._library()
        return _http.answer(await http.send(self._request(call, body, call.deadline)))

    async def open(self, call: Call, patience: float) -> httpx.Response:
        """Sends a request, once, and returns its answer before the body has come."""
        http = await self._library()
        return await http.send(self._request(call, None, patience), stream=True)

    async def _library(self) -> httpx.AsyncClient:
        """Made when it is first needed, which takes longer than most commands."""
        async with self._opening:
            if self._http is None:
                transport = None
                if self.place.socket is not None:
                    transport = httpx.AsyncHTTPTransport(**_http.transport_options(self.place))
                self._http = httpx.AsyncClient(transport=transport, **_http.options(self.place))
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
