"""CAMEL's runtimes on real sandboxes, without `camel-ai`: tools, tasks, errors and the end."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator, List, Tuple

import httpx
import pytest

import somewhere
from conftest import Server
from zareba import (
    Client,
    NotFoundError,
    Sandbox,
    ToolArgumentsError,
    ToolError,
    ToolTimedOutError,
    UnsupportedError,
)
from zareba.camel import (
    FunctionTool,
    LoadError,
    RemoteHttpRuntime,
    TaskConfig,
    TaskFailedError,
    ZarebaRuntime,
)

MODULE = Path(somewhere.__file__)


@pytest.fixture
def runtime(client: Client) -> Iterator[ZarebaRuntime]:
    made = ZarebaRuntime(client=client).copy(str(MODULE), ".")
    try:
        yield made
    finally:
        made.cleanup()


def test_tools_run_in_the_sandbox_and_keep_their_names(
    runtime: ZarebaRuntime, server: Server
) -> None:
    tools = [FunctionTool(each) for each in (somewhere.double, somewhere.where, somewhere.later)]
    assert runtime.add(tools).build() is runtime
    assert runtime.get_tools() == tools and runtime.ok and runtime.wait()
    double, where, later = tools
    assert double.func(4) == 8 and double.func(number=5) == 10
    assert where.func()["pid"] != os.getpid()
    assert asyncio.run(later.func(1)) == 2
    assert double.get_openai_tool_schema()["function"]["name"] == "double"
    key = {"authorization": f"Bearer {server.key}"}
    assert "double" in httpx.get(runtime.docs, headers=key, trust_env=False).text


def test_the_page_of_a_private_server_can_be_opened(program: str) -> None:
    with Client() as private, ZarebaRuntime(client=private) as runtime:
        runtime.copy(str(MODULE), ".").add(somewhere.double)
        address = runtime.docs
        assert address.startswith("http://127.0.0.1:") and runtime.docs == address
        page = httpx.get(address, trust_env=False)
        assert page.status_code == 200 and "double" in page.text
        assert httpx.post(address, trust_env=False).status_code == 404
        other = address.replace("/page", "/sessions")
        assert "double" not in httpx.get(other, trust_env=False).text
        guessed = address.split("/p/")[0] + "/p/0123456789abcdef0123/page"
        assert httpx.get(guessed, trust_env=False).status_code == 404


def test_several_entrypoints_of_one_toolkit_name_and_later_ones_are_kept(
    runtime: ZarebaRuntime,
) -> None:
    counter = somewhere.Counter().get_tools()
    runtime.add(counter, "somewhere.Counter", arguments={"start": 5}).build()
    assert [counter[0].func() for _ in range(2)] == [6, 7]
    runtime.add([somewhere.double, somewhere.shout])
    names = [each.get_function_name() for each in runtime.get_tools()]
    assert names == ["count", "double", "shout"] and runtime.ok
    assert runtime.get_tools()[2].func("a", times=2) == "A A"
    runtime.reset_tools()
    assert counter[0].func() == 6
    first = runtime.sandbox.id
    assert runtime.reset() is runtime and runtime.sandbox.id != first
    assert counter[0].func() == 6


def test_errors_are_raised_with_their_class(runtime: ZarebaRuntime) -> None:
    runtime.timeout = 0.5
    runtime.add([somewhere.fail, somewhere.sleepy, somewhere.double]).build()
    fail, sleepy, double = runtime.get_tools()
    with pytest.raises(ToolError) as caught:
        fail.func("no good")
    assert (caught.value.kind, caught.value.detail) == ("ValueError", "no good")
    with pytest.raises(ToolTimedOutError):
        sleepy.func(60)
    with pytest.raises(ToolArgumentsError):
        double.func("four")


def test_errors_are_returned_as_camel_returns_them(client: Client) -> None:
    with ZarebaRuntime(client=client, errors="return", checked=False) as runtime:
        runtime.copy(str(MODULE), ".").add([somewhere.fail, somewhere.double])
        fail, double = runtime.get_tools()
        indent = " " * 24
        assert fail.func("no good") == {
            "error": f"Failed to execute function:\n{indent}fail,\n{indent}response: no good"
        }
        assert double.func("ab") == "abab"


def test_what_a_call_prints_is_printed_here_if_that_is_wanted(
    runtime: ZarebaRuntime, capfd: pytest.CaptureFixture[str]
) -> None:
    loud, failing = FunctionTool(somewhere.talk), FunctionTool(somewhere.fail)
    runtime.add([loud, failing], redirect_stdout=True, entrypoint=None).build()
    loud.func(2, "x")
    assert capfd.readouterr().out == "x 0\nx 1\n"
    with pytest.raises(ToolError):
        failing.func("no")
    assert tuple(capfd.readouterr()) == ("before\n", "trouble\n")


def test_an_entrypoint_that_cannot_be_loaded_fails_the_build_and_leaves_nothing(
    client: Client,
) -> None:
    before = {each.id for each in Sandbox.list(client=client)}
    runtime = ZarebaRuntime(client=client).add(somewhere.double)
    with pytest.raises(LoadError, match=r"`somewhere\.double`.*ModuleNotFoundError") as caught:
        runtime.build()
    assert "workspace" in (caught.value.hint or "")
    some = ZarebaRuntime(client=client).copy(str(MODULE), ".").add(somewhere.double)
    with pytest.raises(LoadError, match=r"`nowhere\.shout`: ModuleNotFoundError") as caught:
        some.add(somewhere.shout, "nowhere.shout").build()
    assert [each.entrypoint for each in caught.value.failures] == ["nowhere.shout"]
    other = ZarebaRuntime(client=client).copy(str(MODULE), ".")
    other.add(somewhere.double, "somewhere.shout")
    with pytest.raises(LoadError, match="has no tool `double`; there are: shout"):
        other.build()
    assert {each.id for each in Sandbox.list(client=client)} == before


def test_tasks_run_in_order_and_their_results_are_kept(runtime: ZarebaRuntime) -> None:
    runtime.add_task(TaskConfig(cmd="sh -c 'echo one > log; echo said; echo err >&2'"))
    runtime.add_task(TaskConfig(cmd=["sh", "-c", 'echo "$A" >> log'], environment=["A=two words"]))
    runtime.build()
    assert runtime.sandbox.files.read("log") == "one\ntwo words\n"
    told = [(each.exit_code, each.stdout, each.stderr) for each in runtime.task_results]
    assert told == [(0, b"said\n", b"err\n"), (0, b"", b"")]


def test_a_task_that_fails_fails_the_build_or_is_told(client: Client) -> None:
    failing = ZarebaRuntime(client=client).add_task(TaskConfig(cmd="sh -c 'echo why >&2; exit 3'"))
    with pytest.raises(TaskFailedError, match="exited with 3: why") as caught:
        failing.build()
    assert caught.value.result.exit_code == 3 and not failing.ok
    with ZarebaRuntime(client=client, errors="return") as patient:
        patient.add_task(TaskConfig(cmd="no-such-program")).reset()
        assert [each.exit_code for each in patient.task_results] == [127]


def test_exec_run_has_every_form_that_docker_py_has(runtime: ZarebaRuntime) -> None:
    runtime.build()
    both = ["sh", "-c", "echo out; sleep 0.1; echo err >&2; exit 3"]
    assert runtime.exec_run(TaskConfig(cmd=both)) == (3, b"out\nerr\n")
    assert runtime.exec_run(TaskConfig(cmd=both, demux=True)) == (3, (b"out\n", b"err\n"))
    assert runtime.exec_run(TaskConfig(cmd=both, stderr=False)) == (3, b"out\n")
    assert runtime.exec_run(TaskConfig(cmd=both, stdout=False, demux=True)) == (3, (None, b"err\n"))
    assert runtime.exec_run(TaskConfig(cmd="true", demux=True)) == (0, (None, None))
    assert runtime.exec_run(TaskConfig(cmd="pwd", workdir="/")) == (0, b"/\n")
    given = {"A": "b c"}
    assert runtime.exec_run(TaskConfig(cmd="printenv A", environment=given)) == (0, b"b c\n")
    code, pieces = runtime.exec_run(TaskConfig(cmd=both, stream=True, demux=True))
    assert code is None and list(pieces) == [(b"out\n", None), (None, b"err\n")]
    code, output = runtime.exec_run(TaskConfig(cmd="tty", tty=True))
    assert code == 0 and output.startswith(b"/dev/pts/")
    assert runtime.exec_run(TaskConfig(cmd="no-such-program"))[0] == 127
    code, program = runtime.exec_run(TaskConfig(cmd="cat", stdin=True, socket=True))
    assert program.communicate("typed").stdout == b"typed"


def test_a_task_can_be_left_to_itself(runtime: ZarebaRuntime) -> None:
    runtime.build()
    line = ["sh", "-c", 'echo "$A in $(pwd)" > /tmp/done; mv /tmp/done /tmp/told']
    task = TaskConfig(cmd=line, detach=True, environment={"A": "it's"}, workdir="/tmp")
    assert runtime.exec_run(task) == (None, b"")
    wait = "until test -e /tmp/told; do sleep 0.05; done; cat /tmp/told"
    assert runtime.sandbox.run(wait, timeout=30).output == "it's in /tmp"


def test_more_rights_and_other_users_are_refused(runtime: ZarebaRuntime) -> None:
    runtime.build()
    with pytest.raises(UnsupportedError, match="more rights"):
        runtime.exec_run(TaskConfig(cmd="true", privileged=True))
    with pytest.raises(UnsupportedError, match="one user"):
        runtime.exec_run(TaskConfig(cmd="true", user="somebody"))
    own = runtime.exec_run(TaskConfig(cmd="id -u"))[1].decode().strip()
    assert runtime.exec_run(TaskConfig(cmd="true", user=own)) == (0, b"")


def test_directories_are_copied_under_their_names(runtime: ZarebaRuntime, tmp_path: Path) -> None:
    (tmp_path / "data" / "inner").mkdir(parents=True)
    (tmp_path / "data" / "inner" / "file").write_text("x")
    runtime.copy(str(tmp_path / "data"), "made/by/us").build()
    assert runtime.sandbox.files.read("made/by/us/data/inner/file") == "x"
    runtime.copy(str(tmp_path / "data" / "inner" / "file"), "/tmp")
    assert runtime.sandbox.files.read("/tmp/file") == "x"


def test_the_sandbox_ends_with_the_runtime_however_that_ends(client: Client) -> None:
    def is_open(name: str) -> bool:
        return any(each.id == name for each in Sandbox.list(client=client))

    with ZarebaRuntime(client=client) as runtime:
        first = runtime.sandbox.id
        assert is_open(first)
    assert not is_open(first)
    assert runtime.stop() is runtime and not runtime.ok
    with pytest.raises(RuntimeError):
        runtime.exec_run(TaskConfig(cmd="true"))
    forgotten = ZarebaRuntime(client=client).build()
    second = forgotten.sandbox.id
    del forgotten
    gc.collect()
    assert not is_open(second)


def local(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZAREBA_BIN", program)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "somewhere.py").write_text(MODULE.read_text())


def test_the_drop_in_runs_by_this_python_in_this_directory(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local(program, tmp_path, monkeypatch)
    runtime = RemoteHttpRuntime("localhost").add([somewhere.where, somewhere.double]).build()
    try:
        where, double = runtime.get_tools()
        assert runtime.wait() and runtime.ok and double.func(4) == 8
        told = where.func()
        assert told["cwd"] == str(tmp_path) and told["pid"] != os.getpid()
        # A second one neither finds the first one's port taken nor answers in its place.
        other = RemoteHttpRuntime("localhost").add(somewhere.where).build()
        assert other.get_tools()[0].func()["pid"] != told["pid"]
        other.stop()
        assert runtime.ok and not other.ok
    finally:
        runtime.stop()


SCRIPT = """
import os, signal, somewhere
from zareba.camel import RemoteHttpRuntime
runtime = RemoteHttpRuntime("localhost").add(somewhere.where).build()
print(runtime.get_tools()[0].func()["pid"], flush=True)
if {kill}: os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("kill", [False, True], ids=["exit", "killed"])
def test_nothing_outlives_a_program_that_forgets_to_clean_up(
    kill: bool, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local(program, tmp_path, monkeypatch)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(kill=kill)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (-9 if kill else 0), done.stderr
    pid = int(done.stdout)
    wait_for_end(pid)


def wait_for_end(pid: int) -> None:
    """Waits for a process that is not ours to be waited for."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], 60)[0], f"{pid} lives on"
    finally:
        os.close(handle)


def test_one_that_is_not_built_calls_a_server_that_speaks_camels_contract(
    program: str, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "somewhere.py").write_text(MODULE.read_text())
    with tool_server(program, project, ["somewhere.double", "somewhere.fail"]) as (port, token):
        runtime = RemoteHttpRuntime("127.0.0.1", port, key=token)
        runtime.add([somewhere.double, somewhere.fail])
        assert runtime.wait(30) and runtime.ok
        assert runtime.docs == f"http://127.0.0.1:{port}/docs"
        double, fail = runtime.get_tools()
        assert double.func(4) == 8
        with pytest.raises(ToolError, match="no good"):
            fail.func("no good")
        runtime.add(somewhere.shout)
        assert not runtime.ok
        with pytest.raises(NotFoundError):
            runtime.get_tools()[2].func("x")
        # As their class is told it, which knows no key.
        runtime = RemoteHttpRuntime(f"any:{token}@127.0.0.1", port).add(somewhere.double)
        assert runtime.ok and runtime.get_tools()[0].func(5) == 10
        assert token not in runtime.docs
        stranger = RemoteHttpRuntime("127.0.0.1", port).add(somewhere.double)
        assert not stranger.ok
        with pytest.raises(ToolError, match="Not authenticated"):
            stranger.get_tools()[0].func(6)


class tool_server:
    """`zareba tools serve` on a free port, while a test runs."""

    def __init__(self, program: str, directory: Path, entrypoints: List[str]) -> None:
        # Sockets have their paths below it, which must be short.
        self._state = tempfile.TemporaryDirectory(prefix="zareba-")
        self._process = subprocess.Popen(
            [program, "tools", "serve", *entrypoints, "--port", "0", "--workspace", str(directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ZAREBA_STATE_DIRECTORY": self._state.name},
        )

    def __enter__(self) -> Tuple[int, str]:
        try:
            return self._begun()
        except BaseException:
            self.__exit__()
            raise

    def _begun(self) -> Tuple[int, str]:
        """Its port and the token of callers, once it listens."""
        assert self._process.stderr is not None
        told = ""
        for line in self._process.stderr:
            told += line
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
            if found:
                token = re.search(r"the token of callers is in (.+)", told)
                assert token is not None, told
                return int(found.group(1)), Path(token.group(1)).read_text().strip()
        raise AssertionError(told)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=60)
        self._state.cleanup()
