# Made by scripts/unasync.py from ../_async/connections.py; change that one.
"""Connections to a server with nothing on the way: no proxy, and no encryption."""

from __future__ import annotations

import time
from typing import Iterable, List, Mapping, Optional, Tuple

import httpcore

from .. import _http1
from .._http1 import Answer
from .._place import Address
from .._wait import Turns

_CONNECT_TIMEOUT = 10.0
_CONNECTIONS_MAX = 200
_IDLE_MAX = 64
"""Connections that are kept for later; more than that are closed after their answer."""
_IDLE_SECONDS = 4.0
"""For how long they are: most servers close theirs after 5 or more, and a request must not
meet the end of its connection."""
_READ_BYTES = 64 * 1024


class Connections:
    """Connections that are kept from one request to the next.

    An action takes less time than the usual library needs for its request, so these are our own.
    Any number of threads or tasks may ask; each has a connection to itself meanwhile. What goes
    wrong is told by the exceptions of `httpcore`: a request whose writing has failed has not been
    understood, and so not been acted on.
    """

    def __init__(self, address: Address, headers: Mapping[str, str]) -> None:
        self._address = address
        self._head = _http1.fields({"host": address.name, **headers})
        self._turns = Turns(_CONNECTIONS_MAX)
        self._idle: List[Tuple[float, httpcore.NetworkStream]] = []

    def close(self) -> None:
        """Closes the connections. Others are made when something is asked again."""
        while self._idle:
            try:
                _, stream = self._idle.pop()
            except IndexError:
                # Another thread was faster, and has it for itself.
                break
            stream.close()

    def ask(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        content: Optional[bytes],
        timeout: Optional[float],
    ) -> Answer:
        """Sends a request, once. The time is that without any progress."""
        head = self._head + _http1.fields(headers)
        request = _http1.request(method, self._address.prefix + target, head, content)
        if not self._turns.take(timeout):
            raise httpcore.PoolTimeout(f"all {_CONNECTIONS_MAX} connections are in use")
        try:
            stream = self._connection(timeout)
            is_kept = False
            try:
                answer = _exchange(stream, request, timeout)
                is_kept = not answer.is_last and len(self._idle) < _IDLE_MAX
            finally:
                if is_kept:
                    self._idle.append((time.monotonic(), stream))
                else:
                    stream.close()
        finally:
            self._turns.give()
        return answer

    def _connection(self, timeout: Optional[float]) -> httpcore.NetworkStream:
        """One that was kept and is still open, or a new one."""
        while self._idle:
            try:
                since, stream = self._idle.pop()
            except IndexError:
                # Another thread was faster.
                break
            is_fresh = time.monotonic() - since < _IDLE_SECONDS
            # Nothing but an end can come where nothing was asked.
            if is_fresh and not stream.get_extra_info("is_readable"):
                return stream
            stream.close()
        return self._connect(timeout)

    def _connect(self, timeout: Optional[float]) -> httpcore.NetworkStream:
        patience = _CONNECT_TIMEOUT if timeout is None else min(timeout, _CONNECT_TIMEOUT)
        backend = httpcore.SyncBackend()
        if self._address.socket is not None:
            return backend.connect_unix_socket(self._address.socket, patience)
        return backend.connect_tcp(self._address.host, self._address.port, patience)


def _exchange(
    stream: httpcore.NetworkStream, request: Iterable[bytes], timeout: Optional[float]
) -> Answer:
    try:
        for piece in request:
            stream.write(piece, timeout)
    except httpcore.WriteError as error:
        # The server may have told why before it hung up.
        try:
            return (_read(stream, timeout))._replace(is_last=True)
        except (httpcore.NetworkError, httpcore.RemoteProtocolError):
            raise error from None
    return _read(stream, timeout)


def _read(stream: httpcore.NetworkStream, timeout: Optional[float]) -> Answer:
    reader = _http1.AnswerReader()
    while True:
        answer = reader.feed(stream.read(_READ_BYTES, timeout))
        if answer is not None:
            return answer
