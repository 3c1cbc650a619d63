"""A proxy between a client and the real server, which breaks connections when it is told to."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from typing import Callable, List, Optional, Tuple

Cut = Callable[[bytes, int], bool]
"""Told the first request of a connection and its number: whether its answer is to be lost."""


class Proxy:
    """Passes bytes both ways. It is its own context, at whose end all connections are closed."""

    def __init__(self, target: Tuple[str, int], cut: Cut, answered: bool = True) -> None:
        self._answered = answered
        self._target = target
        self._cut = cut
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: List[socket.socket] = []
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: List[bytes] = []
        """The heads of all requests that came first on their connection."""

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.break_all()

    def break_all(self) -> None:
        """Cuts every connection that is open."""
        with self._lock:
            connections, self._open = self._open, []
        for each in connections:
            _end(each)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        first = read_request(near)
        if not first:
            return near.close()
        far = socket.create_connection(self._target)
        with self._lock:
            self._open += [near, far]
            self.requests.append(first)
            number = len(self.requests)
        far.sendall(self._renamed(first))
        threading.Thread(target=_pass, args=(near, far, self._renamed), daemon=True).start()
        if self._cut(first, number):
            # It was acted on, or is being acted on; the answer is lost.
            if self._answered:
                far.recv(1)
            return _end(near)
        _pass(far, near, lambda piece: piece)

    def _renamed(self, piece: bytes) -> bytes:
        """The server answers to its own name only. A head comes in one piece."""
        ours = self.url.rsplit("/", 1)[1].encode()
        return piece.replace(ours, f"{self._target[0]}:{self._target[1]}".encode())


def read_request(connection: socket.socket) -> bytes:
    """A request with its body, as far as that says how long it is."""
    request = bytearray()
    missing: Optional[int] = None
    while missing is None or missing > 0:
        piece = connection.recv(65536)
        if not piece:
            break
        request += piece
        if missing is not None:
            missing -= len(piece)
        elif b"\r\n\r\n" in request:
            head, _, body = request.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            missing = int(length.group(1) if length else 0) - len(body)
    return bytes(request)


def _pass(source: socket.socket, target: socket.socket, change: Callable[[bytes], bytes]) -> None:
    try:
        while True:
            piece: Optional[bytes] = source.recv(65536)
            if not piece:
                break
            target.sendall(change(piece))
    except OSError:
        pass
    _end(target)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
