"""The client of CAMEL's contract, against small servers that behave as real ones may."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterator, List

import pytest

from zareba import DisconnectedError, TimedOutError, ToolError
from zareba.camel._wire import Wire

TOKEN = "0123456789abcdef0123456789abcdef"


class Handler(BaseHTTPRequestHandler):
    """Echoes arguments, and does what the tool's name says."""

    protocol_version = "HTTP/1.1"
    server: Echo

    def setup(self) -> None:
        super().setup()
        self.server.connections.append(self)

    def do_POST(self) -> None:
        self.server.heads.append(self.headers)
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/hang":
            self.server.let_go.wait(30)
        if self.path == "/vanish":
            self.close_connection = True
            return
        status = 500 if self.path == "/fail" else 200
        body = json.dumps({"output": json.dumps(asked["args"], ensure_ascii=False)}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        # Without a word, as a server may whose patience with idle connections has ended.
        self.close_connection = self.path == "/leave"

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


class Echo(ThreadingHTTPServer):
    """Such a server, which knows who came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.connections: List[Handler] = []
        self.heads: List[Any] = []
        self.let_go = threading.Event()
        self.ended = threading.Semaphore(0)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.ended.release()


@pytest.fixture
def server() -> Iterator[Echo]:
    made = Echo()
    serving = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
    serving.start()
    try:
        yield made
    finally:
        made.let_go.set()
        made.shutdown()
        made.server_close()
        serving.join()


def echo(wire: Wire, name: str, *args: Any, timeout: float = 10) -> Any:
    return wire.call(name, list(args), {}, False, timeout).value


def test_connections_are_kept(server: Echo) -> None:
    wire = Wire("127.0.0.1", server.server_port, None)
    for text in ("a", "é", "", "\N{SNOWMAN}" * 100_000):
        assert echo(wire, "echo", text) == [text]
    with pytest.raises(ToolError):
        echo(wire, "fail")
    assert echo(wire, "echo", 1) == [1]
    assert len(server.connections) == 1
    assert "Authorization" not in server.heads[0]
    wire.close()
    assert echo(wire, "echo", 2) == [2]
    assert len(server.connections) == 2
    wire.close()


def test_a_connection_that_the_server_has_closed_is_replaced(server: Echo) -> None:
    wire = Wire("127.0.0.1", server.server_port, None)
    for number in range(3):
        assert echo(wire, "leave", number) == [number]
        # Its end is there before anything is asked again.
        assert server.ended.acquire(timeout=30)
    assert len(server.connections) == 3
    wire.close()


def test_threads_have_connections_of_their_own(server: Echo) -> None:
    wire = Wire("127.0.0.1", server.server_port, None)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: echo(wire, "echo", number), range(200)))
    assert answers == [[number] for number in range(200)]
    assert len(server.connections) <= 8
    wire.close()


def test_what_takes_too_long_and_what_is_not_there_are_told_apart(server: Echo) -> None:
    wire = Wire("127.0.0.1", server.server_port, None)
    with pytest.raises(TimedOutError) as late:
        echo(wire, "hang", timeout=0.2)
    assert late.value.may_have_happened
    # The answer that comes after all is nobody's.
    server.let_go.set()
    assert echo(wire, "echo", 1) == [1]
    wire.close()
    port = server.server_port
    server.shutdown()
    server.server_close()
    with pytest.raises(DisconnectedError, match="cannot be reached"):
        echo(Wire("127.0.0.1", port, None), "echo")


@pytest.mark.parametrize("host, key", [("127.0.0.1", TOKEN), (f"any:{TOKEN}@127.0.0.1", None)])
def test_a_token_is_shown_and_not_told(server: Echo, host: str, key: str) -> None:
    wire = Wire(host, server.server_port, key)
    assert echo(wire, "echo") == []
    assert server.heads[0]["Authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in wire.url
    wire.close()


def test_what_was_asked_for_may_have_happened(server: Echo) -> None:
    wire = Wire("127.0.0.1", server.server_port, None)
    with pytest.raises(DisconnectedError, match="went away") as gone:
        echo(wire, "vanish")
    assert gone.value.may_have_happened
    assert len(server.heads) == 1
    wire.close()


def test_a_key_is_as_it_stands_in_its_file(server: Echo) -> None:
    wire = Wire("127.0.0.1", server.server_port, f"{TOKEN}\n")
    assert echo(wire, "echo") == []
    assert server.heads[0]["Authorization"] == f"Bearer {TOKEN}"
    wire.close()


@pytest.mark.parametrize("host, key", [("127.0.0.1", "a\r\nX: y"), ("127.0.0.1\r\nX: y", None)])
def test_nothing_can_be_smuggled_into_a_request(host: str, key: str) -> None:
    with pytest.raises(ValueError, match="spaces"):
        Wire(host, 1, key)
