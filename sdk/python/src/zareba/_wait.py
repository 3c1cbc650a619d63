"""The few things that a client which blocks and one which does not do differently."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import queue
import socket
import threading
import time
from typing import Any, Awaitable, Callable, Coroutine, Dict, Generic, Optional, TypeVar

Outcome = TypeVar("Outcome")
Told = TypeVar("Told")
Thing = TypeVar("Thing")

Lock = threading.Lock

cancelled = KeyboardInterrupt
"""What ends the wait of somebody who does not want to wait any longer."""
async_cancelled = asyncio.CancelledError


class Owned(Generic[Thing]):
    """Something that all threads of a process share, and a copy of the process must not use."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._thing: Optional[Thing] = None

    def ours(self) -> Optional[Thing]:
        """What is ours, if there is one."""
        return self._thing if self._owner == os.getpid() else None

    def keep(self, thing: Thing) -> Thing:
        """Makes it ours."""
        self._owner, self._thing = os.getpid(), thing
        return thing

    def take(self) -> Optional[Thing]:
        """What is ours, which is then nobody's."""
        thing, self._thing = self.ours(), None
        return thing

    def forget(self) -> None:
        """Nobody has one any more."""
        self._thing = None


class AsyncOwned(Generic[Thing]):
    """The same, one for each event loop: no other can wait for what belongs to one."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._things: Dict[asyncio.AbstractEventLoop, Thing] = {}

    def ours(self) -> Optional[Thing]:
        """What is ours, if there is one."""
        if self._owner != os.getpid():
            self._owner, self._things = os.getpid(), {}
        return self._things.get(asyncio.get_running_loop())

    def keep(self, thing: Thing) -> Thing:
        """Makes it ours."""
        # Nothing tells of the end of a loop, so what belonged to one that is over is dropped now.
        for loop in list(self._things):
            if loop.is_closed():
                self._things.pop(loop, None)
        self._things[asyncio.get_running_loop()] = thing
        return thing

    def take(self) -> Optional[Thing]:
        """What is ours, which is then nobody's."""
        thing = self.ours()
        self._things.pop(asyncio.get_running_loop(), None)
        return thing

    def forget(self) -> None:
        """Nobody has one any more."""
        self._things = {}


class AsyncLock:
    """A lock among the tasks of an event loop, whichever it is used in."""

    def __init__(self) -> None:
        self._locks: AsyncOwned[asyncio.Lock] = AsyncOwned()

    async def __aenter__(self) -> None:
        await (self._locks.ours() or self._locks.keep(asyncio.Lock())).acquire()

    async def __aexit__(self, *_: object) -> None:
        lock = self._locks.ours()
        if lock is not None:
            lock.release()


class Turns:
    """So many may go on at a time; others wait until one of these is done."""

    def __init__(self, count: int) -> None:
        # A semaphore would do, but is written in Python and takes several times as long.
        self._free: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(count):
            self._free.put(None)

    def take(self, timeout: Optional[float]) -> bool:
        """Whether it is one's turn within some seconds. Whoever has one gives it back."""
        try:
            self._free.get(timeout=timeout)
        except queue.Empty:
            return False
        return True

    def give(self) -> None:
        """Lets the next one go on."""
        self._free.put(None)


class AsyncTurns:
    """The same for tasks, in the event loop in which it is first used."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._free: Optional[asyncio.Semaphore] = None

    async def take(self, timeout: Optional[float]) -> bool:
        """Whether it is one's turn within some seconds. Whoever has one gives it back."""
        if self._free is None:
            self._free = asyncio.Semaphore(self._count)
        if not self._free.locked():
            return await self._free.acquire()
        try:
            return await asyncio.wait_for(self._free.acquire(), timeout)
        except asyncio.TimeoutError:
            return False

    def give(self) -> None:
        """Lets the next one go on."""
        if self._free is not None:
            self._free.release()


class Alarm:
    """Does something when some time is over, beside everything else, unless it is cancelled."""

    def __init__(self, seconds: float, ring: Callable[[], object]) -> None:
        self._timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), ring)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Nothing is done any more."""
        self._timer.cancel()


class AsyncAlarm:
    """The same in the event loop in which it is made."""

    def __init__(self, seconds: float, ring: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self._ring = ring
        self._task: Optional[asyncio.Task[object]] = None
        self._timer = asyncio.get_running_loop().call_later(seconds, self._start)

    def cancel(self) -> None:
        """Nothing is done any more."""
        self._timer.cancel()

    def _start(self) -> None:
        # Kept, because a task without a reference may be collected.
        self._task = asyncio.get_running_loop().create_task(self._ring())


def pause(seconds: float) -> None:
    """Waits."""
    time.sleep(seconds)


async def async_pause(seconds: float) -> None:
    """Waits, while others go on."""
    await asyncio.sleep(seconds)


def beside(work: Callable[[], Outcome]) -> Outcome:
    """Does work that blocks."""
    return work()


async def async_beside(work: Callable[[], Outcome]) -> Outcome:
    """Does work that blocks, while others go on."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


def in_the_end(work: Callable[[], object]) -> None:
    """Does what has to be done although its caller wants to go."""
    work()


async def async_in_the_end(work: Callable[[], Awaitable[object]]) -> None:
    """The same, which another cancellation does not stop half-way."""
    await asyncio.shield(asyncio.ensure_future(work()))


def tell(listener: Optional[Callable[[Told], Any]], news: Told) -> None:
    """Calls whoever wants to know."""
    if listener is not None:
        listener(news)


async def async_tell(listener: Optional[Callable[[Told], Any]], news: Told) -> None:
    """Calls whoever wants to know, and waits if it must be waited for."""
    if listener is not None:
        outcome = listener(news)
        if inspect.isawaitable(outcome):
            await outcome


def hang_up(stream: Any) -> None:
    """Wakes whoever reads from a connection that is about to be closed."""
    connection = stream.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


async def async_hang_up(stream: Any) -> None:
    """Does nothing: closing wakes those who read in the same event loop."""
