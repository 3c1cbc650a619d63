"""A program of a sandbox with streams of its own: output and errors apart, input, signals."""

from __future__ import annotations

import struct
import time
from collections import deque
from types import TracebackType
from typing import Any, Callable, Deque, Mapping, Optional, Sequence, Type, Union

from .. import _calls, _checks, _frames, models
from .._wait import AsyncAlarm, async_tell
from ..errors import BusyError, DisconnectedError, InternalError, TimedOutError
from ..result import ProgramOutput, ProgramResult
from .client import AsyncClient
from .wire import AsyncWire

OUTPUT_BYTES_MAX = 64 * 1024 * 1024
"""What is kept of each stream of a program that is waited for; the rest is dropped, and told."""
_WAITING_BYTES_MAX = 64 * 1024 * 1024
"""Output that is kept for whoever reads it later, while input waits for its turn."""

OnBytes = Callable[[bytes], Any]


class AsyncProgram:
    """A program that was started. It ends with its connection: see :meth:`close`.

    It is no shell and has none, unless it was started as a line for one. Read it, or it stands
    still when what it has written fills the way. At its timeout, if it has one, it is ended, and
    its reader gets a :class:`zareba.TimedOutError`. One task or thread may read and write; others
    may send signals and close it.
    """

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire
        self._alarm: Optional[AsyncAlarm] = None
        self._timeout: Optional[float] = None
        self._is_late = False
        self._parser = _frames.Parser()
        self._waiting: Deque[ProgramOutput] = deque()
        self._waiting_bytes = 0
        self._room = _frames.STDIN_WINDOW_BYTES
        self.exit_code: Optional[int] = None
        """As a shell would show it: the status, or 128 and the signal; `None` while it runs."""
        self.signal: Optional[int] = None
        """The signal that ended it."""

    @classmethod
    async def _start(
        cls,
        client: AsyncClient,
        session: str,
        program: Union[str, Sequence[str]],
        cwd: Optional[_checks.Path],
        env: Optional[Mapping[str, str]],
        stdin: bool,
        terminal: Optional[models.ProgramTerminal],
        timeout: Optional[float],
    ) -> AsyncProgram:
        words = _checks.program(program)
        is_line = isinstance(words, str)
        wanted = _checks.made(
            models.StartProgram,
            argv=None if is_line else words,
            command=words if is_line else None,
            cwd=_checks.directory(cwd),
            env=_checks.texts(env),
            terminal=terminal,
            stdin=bool(stdin),
        )
        call = _calls.call("start_program", session=session).carrying(wanted)
        asked = {"connection": "Upgrade", "upgrade": _frames.UPGRADE}
        wire, _ = await client.upgrade(call.within(_calls.LONG), asked)
        started = cls(wire)
        if timeout is not None:
            started._timeout = timeout
            started._alarm = AsyncAlarm(timeout, started._expire)
        return started

    async def __aenter__(self) -> AsyncProgram:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncProgram:
        return self

    async def __anext__(self) -> ProgramOutput:
        piece = await self.read()
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def read(self, timeout: Optional[float] = None) -> Optional[ProgramOutput]:
        """What it writes next; `None` once it has ended."""
        deadline = _deadline(timeout)
        while not self._waiting:
            if self.exit_code is not None:
                return None
            await self._receive(_left(deadline))
        piece = self._waiting.popleft()
        self._waiting_bytes -= len(piece.content)
        return piece

    async def write(self, content: Union[bytes, str]) -> None:
        """Gives it more to read, and waits while it does not read what it has."""
        rest = memoryview(_checks.content(content))
        while rest:
            sent = await self._send(rest)
            rest = rest[sent:]
            if not sent:
                await self._receive(None)

    async def end_input(self) -> None:
        """Tells it that there is no more to read."""
        await self._say(_frames.encode(_frames.END_OF_STDIN))

    async def send_signal(self, name: str) -> None:
        """Sends a signal to it and its process group: `INT`, `TERM`, `KILL` and some others."""
        await self._say(_frames.encode(_frames.SIGNAL, _checks.content(name, "name")))

    async def kill(self) -> None:
        """Kills it and its process group. One that has ended is no error."""
        await self.send_signal("KILL")

    async def resize(self, columns: int, rows: int) -> None:
        """Gives its terminal another size; without one nothing happens."""
        size = _checks.made(models.ProgramTerminal, cols=columns, rows=rows)
        try:
            content = struct.pack("!HH", size.rows, size.cols)
        except struct.error:
            raise _checks.invalid("a terminal has 1 to 65535 columns and rows") from None
        await self._say(_frames.encode(_frames.RESIZE, content))

    async def communicate(
        self,
        input: Union[bytes, str, None] = None,
        *,
        timeout: Optional[float] = None,
        on_stdout: Optional[OnBytes] = None,
        on_stderr: Optional[OnBytes] = None,
    ) -> ProgramResult:
        """Gives it all its input, if it was started to read any, and waits for its end.

        When the time is up it is ended, and :class:`zareba.TimedOutError` raised. `on_stdout` and
        `on_stderr` are called with each piece as it comes.
        """
        deadline = _deadline(timeout)
        rest = memoryview(b"" if input is None else _checks.content(input, "input"))
        _checks.listener(on_stdout, "on_stdout")
        _checks.listener(on_stderr, "on_stderr")
        kept = {"stdout": _Kept(), "stderr": _Kept()}
        listeners = {"stdout": on_stdout, "stderr": on_stderr}
        try:
            while self.exit_code is None or self._waiting:
                if rest:
                    rest = rest[await self._send(rest) :]
                    if not rest:
                        await self.end_input()
                if not self._waiting:
                    await self._receive(_left(deadline))
                while self._waiting:
                    piece = self._waiting.popleft()
                    self._waiting_bytes -= len(piece.content)
                    kept[piece.stream].add(piece.content)
                    await async_tell(listeners[piece.stream], piece.content)
        except TimedOutError:
            raise _late(self._timeout if self._is_late else timeout) from None
        finally:
            await self.close()
        return ProgramResult(
            exit_code=-1 if self.exit_code is None else self.exit_code,
            stdout=kept["stdout"].content(),
            stderr=kept["stderr"].content(),
            truncated=any(each.is_cut for each in kept.values()),
        )

    async def close(self) -> None:
        """Ends it, if it has not ended: politely at first, and two seconds later without asking."""
        if self._alarm is not None:
            self._alarm.cancel()
        await self._wire.close()

    async def _expire(self) -> None:
        """Ends it at its own timeout, also without a reader."""
        self._is_late = self.exit_code is None
        await self._wire.close()

    async def _send(self, rest: memoryview) -> int:
        """Sends as much as the program has room for, and says how much that was."""
        length = min(len(rest), self._room, _frames.FRAME_BYTES_MAX)
        if length:
            self._room -= length
            await self._say(_frames.encode(_frames.STDIN, bytes(rest[:length])))
        return length if self.exit_code is None else len(rest)

    async def _say(self, frame: bytes) -> None:
        if self.exit_code is not None:
            return
        try:
            await self._wire.write(frame)
        except DisconnectedError:
            # It may have ended at this very moment, which is then what there is to read.
            while self.exit_code is None:
                await self._receive(None)

    async def _receive(self, timeout: Optional[float]) -> None:
        """Takes what comes next."""
        try:
            piece = await self._wire.read(timeout)
        except DisconnectedError:
            if self._is_late:
                raise _late(self._timeout) from None
            raise
        if not piece and self._is_late:
            raise _late(self._timeout)
        if not piece:
            raise DisconnectedError(
                "the connection to the program ended before the program did",
                code="disconnected",
                may_have_happened=True,
            )
        for frame in self._parser.feed(piece):
            self._heed(frame)

    def _heed(self, frame: _frames.Frame) -> None:
        if frame.kind == _frames.TAKEN:
            self._room = min(self._room + frame.number(), _frames.STDIN_WINDOW_BYTES)
        elif frame.kind == _frames.EXIT:
            told = models.TerminalExit.model_validate(frame.document())
            self.signal = told.signal
            self.exit_code = 128 + told.signal if told.signal is not None else told.code or 0
            if self._alarm is not None:
                self._alarm.cancel()
        elif frame.kind == _frames.ERROR:
            message = str(frame.document().get("message", ""))
            raise InternalError(f"nobody knows what became of the program: {message}")
        else:
            self._waiting_bytes += len(frame.content)
            if self._waiting_bytes > _WAITING_BYTES_MAX:
                raise BusyError("the program writes, and nobody reads it", code="conflict")
            stream = "stdout" if frame.kind == _frames.STDOUT else "stderr"
            self._waiting.append(ProgramOutput(stream, frame.content))


class _Kept:
    """The beginning of a stream."""

    def __init__(self) -> None:
        self._content = bytearray()
        self.is_cut = False

    def add(self, piece: bytes) -> None:
        room = OUTPUT_BYTES_MAX - len(self._content)
        self.is_cut = self.is_cut or len(piece) > room
        self._content += piece[:room]

    def content(self) -> bytes:
        return bytes(self._content)


def _late(timeout: Optional[float]) -> TimedOutError:
    return TimedOutError(
        f"the program has not ended within {timeout} seconds, and was ended",
        code="timeout",
        may_have_happened=True,
    )


def _deadline(timeout: Optional[float]) -> Optional[float]:
    wait = _checks.wait(timeout)
    return None if wait is None else time.monotonic() + wait


def _left(deadline: Optional[float]) -> Optional[float]:
    """Seconds until then; a connection takes none for no limit at all."""
    return None if deadline is None else max(deadline - time.monotonic(), 0.001)
