"""The port of this machine that leads to a server on a socket."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import List
from urllib.parse import urlsplit

from zareba import _relay

SHARED = b"GET /p/0123456789abcdef0123/page HTTP/1.1\r\nHost: localhost\r\n\r\n"


def asked_through(path: Path, request: bytes) -> bytes:
    parts = urlsplit(_relay.to(str(path)))
    assert parts.hostname == "127.0.0.1"
    with socket.create_connection(("127.0.0.1", parts.port or 0), timeout=30) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while True:
            piece = client.recv(4096)
            if not piece:
                return answer
            answer += piece


def test_only_shared_ports_are_reached_and_one_request_at_a_time(tmp_path: Path) -> None:
    seen: List[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while True:
                    piece = connection.recv(4096)
                    if not piece:
                        break
                    seen.append(piece)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nfrom inside")

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        for other in (b"GET /v1/sessions", b"GET /p/short/", b"GET /x/p/0123456789abcdef0123/"):
            refused = asked_through(tmp_path / "s", other + b" HTTP/1.1\r\n\r\n")
            assert refused.startswith(b"HTTP/1.1 404 ")
        assert asked_through(tmp_path / "s", SHARED).endswith(b"from inside")
        server.join(30)
    # A second request on this connection would not have been looked at, so there is none.
    expected = SHARED.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nConnection: close\r\n")
    assert b"".join(seen) == expected
