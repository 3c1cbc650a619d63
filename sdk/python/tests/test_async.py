"""The client that does not block: the same, and beside each other."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Awaitable, Callable, List, Tuple, Type

import pytest

from conftest import Server
from zareba import (
    AsyncClient,
    AsyncProgram,
    AsyncSandbox,
    AsyncTerminal,
    DisconnectedError,
    NotFoundError,
    models,
)
from zareba._calls import Call
from zareba._http import Document


def within(server: Server, test: Callable[[AsyncSandbox], Awaitable[None]]) -> None:
    async def run() -> None:
        async with AsyncClient(server.url, server.key) as client:
            async with await AsyncSandbox.create(client=client) as sandbox:
                await test(sandbox)

    asyncio.run(run())


def test_commands_run_beside_each_other(server: Server) -> None:
    async def test(sandbox: AsyncSandbox) -> None:
        begun = time.monotonic()
        runs = (sandbox.run(f"sleep 1; echo {n}", shell=f"s{n}") for n in range(5))
        assert [result.output for result in await asyncio.gather(*runs)] == list("01234")
        assert time.monotonic() - begun < 4.5

    within(server, test)


def test_background_commands_are_watched_and_interrupted(server: Server) -> None:
    async def test(sandbox: AsyncSandbox) -> None:
        told: List[str] = []

        async def tell(piece: str) -> None:
            told.append(piece)

        await sandbox.run("echo a; sleep 1; echo b", on_output=tell)
        assert "".join(told) == "a\nb\n"
        command = await sandbox.start("echo first; sleep 600")
        waiting = asyncio.ensure_future(command.wait())
        async for piece in command.output():
            assert piece == "first\n"
            break
        # A key that is pressed while a program is being started may be lost.
        await sandbox.run("until pgrep -f 'sleep 60[0]'; do :; done", shell="watcher", timeout=60)
        await command.interrupt()
        assert (await waiting).exit_code == 130
        shell = sandbox.shell("typed")
        await shell.run("read word; echo got $word", timeout=3)
        assert (await shell.send("yes", timeout=10)).output.endswith("got yes")

    within(server, test)


def test_a_cancelled_run_leaves_no_command_behind(server: Server) -> None:
    async def test(sandbox: AsyncSandbox) -> None:
        await sandbox.run("X=kept; mkfifo begun")
        cases: List[Callable[[], Awaitable[object]]] = [
            lambda: sandbox.run("echo > begun; sleep 600"),
            lambda: sandbox.run("trap '' INT; echo > begun; sleep 600", shell="stubborn"),
            lambda: sandbox.run("echo > begun; sleep 600", env={"A": "b"}),
            lambda: sandbox.run("echo > begun; sleep 600", on_output=lambda _: None),
        ]
        for number, case in enumerate(cases):
            running = asyncio.ensure_future(case())
            await sandbox.run("read < begun", shell="watcher")
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert (await sandbox.run("pgrep -f 'sleep 60[0]'")).exit_code == 1, number
            assert (await sandbox.run("echo $X")).output == "kept", number
        assert (await sandbox.run("echo free", shell="stubborn")).output == "free"

    within(server, test)


class SlowClient(AsyncClient):
    """Gets the first answer that an action was accepted long after the action has begun."""

    is_slow = True

    async def ask(self, call: Call, kind: Type[Document]) -> Document:
        answer = await super().ask(call, kind)
        if self.is_slow and isinstance(answer, models.ActionAccepted):
            self.is_slow = False
            await asyncio.sleep(600)
        return answer


def test_a_start_cancelled_before_its_answer_leaves_no_command_behind(server: Server) -> None:
    async def test() -> None:
        starts: List[Callable[[AsyncSandbox], Awaitable[object]]] = [
            lambda sandbox: sandbox.run("echo > begun; sleep 600", on_output=lambda _: None),
            lambda sandbox: sandbox.start("echo > begun; sleep 600"),
        ]
        for start in starts:
            async with SlowClient(server.url, server.key) as client:
                async with await AsyncSandbox.create(client=client) as sandbox:
                    await sandbox.run("mkfifo begun")
                    starting = asyncio.ensure_future(start(sandbox))
                    await sandbox.run("read < begun", shell="watcher")
                    starting.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await starting
                    gone = "while pgrep -f 'sleep 60[0]'; do sleep 0.1; done"
                    assert (await sandbox.run(gone, shell="watcher", timeout=60)).ok

    asyncio.run(test())


def test_files_go_both_ways(server: Server, tmp_path: Path) -> None:
    async def test(sandbox: AsyncSandbox) -> None:
        files = sandbox.files
        await files.write("f", b"\x00\xff")
        assert await files.read_bytes("f") == b"\x00\xff"
        (tmp_path / "tree").mkdir()
        (tmp_path / "tree" / "x").write_text("x")
        await files.upload(tmp_path / "tree", "tree")
        await files.upload(tmp_path / "tree" / "x", "y")
        assert [entry.name for entry in await files.list()] == ["f", "tree", "y"]
        await files.download("tree", tmp_path / "back")
        assert (tmp_path / "back" / "x").read_text() == "x"
        async with files.watch() as changes:
            await files.write("seen", "s")
            async for change in changes:
                if change.path == "seen":
                    break
        with pytest.raises(NotFoundError):
            await files.read("none")
        await sandbox.edit("y", "x", "z")
        assert await files.read("y") == "z"

    within(server, test)


def test_events_and_variables(server: Server) -> None:
    async def test(sandbox: AsyncSandbox) -> None:
        await sandbox.env.set(A="b c")
        assert await sandbox.env.get("A") == "b c"
        kinds = [event.kind async for event in sandbox.events(follow=False)]
        assert kinds[0] == "note" and "observation" in kinds
        await sandbox.close()
        last = [event async for event in sandbox.events(from_=3)][-1]
        assert last.payload["note"] == "closed"

    within(server, test)


def test_the_usual_client_is_that_of_all_event_loops(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zareba._defaults._async_client", None)
    monkeypatch.setenv("ZAREBA_URL", server.url)
    monkeypatch.setenv("ZAREBA_API_KEY", server.key)

    async def once() -> str:
        async with await AsyncSandbox.create() as sandbox:
            return (await sandbox.run("echo loop")).output

    assert [asyncio.run(once()), asyncio.run(once())] == ["loop", "loop"]


def test_a_sandbox_is_used_in_one_event_loop_after_another(server: Server) -> None:
    async def begin() -> Tuple[AsyncSandbox, AsyncTerminal, AsyncProgram]:
        sandbox = await AsyncSandbox.create(client=AsyncClient(server.url, server.key))
        terminal = await sandbox.terminal("cat")
        await terminal.write("first\r")
        await terminal.read_until("first\r\nfirst", timeout=30)
        return sandbox, terminal, await sandbox.program(["sleep", "600"])

    async def go_on(sandbox: AsyncSandbox, terminal: AsyncTerminal, program: AsyncProgram) -> None:
        assert (await sandbox.run("echo again")).output == "again"
        # What a terminal shows can be asked for again, and so it goes on where it was.
        await terminal.write("second\r")
        await terminal.read_until("second\r\nsecond", timeout=30)
        with pytest.raises(DisconnectedError, match="another event loop"):
            await program.read()
        await terminal.close()
        await sandbox.close()
        await sandbox.client.close()

    asyncio.run(go_on(*asyncio.run(begin())))
