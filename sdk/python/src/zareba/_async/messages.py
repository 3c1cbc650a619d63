"""A stream of server-sent events, and the events of a sandbox that it carries."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import AsyncIterator, Deque, Optional, Type

import httpx

from .. import _calls, _http, models
from .._calls import Call
from .._sse import Message, Parser
from .._tries import StreamTries
from .._wait import async_pause
from ..errors import DisconnectedError, ZarebaError
from .client import AsyncClient

_CLOSED = "closed"


class AsyncMessages:
    """One connection that messages come over; it is opened when the first one is asked for."""

    def __init__(self, client: AsyncClient, call: Call) -> None:
        self._client = client
        self._call = call
        self._response: Optional[httpx.Response] = None
        self._pieces: Optional[AsyncIterator[bytes]] = None
        self._parser = Parser()
        self._waiting: Deque[Message] = deque()

    async def next(self) -> Message:
        """The next message, once it is there."""
        while not self._waiting:
            if self._pieces is None:
                self._response = await self._client.open(self._call)
                self._pieces = self._response.aiter_bytes()
            try:
                piece = await self._pieces.__anext__()
            except StopAsyncIteration:
                await self.close()
                raise DisconnectedError(
                    "the server ended the stream", code="disconnected", may_have_happened=True
                ) from None
            except httpx.HTTPError as error:
                await self.close()
                raise DisconnectedError(
                    f"the stream broke: {error}", code="disconnected", may_have_happened=True
                ) from error
            self._waiting.extend(self._parser.feed(piece))
        return self._waiting.popleft()

    async def close(self) -> None:
        """Closes the connection."""
        response, self._response, self._pieces = self._response, None, None
        self._parser = Parser()
        if response is not None:
            await response.aclose()


class AsyncEvents:
    """The events of a sandbox, each once and in order.

    A connection that breaks is made again behind the last event that was seen. Following ends
    behind the event that tells of the sandbox's end.
    """

    def __init__(self, client: AsyncClient, session: str, first: int, follow: bool) -> None:
        self._client = client
        self._session = session
        self._follow = follow
        self._waiting: Deque[models.Event] = deque()
        self._messages: Optional[AsyncMessages] = None
        self._tries = StreamTries()
        self._is_over = False
        self.next_event = first
        """The number of the event that comes next: where to go on another time."""

    def __aiter__(self) -> AsyncEvents:
        return self

    async def __anext__(self) -> models.Event:
        event = None
        if not self._is_over:
            event = await (self._followed() if self._follow else self._paged())
        if event is None:
            await self.close()
            raise StopAsyncIteration
        self.next_event = event.sequence + 1
        self._is_over = self._follow and _is_end(event)
        await self._client.put_back(self._session, event.sequence, event.payload)
        return event

    async def __aenter__(self) -> AsyncEvents:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops listening."""
        messages, self._messages = self._messages, None
        self._is_over = True
        if messages is not None:
            await messages.close()

    async def _paged(self) -> Optional[models.Event]:
        """The next event that is there already."""
        if not self._waiting:
            call = _calls.call("list_events", session=self._session)
            call = call.asking(**{"from": self.next_event})
            page = await self._client.ask(call, models.EventPage)
            self._waiting.extend(page.events)
        return self._waiting.popleft() if self._waiting else None

    async def _followed(self) -> models.Event:
        """The next event, once it is there."""
        while True:
            try:
                event = await self._attempt()
            except ZarebaError as error:
                wait = self._tries.wait_after(error)
                messages, self._messages = self._messages, None
                if messages is not None:
                    await messages.close()
                if wait is None:
                    raise
                await async_pause(wait)
                continue
            # One that was seen before a break is passed over.
            if event.sequence == self.next_event:
                self._tries.progress()
                return event

    async def _attempt(self) -> models.Event:
        if self._messages is None:
            call = _calls.call("stream_events", session=self._session)
            call = call.asking(**{"from": self.next_event})
            self._messages = AsyncMessages(self._client, call)
        message = await self._messages.next()
        event = _http.parse(models.Event, message.data.encode())
        if event.sequence > self.next_event:
            raise _http.nonsense(f"event {event.sequence} came instead of {self.next_event}")
        return event


def _is_end(event: models.Event) -> bool:
    """Whether nothing more can happen in the sandbox."""
    return event.payload.get("state") == _CLOSED or event.payload.get("note") == _CLOSED
