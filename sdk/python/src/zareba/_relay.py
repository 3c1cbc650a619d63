"""A port of this machine for a server that has a socket: programs that know of ports alone use it.

Only shared ports of sandboxes, and pages that this process has named, can be reached through it, by
unguessable addresses. It ends with this process.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import threading
from typing import Dict, Optional

from ._place import Place

_SHARED = re.compile(rb"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /p/[0-9A-Za-z_-]{16,}/")
_PAGE = re.compile(rb"GET /p/([0-9A-Za-z_-]{16,})/page HTTP/")
_HEAD_BYTES = 8192
"""What is read of a connection to know what it wants."""
_PIECE_BYTES = 64 * 1024
_CONNECTIONS_MAX = 256
_ASK_TIMEOUT = 30.0
"""Seconds that a client has to say what it wants."""

_lock = threading.Lock()
_addresses: Dict[str, str] = {}
_pages: Dict[bytes, bytes] = {}
"""What is asked for in place of a page, by the unguessable part of its address."""


def to(path: str) -> str:
    """The address that leads to a server's socket, made when there is none."""
    with _lock:
        if path not in _addresses:
            listener = socket.create_server(("127.0.0.1", 0), backlog=64)
            threading.Thread(target=_serve, args=(listener, path), daemon=True).start()
            _addresses[path] = f"http://127.0.0.1:{listener.getsockname()[1]}"
        return _addresses[path]


def page(place: Place, target: str) -> str:
    """The address of one page of a server with a socket, which needs no key."""
    # The target is one of ours, and the key was sent by then: neither ends the line early.
    asked = f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    asked += f"authorization: Bearer {place.key}\r\n\r\n" if place.key else "\r\n"
    content = asked.encode("ascii")
    address = to(place.socket or "")
    with _lock:
        token = next((each for each, known in _pages.items() if known == content), None)
        if token is None:
            token = secrets.token_urlsafe(24).encode()
            _pages[token] = content
    return f"{address}/p/{token.decode()}/page"


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
            page = _page(asked)
            if page is None and not _SHARED.match(asked):
                client.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                return
            client.settimeout(None)
            server.connect(path)
            server.sendall(page or _alone(asked))
            back = threading.Thread(target=_pump, args=(server, client), daemon=True)
            back.start()
            _pump(client, server)
            back.join()
        finally:
            places.release()


def _page(asked: bytes) -> Optional[bytes]:
    """What to ask the server for, if a page was asked for: nothing of the caller's own request."""
    match = _PAGE.match(asked)
    return None if match is None else _pages.get(match.group(1))


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
    _pages.clear()


os.register_at_fork(after_in_child=_forget)
