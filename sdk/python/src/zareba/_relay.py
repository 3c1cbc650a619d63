"""A port of this machine for a server that has a socket: programs that know of ports alone use it.

Only shared ports of sandboxes can be reached through it, by an address that nobody can guess. It
ends with this process.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
from typing import Dict

_SHARED = re.compile(rb"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /p/[0-9A-Za-z_-]{16,}/")
_HEAD_BYTES = 8192
"""What is read of a connection to know what it wants."""
_PIECE_BYTES = 64 * 1024
_CONNECTIONS_MAX = 256
_ASK_TIMEOUT = 30.0
"""Seconds that a client has to say what it wants."""

_lock = threading.Lock()
_addresses: Dict[str, str] = {}


def to(path: str) -> str:
    """The address that leads to a server's socket, made when there is none."""
    with _lock:
        if path not in _addresses:
            listener = socket.create_server(("127.0.0.1", 0), backlog=64)
            threading.Thread(target=_serve, args=(listener, path), daemon=True).start()
            _addresses[path] = f"http://127.0.0.1:{listener.getsockname()[1]}"
        return _addresses[path]


def _serve(listener: socket.socket, path: str) -> None:
    places = threading.BoundedSemaphore(_CONNECTIONS_MAX)
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        places.acquire()
        threading.Thread(target=_relay, args=(client, path, places), daemon=True).start()


def _relay(client: socket.socket, path: str, places: threading.BoundedSemaphore) -> None:
    with contextlib.suppress(OSError), client, socket.socket(socket.AF_UNIX) as server:
        try:
            client.settimeout(_ASK_TIMEOUT)
            asked = _first(client)
            if not _SHARED.match(asked):
                client.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                return
            client.settimeout(None)
            server.connect(path)
            server.sendall(_alone(asked))
            back = threading.Thread(target=_pump, args=(server, client), daemon=True)
            back.start()
            _pump(client, server)
            back.join()
        finally:
            places.release()


def _first(client: socket.socket) -> bytes:
    """The head of the first request, and what came with it."""
    asked = b""
    while b"\r\n\r\n" not in asked and len(asked) < _HEAD_BYTES:
        piece = client.recv(_HEAD_BYTES)
        if not piece:
            break
        asked += piece
    return asked


def _alone(asked: bytes) -> bytes:
    """The same request, as the only one of its connection: what follows was not looked at."""
    line, end, rest = asked.partition(b"\r\n")
    is_upgrade = re.search(rb"\r\nupgrade *:", asked, re.IGNORECASE) is not None
    return asked if is_upgrade else line + end + b"Connection: close\r\n" + rest


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Carries bytes until their end, and says that it has come."""
    with contextlib.suppress(OSError):
        while True:
            piece = source.recv(_PIECE_BYTES)
            if not piece:
                break
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _forget() -> None:
    """In a child that was forked: the threads are its parent's."""
    global _lock
    _lock = threading.Lock()
    _addresses.clear()


os.register_at_fork(after_in_child=_forget)
