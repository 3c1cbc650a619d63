"""A terminal of a sandbox, as a person would sit at it: bytes in, bytes out, and a size."""

from __future__ import annotations

import json
import time
from types import TracebackType
from typing import List, Optional, Type, Union

from .. import _calls, _checks, _http, _websocket, models
from .._tries import StreamTries
from .._wait import AsyncLock, async_pause
from ..errors import DisconnectedError, InvalidError, NotFoundError, TimedOutError, ZarebaError
from .client import AsyncClient
from .wire import AsyncWire

_UNWATCHED_MAX = 5.0
"""Seconds without a look at the connection after which it is looked at before it is used: the
server hangs up on those who do not answer it."""
_GLANCE = 0.001
"""Seconds that such a look takes at most."""
_HELD_BYTES_MAX = 64 * 1024 * 1024
"""Output that is kept for whoever reads it later."""


class AsyncTerminal:
    """One terminal. It goes on without us: a connection that breaks is made again where it was.

    One task or thread may read while others write.
    """

    def __init__(self, client: AsyncClient, session: str, told: models.Terminal, owned: bool):
        self._client = client
        self._session = session
        self._told = told
        self._owned = owned
        self._wire: Optional[AsyncWire] = None
        self._parser = _websocket.Parser()
        self._held = bytearray()
        self._cursor: Optional[int] = None
        self._looked = 0.0
        self._attaching = AsyncLock()
        self._receiving = AsyncLock()
        self._readers = 0
        self._tries = StreamTries()
        self.exit: Optional[models.TerminalExit] = None
        """How its program ended; `None` while it runs, or while nobody has read that far."""

    async def __aenter__(self) -> AsyncTerminal:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await (self.close() if self._owned else self.detach())

    def __repr__(self) -> str:
        return f"<AsyncTerminal {self.name} of {self._session}>"

    def __aiter__(self) -> AsyncTerminal:
        return self

    async def __anext__(self) -> bytes:
        piece = await self.read()
        if not piece:
            raise StopAsyncIteration
        return piece

    @property
    def name(self) -> str:
        """Its name, by which it can be attached to."""
        return self._told.name

    async def read(self, timeout: Optional[float] = None) -> bytes:
        """What it shows next, as it comes; no bytes at all once its program has ended."""
        deadline = _deadline(timeout)
        while not self._held and self.exit is None:
            await self._receive(deadline)
        piece = bytes(self._held)
        self._held.clear()
        return piece

    async def read_until(self, text: Union[bytes, str], timeout: Optional[float] = None) -> bytes:
        """What it shows up to and with a text. When its program ends before, all that there was."""
        wanted = _checks.content(text, "text")
        deadline = _deadline(timeout)
        searched = 0
        while True:
            found = self._held.find(wanted, searched)
            if found >= 0 or self.exit is not None:
                end = found + len(wanted) if found >= 0 else len(self._held)
                piece = bytes(self._held[:end])
                del self._held[:end]
                return piece
            searched = max(len(self._held) - len(wanted) + 1, 0)
            await self._receive(deadline)

    async def write(self, content: Union[bytes, str]) -> None:
        """Types at it. Enter is `\\r`, Ctrl-C is `\\x03`."""
        data = _checks.content(content)
        for begin in range(0, len(data), _http.PIECE_BYTES):
            piece = data[begin : begin + _http.PIECE_BYTES]
            await self._say(_websocket.frame(_websocket.BYTES, piece))

    async def resize(self, columns: int, rows: int) -> None:
        """Gives it another size."""
        size = _checks.made(models.WindowSize, columns=columns, rows=rows)
        text = json.dumps({"resize": size.model_dump()}).encode()
        await self._say(_websocket.frame(_websocket.TEXT, text))

    async def wait(self, timeout: Optional[float] = None) -> models.TerminalExit:
        """Waits for the end of its program; what it shows meanwhile can be read afterwards."""
        deadline = _deadline(timeout)
        while self.exit is None:
            await self._receive(deadline)
        return self.exit

    async def info(self) -> models.Terminal:
        """How it is now."""
        call = _calls.call("get_terminal", session=self._session, terminal=self.name)
        self._told = await self._client.ask(call, models.Terminal)
        return self._told

    async def detach(self) -> None:
        """Lets go of it. It goes on, and may be used again."""
        wire, self._wire = self._wire, None
        self._parser = _websocket.Parser()
        if wire is not None:
            await wire.close()

    async def close(self) -> None:
        """Ends it. Twice is no error."""
        await self.detach()
        call = _calls.call("close_terminal", session=self._session, terminal=self.name)
        try:
            await self._client.send(call.repeated().within(_calls.LONG))
        except NotFoundError:
            return

    async def _attached(self) -> AsyncWire:
        async with self._attaching:
            if self._wire is not None and not self._wire.is_ours:
                await self.detach()
            if self._wire is None:
                self._wire = await self._attach()
                self._looked = time.monotonic()
            return self._wire

    async def _attach(self) -> AsyncWire:
        call = _calls.call("terminal_socket", session=self._session, terminal=self.name)
        asked = _websocket.handshake()
        call = call.asking(**{"from": self._cursor}).within(_calls.SHORT)
        wire, told = await self._client.upgrade(call, asked)
        if not _websocket.is_answer(asked, told.get("sec-websocket-accept")):
            await wire.close()
            raise _http.nonsense("it is no WebSocket that was asked for")
        return wire

    async def _say(self, frame: bytes) -> None:
        """Sends something, on a connection that was alive a moment ago."""
        is_watched = self._readers > 0 or time.monotonic() - self._looked < _UNWATCHED_MAX
        if self._wire is not None and not is_watched:
            try:
                await self._receive(time.monotonic() + _GLANCE)
            except TimedOutError:
                self._looked = time.monotonic()
        wire = await self._attached()
        try:
            await wire.write(frame)
        except DisconnectedError:
            await self.detach()
            raise

    async def _receive(self, deadline: Optional[float]) -> None:
        """Takes what comes next, if need be on a new connection."""
        self._readers += 1
        try:
            async with self._receiving:
                await self._take(deadline)
        except TimedOutError:
            raise
        except ZarebaError as error:
            await self.detach()
            wait = self._tries.wait_after(error)
            if wait is None:
                raise
            await async_pause(wait)
        finally:
            self._readers -= 1

    async def _take(self, deadline: Optional[float]) -> None:
        wire = await self._attached()
        timeout = None if deadline is None else max(deadline - time.monotonic(), _GLANCE)
        piece = await wire.read(timeout)
        self._looked = time.monotonic()
        if not piece:
            raise DisconnectedError("the terminal's connection ended", code="disconnected")
        for message in self._parser.feed(piece):
            await self._heed(wire, message)

    async def _heed(self, wire: AsyncWire, message: _websocket.Message) -> None:
        if message.kind == _websocket.BYTES:
            self._tries.progress()
            self._cursor = (self._cursor or 0) + len(message.content)
            self._held += message.content
            if len(self._held) > _HELD_BYTES_MAX:
                # It can be shown again as far as the server keeps it, which is less.
                del self._held[:-_HELD_BYTES_MAX]
        elif message.kind == _websocket.TEXT:
            self._note(_http.parse(models.TerminalNotice, message.content))
        elif message.kind == _websocket.PING:
            await wire.write(_websocket.frame(_websocket.PONG, message.content))
        elif message.kind == _websocket.CLOSE and self.exit is None:
            raise DisconnectedError("the server closed the terminal's socket", code="disconnected")

    def _note(self, notice: models.TerminalNotice) -> None:
        if notice.cursor is not None:
            self._cursor = notice.cursor
        if notice.exit is not None:
            self.exit = notice.exit
        if notice.error is not None:
            raise InvalidError(notice.error, code="invalid")


async def open_terminal(
    client: AsyncClient, session: str, wanted: models.CreateTerminal
) -> AsyncTerminal:
    """Opens a terminal."""
    call = _calls.call("open_terminal", session=session).carrying(wanted).within(_calls.LONG)
    return AsyncTerminal(client, session, await client.ask(call, models.Terminal), owned=True)


async def attach_terminal(client: AsyncClient, session: str, name: str) -> AsyncTerminal:
    """Finds a terminal that is there already."""
    call = _calls.call("get_terminal", session=session, terminal=_checks.text(name, "name"))
    return AsyncTerminal(client, session, await client.ask(call, models.Terminal), owned=False)


async def list_terminals(client: AsyncClient, session: str) -> List[models.Terminal]:
    """All terminals of a sandbox."""
    page = await client.ask(_calls.call("list_terminals", session=session), models.TerminalPage)
    return page.terminals


def _deadline(timeout: Optional[float]) -> Optional[float]:
    wait = _checks.wait(timeout)
    return None if wait is None else time.monotonic() + wait
