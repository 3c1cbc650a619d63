"""The output of an action while it runs."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Optional, Type

from .. import _calls, _http
from .._tries import StreamTries
from .._wait import async_pause
from ..errors import ZarebaError
from .client import AsyncClient
from .messages import AsyncMessages

_OUTPUT = "output"
_END = "end"


class AsyncOutput:
    """The text that an action writes, in pieces, until the action ends or the time is up.

    The pieces joined are exactly what was written. A connection that breaks is made again where it
    was. Each reader has a connection of its own, and none of them is an action in the log.
    """

    def __init__(
        self, client: AsyncClient, session: str, action: int, timeout: Optional[float] = None
    ) -> None:
        self._client = client
        self._session = session
        self._action = action
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._messages: Optional[AsyncMessages] = None
        self._tries = StreamTries()
        self._is_over = False
        self.offset = 0
        """Bytes of text, in UTF-8, until now."""
        self.is_whole = False
        """Whether the action has ended and all that is kept of its output was read."""
        self.skipped = 0
        """Bytes that were written and not kept, because there were too many."""

    def __aiter__(self) -> AsyncOutput:
        return self

    async def __anext__(self) -> str:
        while not self._is_over:
            try:
                piece = await self._attempt()
            except ZarebaError as error:
                wait = self._tries.wait_after(error)
                await self._drop()
                if wait is None:
                    raise
                await async_pause(wait)
                continue
            if piece:
                self._tries.progress()
                return piece
        await self._drop()
        raise StopAsyncIteration

    async def __aenter__(self) -> AsyncOutput:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self._drop()

    async def _attempt(self) -> str:
        """The next piece of text; an empty one stands for anything else."""
        if self._messages is None:
            call = _calls.call("stream_output", session=self._session, action=self._action)
            left = None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)
            call = call.asking(**{"from": self.offset or None, "wait": left})
            self._messages = AsyncMessages(self._client, call)
        message = await self._messages.next()
        told = _http.parse_object(message.data.encode())
        if message.kind == _END:
            self._is_over = True
            self.is_whole = told.get("whole") is True
            skipped = told.get("skipped")
            self.skipped = skipped if isinstance(skipped, int) else 0
            return ""
        if message.kind != _OUTPUT:
            return ""
        text = str(told.get("text", ""))
        self.offset += len(text.encode())
        return text

    async def _drop(self) -> None:
        messages, self._messages = self._messages, None
        if messages is not None:
            await messages.close()
