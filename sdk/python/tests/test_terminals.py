"""Terminals: typed at, read, resized, left and found again."""

from __future__ import annotations

import asyncio
import threading
from typing import List
from urllib.parse import urlsplit

import pytest

from conftest import Server
from proxy import Proxy
from zareba import AsyncClient, AsyncSandbox, Client, NotFoundError, Sandbox, TimedOutError

PATIENCE = 30


def proxy(server: Server) -> Proxy:
    parts = urlsplit(server.url)
    assert parts.hostname and parts.port
    return Proxy((parts.hostname, parts.port), lambda head, number: False)


def test_a_shell_is_typed_at_and_read(sandbox: Sandbox) -> None:
    with sandbox.terminal(env={"PS1": "> "}) as terminal:
        terminal.write("echo $((6 * 7))-done\r")
        assert b"42-done" in terminal.read_until("42-done", PATIENCE)
        terminal.write("exit 3\r")
        assert terminal.wait(PATIENCE).code == 3
        assert b"exit 3" in terminal.read()
        assert terminal.read() == b""
    assert [each.name for each in sandbox.terminals() if each.name == terminal.name] == []


def test_a_program_sees_the_size_and_every_change_of_it(sandbox: Sandbox) -> None:
    command = "trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.05; done"
    with sandbox.terminal(command, columns=100, rows=40) as terminal:
        terminal.read_until("40 100", PATIENCE)
        terminal.resize(columns=132, rows=50)
        assert terminal.read_until("50 132", PATIENCE)
        assert terminal.wait(PATIENCE).code == 0


def test_one_that_is_let_go_of_goes_on_and_shows_what_was_missed(sandbox: Sandbox) -> None:
    opened = sandbox.terminal(["cat"], name="kept")
    opened.write("first\r")
    opened.read_until("first", PATIENCE)
    opened.detach()
    with sandbox.attach_terminal("kept") as again:
        again.write("second\r")
        shown = again.read_until("second", PATIENCE)
        assert b"first" in shown
    # The one that was opened here is still there, where it was, and not twice.
    assert b"first\r\nfirst" not in opened.read_until("second", PATIENCE)[len(b"first\r\n") :]
    opened.close()
    opened.close()
    with pytest.raises(NotFoundError):
        sandbox.attach_terminal("kept")


def test_a_connection_that_breaks_is_made_again_where_it_was(server: Server) -> None:
    with proxy(server) as between, Client(between.url, server.key) as client:
        with Sandbox.create(client=client) as sandbox:
            line = "for n in 1 2 3 4 5 6; do echo line-$n; sleep 0.2; done"
            with sandbox.terminal(line) as terminal:
                shown = terminal.read_until("line-2", PATIENCE)
                between.break_all()
                for piece in terminal:
                    shown += piece
                assert shown.decode().split() == [f"line-{n}" for n in range(1, 7)]
                assert terminal.exit is not None and terminal.exit.code == 0


def test_one_thread_reads_while_others_write(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if everybody had been away for a long time, before each word.
    monkeypatch.setattr("zareba._sync.terminal._UNWATCHED_MAX", -1.0)
    with sandbox.terminal(["cat"]) as terminal:
        shown: List[bytes] = []
        reader = threading.Thread(
            target=lambda: shown.append(terminal.read_until("last", PATIENCE))
        )
        reader.start()
        writers = [
            threading.Thread(target=terminal.write, args=(f"line-{n}\r",)) for n in range(20)
        ]
        for each in writers:
            each.start()
        for each in writers:
            each.join(PATIENCE)
        terminal.write("last\r")
        reader.join(PATIENCE)
        assert sorted(set(shown[0].split())) == sorted(
            [b"last", *(b"line-%d" % n for n in range(20))]
        )


def test_waiting_has_an_end(sandbox: Sandbox) -> None:
    with sandbox.terminal(["sleep", "100"]) as terminal:
        with pytest.raises(TimedOutError):
            terminal.read(timeout=0.2)
        with pytest.raises(TimedOutError):
            terminal.wait(timeout=0.2)
        terminal.write("\x03")
        assert terminal.wait(PATIENCE).signal == 2


def test_the_same_without_blocking(server: Server) -> None:
    async def main() -> None:
        async with AsyncClient(server.url, server.key) as client:
            async with await AsyncSandbox.create(client=client) as sandbox:
                terminals = [await sandbox.terminal(["cat"]) for _ in range(3)]
                for number, terminal in enumerate(terminals):
                    await terminal.write(f"to {number}\r")
                shown = await asyncio.gather(
                    *(each.read_until(f"to {n}", PATIENCE) for n, each in enumerate(terminals))
                )
                assert [each.strip() for each in shown] == [b"to 0", b"to 1", b"to 2"]
                await terminals[0].resize(20, 10)
                for terminal in terminals:
                    await terminal.write("\x04")
                    assert (await terminal.wait(PATIENCE)).code == 0

    asyncio.run(main())
