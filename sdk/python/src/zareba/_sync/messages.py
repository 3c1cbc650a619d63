# Made by scripts/unasync.py from ../_async/messages.py; change that one.
"""A stream of server-sent events, and the events of a sandbox that it carries."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Deque, Iterator, Optional, Type

import httpx

from .. import _calls, _http, models
from .._calls import Call
from .._sse import Message, Parser
from .._tries import StreamTries
from .._wait import pause
from ..errors import DisconnectedError, ZarebaError
from .client import Client

_CLOSED = "closed"


class Messages:
    """One connection that messages come over; it is opened when the first one is asked for."""

    def __init__(self, client: Client, call: Call) -> None:
        self._client = client
        self._call = call
        self._response: Optional[httpx.Response] = None
        self._pieces: Optional[Iterator[bytes]] = None
        self._parser = Parser()
        self._waiting: Deque[Message] = deque()

    def next(self) -> Message:
        """The next message, once it is there."""
        while not self._waiting:
            if self._pieces is None:
                self._response = self._client.open(self._call)
                self._pieces = self._response.iter_bytes()
            try:
                piece = self._pieces.__next__()
            except StopIteration:
                self.close()
                raise DisconnectedError(
                    "the server ended the stream", code="disconnected", may_have_happened=True
                ) from None
            except httpx.HTTPError as error:
                self.close()
                raise DisconnectedError(
                    f"the stream broke: {error}", code="disconnected", may_have_happened=True
                ) from error
            self._waiting.extend(self._parser.feed(piece))
        return self._waiting.popleft()

    def close(self) -> None:
        """Closes the connection."""
        response, self._response, self._pieces = self._response, None, None
        self._parser = Parser()
        if response is not None:
            response.close()


class Events:
    """The events of a sandbox, each once and in order.

    A connection that breaks is made again behind the last event that was seen. Following ends
    behind the event that tells of the sandbox's end.
    """

    def __init__(self, client: Client, session: str, first: int, follow: bool) -> None:
        self._client = client
        self._session = session
        self._follow = follow
        self._waiting: Deque[models.Event] = deque()
        self._messages: Optional[Messages] = None
        self._tries = StreamTries()
        self._is_over = False
        self.next_event = first
        """The number of the event that comes next: where to go on another time."""

    def __iter__(self) -> Events:
        return self

    def __next__(self) -> models.Event:
        event = None
        if not self._is_over:
            event = (self._followed() if self._follow else self._paged())
        if event is None:
            self.close()
            raise StopIteration
        self.next_event = event.sequence + 1
        self._is_over = self._follow and _is_end(event)
        self._client.put_back(self._session, event.sequence, event.payload)
        return event

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stops listening."""
        messages, self._messages = self._messages, None
        self._is_over = True
        if messages is not None:
            messages.close()

    def _paged(self) -> Optional[models.Event]:
        """The next event that is there already."""
        if not self._waiting:
            call = _calls.call("list_events", session=self._session)
            call = call.asking(**{"from": self.next_event})
            page = self._client.ask(call, models.EventPage)
            self._waiting.extend(page.events)
        return self._waiting.popleft() if self._waiting else None

    def _followed(self) -> models.Event:
        """The next event, once it is there."""
        while True:
            try:
                event = self._attempt()
            except ZarebaError as error:
                wait = self._tries.wait_after(error)
                messages, self._messages = self._messages, None
                if messages is not None:
                    messages.close()
                if wait is None:
                    raise
                pause(wait)
                continue
            # One that was seen before a break is passed over.
            if event.sequence == self.next_event:
                self._tries.progress()
                return event

    def _attempt(self) -> models.Event:
        if self._messages is None:
            call = _calls.call("stream_events", session=self._session)
            call = call.asking(**{"from": self.next_event})
            self._messages = Messages(self._client, call)
        message = self._messages.next()
        event = _http.parse(models.Event, message.data.encode())
        if event.sequence > self.next_event:
            raise _http.nonsense(f"event {event.sequence} came instead of {self.next_event}")
        return event


def _is_end(event: models.Event) -> bool:
    """Whether nothing more can happen in the sandbox."""
    return event.payload.get("state") == _CLOSED or event.payload.get("note") == _CLOSED
