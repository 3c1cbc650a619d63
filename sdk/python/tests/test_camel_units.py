"""CAMEL's runtimes without a sandbox: what they take, refuse, and make of it."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from pydantic import BaseModel

import somewhere
from zareba import Client, InvalidError, Sandbox, UnsupportedError
from zareba.camel import (
    BaseRuntime,
    DockerRuntime,
    ExecResult,
    FunctionTool,
    GuardDeniedError,
    LLMGuardRuntime,
    NotBuiltError,
    RemoteHttpRuntime,
    TaskConfig,
    TaskFailedError,
    UbuntuDockerRuntime,
    Verdict,
    ZarebaRuntime,
    _docker_settings,
)
from zareba.camel._arguments import as_json
from zareba.camel._tasks import TaskResult, checked, variables


class Point(BaseModel):
    x: int
    y: int = 0


@dataclasses.dataclass
class Box:
    corner: Point
    names: List[str]


class Colour(enum.Enum):
    RED = "red"


def test_arguments_of_pydantic_and_python_become_json_by_position_and_by_name() -> None:
    given = (Point(x=1), (1, 2), Colour.RED, Path("/tmp/x"), OrderedDict(a=None))
    positional, named = as_json("t", given, {"box": Box(Point(x=2), ["n"]), "deep": [{"k": (1,)}]})
    assert positional == [{"x": 1, "y": 0}, [1, 2], "red", "/tmp/x", {"a": None}]
    assert named == {"box": {"corner": {"x": 2, "y": 0}, "names": ["n"]}, "deep": [{"k": [1]}]}


@pytest.mark.parametrize("value", [b"bytes", {1: "a"}, {"a"}, float("nan"), object()])
def test_what_json_cannot_say_is_refused_by_name(value: Any) -> None:
    with pytest.raises(InvalidError, match="`t` was not called: argument 1"):
        as_json("t", (value,), {})
    with pytest.raises(InvalidError, match="argument `named`"):
        as_json("t", (), {"named": [value]})


def test_what_is_nested_without_end_is_refused() -> None:
    loop: List[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidError, match="nested too deeply"):
        as_json("t", (loop,), {})


def test_every_tool_keeps_its_entrypoint_and_several_adds_are_kept() -> None:
    runtime = ZarebaRuntime().add([somewhere.double, somewhere.shout])
    runtime.add(somewhere.Counter().get_tools(), "somewhere.Counter", arguments={"start": 5})
    assert runtime.entrypoint == {
        "double": "somewhere.double",
        "shout": "somewhere.shout",
        "count": 'somewhere.Counter{"start": 5}',
    }
    assert [each.get_function_name() for each in runtime.get_tools()] == list(runtime.entrypoint)
    assert isinstance(runtime, BaseRuntime)


def test_an_entrypoint_is_read_off_what_a_module_has_and_nothing_else() -> None:
    def local() -> None: ...

    counter = somewhere.Counter()
    assert ZarebaRuntime().add(counter.count).entrypoint == {"count": "somewhere.Counter"}
    with pytest.raises(InvalidError, match="only what a module has can be imported"):
        ZarebaRuntime().add(local)
    with pytest.raises(InvalidError, match="stays in this process"):
        ZarebaRuntime().add(Point(x=1).model_copy)
    local.__module__ = "__main__"
    with pytest.raises(InvalidError, match="the program itself"):
        ZarebaRuntime().add(local)
    assert ZarebaRuntime().add(local, "there.local").entrypoint == {"local": "there.local"}


def test_two_tools_of_one_name_are_refused_and_one_twice_is_not() -> None:
    runtime = ZarebaRuntime().add(somewhere.double).add(somewhere.double)
    with pytest.raises(InvalidError, match=r"already, of `somewhere\.double`"):
        runtime.add(somewhere.double, "elsewhere.double")


def test_a_dictionary_in_third_place_is_what_the_toolkit_is_made_with() -> None:
    runtime = ZarebaRuntime().add(somewhere.double, "somewhere.X", {"verbose": True})
    assert runtime.entrypoint == {"double": 'somewhere.X{"verbose": true}'}


def test_an_option_without_effect_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"`port=8765` has no effect"):
        assert DockerRuntime("image", 8765).port == 8765
    with pytest.warns(UserWarning, match=r"`ports=8000` has no effect"):
        UbuntuDockerRuntime("image", ports=8000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DockerRuntime("image").port == 8000
        assert UbuntuDockerRuntime("image", port=0, ports={"80/tcp": 8080}).port == 0


def test_a_task_that_met_a_read_only_file_system_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    said = b"touch: cannot touch '/etc/x': Read-only file system\n"
    failed = TaskResult(["touch", "/etc/x"], 1, b"", said)
    monkeypatch.setattr("zareba.camel.runtime.Runner.finish", lambda self, task: failed)
    task = TaskConfig(cmd="touch /etc/x")
    with Sandbox.create(client=client) as sandbox:
        with pytest.raises(TaskFailedError) as caught:
            DockerRuntime("image")._run_task(sandbox, task, None)
        assert caught.value.hint == 'pass `read_only=False`, and `user="root"` for files of root'
        for runtime in (DockerRuntime("image", read_only=False), ZarebaRuntime()):
            with pytest.raises(TaskFailedError) as caught:
                runtime._run_task(sandbox, task, None)
            assert caught.value.hint is None


@pytest.mark.filterwarnings("ignore:.ports=")
@pytest.mark.parametrize("ports", [0, 8000, None])
def test_a_number_for_ports_means_none_as_in_camel(ports: Any) -> None:
    runtime = UbuntuDockerRuntime("image", port=0, ports=ports)
    settings = _docker_settings.settings_of("image", runtime._options, [])
    assert "ZAREBA_DOCKER_PORTS" not in settings


def test_arguments_in_the_wrong_place_are_refused() -> None:
    runtime = ZarebaRuntime()
    wrong: Any = 1
    with pytest.raises(TypeError, match="arguments="):
        runtime.add(somewhere.double, "somewhere.double", wrong)
    with pytest.raises(TypeError, match="given twice"):
        runtime.add(somewhere.double, "somewhere.X", {"a": 1}, {"a": 1})
    wrong = True
    with pytest.raises(TypeError, match="dictionary"):
        runtime.add(somewhere.double, "somewhere.double", False, wrong)
    with pytest.raises(InvalidError, match="has arguments already"):
        runtime.add(somewhere.double, 'somewhere.X{"a": 1}', arguments={"a": 2})
    with pytest.raises(InvalidError, match="cannot be said in JSON"):
        runtime.add(somewhere.double, "somewhere.X", arguments={"a": b""})
    with pytest.raises(TypeError, match="a function or a FunctionTool"):
        runtime.add(3)
    with pytest.raises(ValueError, match="`errors` is"):
        ZarebaRuntime(errors="ignore")


def test_nothing_works_before_it_is_built_and_the_error_says_so() -> None:
    runtime = ZarebaRuntime().add(somewhere.double)
    [tool] = runtime.get_tools()
    for call in (
        lambda: tool.func(1),
        lambda: runtime.exec_run(TaskConfig(cmd="true")),
        lambda: runtime.docs,
        lambda: runtime.sandbox,
    ):
        # CAMEL's callers look for this class.
        with pytest.raises(RuntimeError, match=r"there is no sandbox \(call build\(\)\)"):
            call()
    assert (runtime.ok, runtime.wait(0)) == (False, False)
    returning = ZarebaRuntime(errors="return").add(FunctionTool(somewhere.shout))
    answer = returning.get_tools()[0].func("x")
    assert list(answer) == ["error"] and answer["error"].startswith("Failed to execute function:\n")
    assert isinstance(NotBuiltError("look"), RuntimeError)


def test_a_tool_that_is_given_to_a_second_runtime_leaves_the_first() -> None:
    tool = FunctionTool(somewhere.double)
    ZarebaRuntime().add(tool)
    ZarebaRuntime().add(tool)
    assert tool.func.__wrapped__ is somewhere.double  # type: ignore[attr-defined]
    assert tool.get_function_name() == "double" and "Twice" in (tool.func.__doc__ or "")


def test_a_function_that_is_awaited_stays_one() -> None:
    tool = FunctionTool(somewhere.later)
    ZarebaRuntime(errors="return").add(tool)
    assert asyncio.iscoroutinefunction(tool.func)
    assert "error" in asyncio.run(tool.func(1))


def test_stop_and_cleanup_can_be_called_at_any_time_and_chain() -> None:
    runtime = ZarebaRuntime()
    runtime.cleanup()
    assert runtime.stop() is runtime


def test_task_config_has_the_fields_and_defaults_of_camels() -> None:
    told = TaskConfig(cmd="mkdir '/srv/a b'")
    assert told.words() == ["mkdir", "/srv/a b"]
    defaults = told.model_dump(exclude={"cmd", "timeout"})
    assert defaults == {
        "stdout": True, "stderr": True, "stdin": False, "tty": False, "privileged": False,
        "user": "", "detach": False, "stream": False, "socket": False, "environment": None,
        "workdir": None, "demux": False,
    }  # fmt: skip


def test_a_task_of_camels_own_class_is_taken() -> None:
    class Theirs(BaseModel):
        cmd: str
        workdir: str = "/tmp"

    assert checked(Theirs(cmd="ls")) == TaskConfig(cmd="ls", workdir="/tmp")
    assert tuple(ExecResult(0, b"x")) == (0, b"x")


def test_variables_are_given_either_way() -> None:
    assert variables(["A=1", "B=x=y", "C"]) == {"A": "1", "B": "x=y", "C": ""}
    assert variables({"A": "1"}) == {"A": "1"} and variables(None) == {}


def test_options_of_docker_py_become_settings_and_the_rest_is_for_the_server_to_judge() -> None:
    options: Dict[str, Any] = {
        "environment": ["A=1"],
        "user": "1000:1001",
        "network_mode": "bridge",
        "ports": {"80/tcp": 8080, 90: None},
        "read_only": False,
        "volumes": {"/data": {"bind": "/data", "mode": "ro"}},
        "mem_limit": "1g",
        "privileged": True,
    }
    made = _docker_settings.settings_of("img", options, ["/a:/b:rw"])
    assert made["ZAREBA_DOCKER_IMAGE"] == "img"
    assert (made["ZAREBA_DOCKER_USER_ID"], made["ZAREBA_DOCKER_GROUP_ID"]) == ("1000", "1001")
    assert made["ZAREBA_DOCKER_NETWORK"] == "internet"
    assert json.loads(made["ZAREBA_DOCKER_PORTS"]) == ["8080:80", "90"]
    assert made["ZAREBA_DOCKER_WRITABLE_ROOT"] == "true"
    assert json.loads(made["ZAREBA_DOCKER_VOLUMES"]) == ["/a:/b:rw", "/data:/data:ro"]
    assert json.loads(made["ZAREBA_DOCKER_OPTIONS"]) == {"mem_limit": "1g", "privileged": True}
    assert _docker_settings.environment_of(options) == {"A": "1"}
    with pytest.raises(UnsupportedError, match="by a number"):
        _docker_settings.settings_of("img", {"user": "somebody"}, [])


def test_mounts_and_copies_are_checked_when_they_are_asked_for(tmp_path: Path) -> None:
    runtime = DockerRuntime("img")
    file = tmp_path / "file"
    file.touch()
    for path, inside, error in (
        (str(tmp_path / "none"), "/x", FileNotFoundError),
        (str(file), "/x", NotADirectoryError),
        (str(tmp_path), "x", ValueError),
    ):
        with pytest.raises(error):
            runtime.mount(path, inside)
    with pytest.raises(FileNotFoundError):
        runtime.copy(str(tmp_path / "none"), "/home")
    assert runtime.mount(str(tmp_path), "/x").copy(str(file), "/home") is runtime


def test_the_drop_ins_have_camels_constructors() -> None:
    remote = RemoteHttpRuntime("localhost", 8055, "python3")
    assert (remote.host, remote.port, remote.docs) == (
        "localhost",
        8055,
        "http://localhost:8055/docs",
    )
    docker = DockerRuntime("img", 0, True, environment={"A": "1"})
    assert (docker.image, docker.port) == ("img", 0)
    ubuntu = UbuntuDockerRuntime("img", 0, True, "/opt/python", environment=["A=1"])
    assert (ubuntu.python_path, ubuntu.ok) == ("/opt/python", False)
    with pytest.raises(RuntimeError):
        ubuntu.exec_python_file(__file__)
    with pytest.raises(UnsupportedError):
        DockerRuntime("img", remove=False)


def guarded(judge: Callable[[Dict[str, Any]], Any], **options: Any) -> Any:
    runtime = LLMGuardRuntime(judge=judge, **options)
    tool = FunctionTool(somewhere.double)
    runtime.add(tool)
    return runtime, tool


def test_a_call_passes_up_to_the_threshold_and_the_judge_sees_all_of_it() -> None:
    asked: List[Dict[str, Any]] = []

    def judge(question: Dict[str, Any]) -> Verdict:
        asked.append(question)
        return Verdict(2, "fine")

    runtime, tool = guarded(judge)
    assert tool.func(number=4) == 8
    about = {"function": "double", "description": "Twice as much.", "args": []}
    assert asked == [{**about, "kwargs": {"number": 4}}]
    # The guarded agent has no way around the guard.
    assert [each.get_function_name() for each in runtime.get_tools()] == ["double"]
    runtime.add(tool, 1)
    with pytest.raises(GuardDeniedError, match="Score: 2 > Threshold: 1\nReason: fine"):
        tool.func(1)
    assert len(asked) == 2, "added twice, judged once"


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(3, "no"), Verdict(0, "?"), Verdict(-1, "?"), Verdict(9, "?"), None, "1", 1,
        Verdict(True, "?"), Verdict("1", "?"), Verdict(1.0, "?"), {"score": 1},  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_whatever_else_the_judge_says_is_a_no(verdict: Any) -> None:
    _, tool = guarded(lambda question: verdict)
    with pytest.raises(GuardDeniedError):
        tool.func(1)
    _, returning = guarded(lambda question: verdict, errors="return")
    assert returning.func(1)["error"].startswith("Risk assessment")


def test_a_judge_that_fails_says_no() -> None:
    def judge(question: Dict[str, Any]) -> Verdict:
        raise OSError("no model")

    _, tool = guarded(judge)
    with pytest.raises(GuardDeniedError, match="no model"):
        tool.func(1)


def test_a_waiver_is_for_one_call_with_these_arguments() -> None:
    runtime, tool = guarded(lambda question: Verdict(3, "no"))
    runtime.waive("double", (4,), reason="a person said so")
    for other in (5, "4", [4]):
        with pytest.raises(GuardDeniedError):
            tool.func(other)
    assert tool.func(4) == 8
    with pytest.raises(GuardDeniedError):
        tool.func(4)
    runtime.waive("double", (4,), reason="again")
    runtime.reset()
    with pytest.raises(GuardDeniedError):
        tool.func(4)
    with pytest.raises(InvalidError):
        runtime.waive("other", reason="?")


def test_a_threshold_is_a_score() -> None:
    wrong: Any
    for wrong in (0, 4, True, "2", somewhere.double):
        with pytest.raises(ValueError, match="threshold"):
            LLMGuardRuntime(judge=lambda question: Verdict(1, "")).add(somewhere.double, wrong)


def test_a_sandbox_does_not_take_a_guard_away() -> None:
    _, tool = guarded(lambda question: Verdict(3, "no"))
    with pytest.raises(InvalidError, match="a guard stands before"):
        ZarebaRuntime().add(tool)
    # The other way round the call is judged first, and then made where the sandbox is.
    inside = FunctionTool(somewhere.double)
    ZarebaRuntime(errors="return").add(inside)
    LLMGuardRuntime(judge=lambda question: Verdict(1, "")).add(inside)
    assert "there is no sandbox" in inside.func(1)["error"]


def test_a_function_that_is_awaited_is_judged_and_awaited() -> None:
    tool = FunctionTool(somewhere.later)
    LLMGuardRuntime(judge=lambda question: Verdict(1, "")).add(tool)
    assert asyncio.run(tool.func(2)) == 3
    denied = FunctionTool(somewhere.later)
    LLMGuardRuntime(judge=lambda question: Verdict(3, "")).add(denied)
    with pytest.raises(GuardDeniedError):
        asyncio.run(denied.func(2))


def test_without_camel_a_model_cannot_judge() -> None:
    with pytest.raises(InvalidError, match="camel-ai"):
        LLMGuardRuntime()
