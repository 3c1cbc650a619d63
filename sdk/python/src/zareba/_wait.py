"""The few things that a client which blocks and one which does not do differently."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import queue
import socket
import threading
import time
from typing import Any, Callable, Optional, TypeVar

Outcome = TypeVar("Outcome")
Told = TypeVar("Told")

Lock = threading.Lock


class AsyncLock:
    """A lock that belongs to the event loop in which it is first used, not to where it was made."""

    def __init__(self) -> None:
        self._lock: Optional[asyncio.Lock] = None

    async def __aenter__(self) -> None:
        if self._lock is None:
            self._lock = asyncio.Lock()
        await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.release()


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
