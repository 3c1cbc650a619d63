"""Programs with streams of their own."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import List

import pytest

from conftest import Server
from zareba import (
    AsyncClient,
    AsyncSandbox,
    InvalidError,
    NotFoundError,
    ProgramOutput,
    Sandbox,
    TimedOutError,
)


def test_output_and_errors_are_apart_and_the_status_is_told(sandbox: Sandbox) -> None:
    done = sandbox.program("echo out; echo err >&2; exit 3").communicate()
    assert (done.stdout, done.stderr, done.exit_code) == (b"out\n", b"err\n", 3)
    words = sandbox.program(["printf", "%s|", "a b", "$HOME", "*"]).communicate()
    assert words.stdout == b"a b|$HOME|*|"


def test_directory_variables_and_a_terminal(sandbox: Sandbox) -> None:
    done = sandbox.program("pwd; echo $COLOUR; tty", cwd="/", env={"COLOUR": "red"}).communicate()
    assert done.stdout == b"/\nred\nnot a tty\n"
    done = sandbox.program("stty size", terminal=(90, 30)).communicate()
    assert done.stdout == b"30 90\r\n"


def test_more_input_than_there_is_room_for_comes_back_whole(sandbox: Sandbox) -> None:
    given = bytes(range(256)) * 8192
    done = sandbox.program(["cat"], stdin=True).communicate(given)
    assert done.stdout == given


def test_input_and_output_go_on_beside_each_other(sandbox: Sandbox) -> None:
    with sandbox.program(["cat"], stdin=True) as program:
        got: List[bytes] = []

        def read() -> None:
            got.extend(piece.content for piece in program)

        program.write("question\n")
        assert program.read(timeout=30) == ProgramOutput("stdout", b"question\n")
        program.end_input()
        reader = threading.Thread(target=read)
        reader.start()
        reader.join(30)
        assert program.exit_code == 0 and got == []


def test_a_signal_ends_it_and_is_told(sandbox: Sandbox) -> None:
    with sandbox.program("echo ready; exec sleep 100") as program:
        assert program.read(timeout=30) == ProgramOutput("stdout", b"ready\n")
        program.send_signal("TERM")
        assert program.read(timeout=30) is None
        assert (program.exit_code, program.signal) == (143, 15)


def test_time_that_is_up_ends_it(sandbox: Sandbox) -> None:
    with pytest.raises(TimedOutError):
        sandbox.program("echo $$ > pid; exec sleep 100").communicate(timeout=0.5)
    deadline = time.monotonic() + 30
    while sandbox.run("kill -0 $(cat pid) 2>/dev/null").ok:
        # Nobody is told when a process is gone that nobody waits for.
        assert time.monotonic() < deadline
        sandbox.run("sleep 0.1")


GONE = "while kill -0 $(cat pid) 2>/dev/null; do sleep 0.1; done"
"""No event tells of the end of a process without a parent that waits for it."""


def test_a_program_ends_at_its_own_timeout_also_without_a_reader(sandbox: Sandbox) -> None:
    program = sandbox.program("echo $$ > pid; exec sleep 600", timeout=0.5)
    assert sandbox.run(f"until test -s pid; do sleep 0.1; done; {GONE}", timeout=60).ok
    with pytest.raises(TimedOutError, match=r"within 0\.5 seconds"):
        program.read()
    for use in (lambda each: each.communicate(), list):
        with pytest.raises(TimedOutError, match=r"within 0\.5 seconds"):
            use(sandbox.program("exec sleep 600", timeout=0.5))
    done = sandbox.program("echo in time", timeout=60).communicate()
    assert (done.stdout, done.exit_code) == (b"in time\n", 0)


def test_a_program_is_killed_and_that_twice_is_no_error(sandbox: Sandbox) -> None:
    with sandbox.program("trap '' TERM INT; echo $$ > pid; echo ready; sleep 600") as program:
        assert program.read(timeout=30) == ProgramOutput("stdout", b"ready\n")
        program.kill()
        assert program.read(timeout=30) is None
        program.kill()
        assert (program.exit_code, program.signal) == (137, 9)


def test_what_cannot_be_started_is_an_error(sandbox: Sandbox) -> None:
    with pytest.raises(NotFoundError):
        sandbox.program(["no-such-program"])
    with pytest.raises(InvalidError):
        sandbox.program(["true"], cwd="/nowhere")


def test_the_same_without_blocking(server: Server) -> None:
    async def main() -> None:
        async with AsyncClient(server.url, server.key) as client:
            async with await AsyncSandbox.create(client=client) as sandbox:
                started = [await sandbox.program(f"sleep 0.3; echo {n}") for n in range(4)]
                done = await asyncio.gather(*(each.communicate() for each in started))
                assert [each.stdout for each in done] == [b"0\n", b"1\n", b"2\n", b"3\n"]
                seen: List[bytes] = []

                async def listen(piece: bytes) -> None:
                    seen.append(piece)

                late = await sandbox.program(["sleep", "600"], timeout=0.5)
                with pytest.raises(TimedOutError, match=r"within 0\.5 seconds"):
                    await late.read()
                program = await sandbox.program(["cat"], stdin=True)
                await program.communicate(b"heard", on_stdout=listen)
                assert seen == [b"heard"]

    asyncio.run(main())
