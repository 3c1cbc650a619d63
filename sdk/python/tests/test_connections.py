"""Our own connections, against a server that does with each of them what a test says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, List, Optional

import pytest

from proxy import read_request
from zareba import AsyncClient, Client, DisconnectedError, InvalidError, TimedOutError
from zareba._calls import Call, Repeat
from zareba._place import Address, Place, checked

LONG = b"x" * 20_000_000
"""More than any socket takes without a reader."""

Script = Callable[[socket.socket, int], None]
"""What to do with a connection, and its number from 1 on."""


def told(content: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(content)}\r\n\r\n".encode() + content


def echo(connection: socket.socket, _: int) -> None:
    """Answers each request with its own path."""
    while True:
        request = read_request(connection)
        if not request:
            return
        connection.sendall(told(request.split()[1]))


class Peer:
    """A server on a port, or on a socket in the file system."""

    def __init__(self, script: Script, path: Optional[Path] = None) -> None:
        self._script = script
        if path is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(path))
            self._listener.listen()
            self.url = f"unix:{path}"
        self._threads = [threading.Thread(target=self._accept)]
        self._open: List[socket.socket] = []
        self.connections = 0
        self.ended = threading.Semaphore(0)
        """One more for each connection that is over."""

    def __enter__(self) -> Peer:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        # Threads that wait are woken by this, and not by closing.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection, self.connections))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection:
            self._script(connection, number)
        self.ended.release()


def ask(client: Client, path: str = "/", **changes: object) -> bytes:
    return client.send(Call("POST", path, **changes)).content  # type: ignore[arg-type]


@pytest.mark.parametrize("is_file", [False, True], ids=["port", "socket"])
def test_a_connection_is_kept(is_file: bool, tmp_path: Path) -> None:
    with Peer(echo, tmp_path / "s" if is_file else None) as peer:
        with Client(peer.url, "key") as client:
            assert [ask(client, f"/{n}") for n in range(5)] == [b"/%d" % n for n in range(5)]
        assert peer.connections == 1


def test_paths_are_below_that_of_the_server() -> None:
    with Peer(echo) as peer, Client(f"{peer.url}/zareba/", "key") as client:
        assert ask(client, "/v1") == b"/zareba/v1"


def test_one_that_was_idle_for_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zareba._sync.connections._IDLE_SECONDS", 0.0)
    with Peer(echo) as peer, Client(peer.url, "key") as client:
        assert [ask(client, f"/{n}") for n in range(3)] == [b"/0", b"/1", b"/2"]
        assert peer.connections == 3


def test_one_that_the_server_has_closed_is_not_used() -> None:
    def once(connection: socket.socket, _: int) -> None:
        connection.sendall(told(read_request(connection).split()[1]))

    with Peer(once) as peer, Client(peer.url, "key") as client:
        for number in range(3):
            assert ask(client, f"/{number}") == b"/%d" % number
            assert peer.ended.acquire(timeout=30)
        assert peer.connections == 3


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_copy_of_the_process_has_connections_of_its_own() -> None:
    with Peer(echo) as peer, Client(peer.url, "key") as client:
        assert ask(client, "/here") == b"/here"
        child = os.fork()
        if child == 0:
            # The test goes on in one process only, whatever happens in the other.
            status = 1
            try:
                status = 0 if ask(client, "/there") == b"/there" else 2
            finally:
                os._exit(status)
        assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 0
        assert ask(client, "/again") == b"/again"
        assert peer.connections == 2


def test_threads_have_connections_of_their_own() -> None:
    with Peer(echo) as peer, Client(peer.url, "key") as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: ask(client, f"/{n}"), range(400)))
        assert answers == [b"/%d" % n for n in range(400)]
        assert peer.connections <= 8


async def asked(client: AsyncClient, *paths: str) -> List[bytes]:
    calls = (client.send(Call("POST", path)) for path in paths)
    return [answer.content for answer in await asyncio.gather(*calls)]


@pytest.mark.parametrize("is_file", [False, True], ids=["port", "socket"])
def test_an_event_loop_after_another_has_connections_of_its_own(
    is_file: bool, tmp_path: Path
) -> None:
    with Peer(echo, tmp_path / "s" if is_file else None) as peer:
        client = AsyncClient(peer.url, "key")
        for count in range(1, 4):
            # Two at once, so that one waits for the other, too.
            assert asyncio.run(asked(client, "/a", "/b")) == [b"/a", b"/b"]
            assert peer.connections == 2 * count
        assert len(client._links._things) == 1, "what belonged to loops that are over is kept"


def test_an_event_loop_beside_another_has_connections_of_its_own() -> None:
    here = threading.Barrier(2, timeout=30)

    def ask_often(client: AsyncClient) -> None:
        with contextlib.closing(asyncio.new_event_loop()) as loop:
            for _ in range(20):
                here.wait()
                assert loop.run_until_complete(asked(client, "/a", "/b")) == [b"/a", b"/b"]
            loop.run_until_complete(client.close())

    with Peer(echo) as peer, ThreadPoolExecutor(2) as pool:
        client = AsyncClient(peer.url, "key")
        for done in [pool.submit(ask_often, client) for _ in range(2)]:
            done.result(60)
        assert peer.connections == 4


def hanging_up(connection: socket.socket, number: int) -> None:
    """Reads a byte of the first request, and hangs up."""
    if number == 1:
        connection.recv(1)
    else:
        echo(connection, number)


def test_what_was_not_written_whole_is_sent_again() -> None:
    with Peer(hanging_up) as peer, Client(peer.url, "key") as client:
        assert ask(client, "/long", content=LONG) == b"/long"
        assert peer.connections == 2


def forgetting(connection: socket.socket, number: int) -> None:
    """Reads the first request, and hangs up."""
    if number == 1:
        read_request(connection)
    else:
        echo(connection, number)


def test_what_was_written_whole_is_sent_again_only_if_it_may_be() -> None:
    with Peer(forgetting) as peer, Client(peer.url, "key") as client:
        with pytest.raises(DisconnectedError) as lost:
            ask(client)
        assert lost.value.may_have_happened and peer.connections == 1
    with Peer(forgetting) as peer, Client(peer.url, "key") as client:
        assert ask(client, "/again", repeat=Repeat.ALWAYS) == b"/again"
        assert peer.connections == 2


def test_a_refusal_is_read_although_the_request_was_not(tmp_path: Path) -> None:
    is_read = threading.Event()

    def refuse(connection: socket.socket, _: int) -> None:
        connection.recv(1)
        connection.sendall(told(b"", "413 Content Too Large"))
        connection.shutdown(socket.SHUT_RDWR)
        is_read.wait(30)

    with Peer(refuse, tmp_path / "s") as peer, Client(peer.url, "key") as client:
        with pytest.raises(InvalidError) as refused:
            ask(client, content=LONG)
        is_read.set()
        assert refused.value.status == 413 and peer.connections == 1


def late(connection: socket.socket, number: int) -> None:
    """Answers the first request when nobody waits for it any more."""
    if number > 1:
        return echo(connection, number)
    request = read_request(connection)
    assert connection.recv(1) == b""
    with connection.dup() as same:
        same.sendall(told(request.split()[1]))


def test_an_answer_that_comes_too_late_is_nobodys() -> None:
    with Peer(late) as peer, Client(peer.url, "key") as client:
        with pytest.raises(TimedOutError) as slow:
            ask(client, "/slow", deadline=0.2)
        assert slow.value.may_have_happened
        assert ask(client, "/next") == b"/next"
        assert peer.connections == 2


def test_an_answer_that_nobody_waits_for_is_nobodys() -> None:
    async def test(url: str) -> bytes:
        async with AsyncClient(url, "key") as client:
            asked = asyncio.ensure_future(client.send(Call("POST", "/slow")))
            await asyncio.sleep(0.2)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            return (await client.send(Call("POST", "/next"))).content

    with Peer(late) as peer:
        assert asyncio.run(test(peer.url)) == b"/next"
        assert peer.connections == 2


def test_tasks_share_a_number_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zareba._async.connections._CONNECTIONS_MAX", 3)

    async def test(url: str) -> List[bytes]:
        async with AsyncClient(url, "key") as client:
            calls = [client.send(Call("POST", f"/{number}")) for number in range(100)]
            return [answer.content for answer in await asyncio.gather(*calls)]

    with Peer(echo) as peer:
        assert asyncio.run(test(peer.url)) == [b"/%d" % number for number in range(100)]
        assert peer.connections <= 3


def test_whoever_gets_no_connection_in_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("_sync", "_async"):
        monkeypatch.setattr(f"zareba.{module}.connections._CONNECTIONS_MAX", 1)
    came, let_go = threading.Event(), threading.Event()

    def hold(connection: socket.socket, _: int) -> None:
        read_request(connection)
        came.set()
        let_go.wait(30)
        connection.sendall(told(b"held"))

    call = Call("POST", "/", deadline=0.05)
    with Peer(hold) as peer, Client(peer.url, "key") as client, ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, client)
        assert came.wait(30)
        with pytest.raises(DisconnectedError, match="in use") as full:
            client.send(call)
        assert not full.value.may_have_happened
        let_go.set()
        assert first.result(30) == b"held"
    came.clear()
    let_go.clear()

    async def test(url: str) -> None:
        async with AsyncClient(url, "key") as client:
            first = asyncio.ensure_future(client.send(Call("POST", "/")))
            await asyncio.get_running_loop().run_in_executor(None, came.wait, 30)
            with pytest.raises(DisconnectedError, match="in use"):
                await client.send(call)
            let_go.set()
            assert (await first).content == b"held"

    with Peer(hold) as peer:
        asyncio.run(test(peer.url))


def test_nobody_there_is_told_as_that(tmp_path: Path) -> None:
    with Client(f"unix:{tmp_path}/none", "key") as client:
        with pytest.raises(DisconnectedError, match="cannot be reached") as missing:
            ask(client)
        assert not missing.value.may_have_happened


@pytest.mark.parametrize("key", ["a\r\nx: y", "\N{SNOWMAN}"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with Client("http://127.0.0.1:1", key) as client, pytest.raises(InvalidError) as refused:
        client.health()
    assert key not in str(refused.value)


def test_only_what_is_near_and_plain_is_reached_without_the_library() -> None:
    for url in ("https://localhost", "http://example.org", "http://me:secret@localhost:1"):
        assert Place(url).address is None, url
    assert Place("http://[::1]:8/a/").address == Address("[::1]:8", "::1", 8, None, "/a")
    assert Place("http://localhost").address == Address("localhost", "localhost", 80)
    assert Place("unix:/s").address == Address("localhost", "localhost", 80, "/s")
    with pytest.raises(InvalidError):
        checked("http://localhost:port", None)


def test_servers_elsewhere_are_reached_by_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    def pass_on(connection: socket.socket, _: int) -> None:
        target = read_request(connection).split()[1]
        connection.sendall(told(b'{"status":"%s"}' % target))

    with Peer(pass_on) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        for name in ("NO_PROXY", "no_proxy", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        with Client("http://zareba.invalid", "key") as client:
            content = client.send(Call("GET", "/v1/health")).content
    assert content == b'{"status":"http://zareba.invalid/v1/health"}'
