"""Tools: functions and toolkits inside a sandbox, called from outside."""

from __future__ import annotations

import asyncio
import math
import threading
from pathlib import Path
from typing import Dict, List

import pytest

import somewhere
from conftest import Server
from zareba import (
    AsyncClient,
    AsyncSandbox,
    InvalidError,
    NotFoundError,
    Sandbox,
    ToolArgumentsError,
    ToolError,
    ToolLostError,
    ToolNotFoundError,
    ToolTimedOutError,
)

FUNCTIONS = ("double", "shout", "later", "fail", "talk", "sleepy", "where", "odd", "nan", "die")


@pytest.fixture
def tooled(sandbox: Sandbox) -> Sandbox:
    """A sandbox with a function of each kind and a toolkit that remembers."""
    sandbox.files.upload(Path(somewhere.__file__), "somewhere.py")
    named = [f"somewhere.{each}" for each in FUNCTIONS]
    added = sandbox.tools.add(*named, 'somewhere.Counter{"start": 5}')
    assert added.failures == []
    assert [each.name for each in added.tools] == [*FUNCTIONS, "count"]
    assert added.toolkits == ['somewhere.Counter{"start": 5}']
    return sandbox


def test_functions_are_called_by_name_and_by_position(tooled: Sandbox) -> None:
    assert tooled.tools.call("double", {"number": 4}).value == 8
    assert tooled.tools.call("shout", {"times": 2}, positional=["hey"]).value == "HEY HEY"
    assert tooled.tools.call("later", {"number": 1}).value == 2
    told = tooled.tools.call("where").value
    assert told["cwd"] == tooled.workspace and told["camel"] == "true"


def test_each_call_is_an_action_in_the_log(tooled: Sandbox) -> None:
    result = tooled.tools.call("double", {"number": 4})
    events = {event.sequence: event for event in tooled.events(follow=False)}
    action = events[result.action_id]
    assert action.payload["action"] == "call_tool"
    assert action.payload["args"]["name"] == "double"
    assert events[result.event_id].cause == result.action_id


def test_a_toolkit_remembers_until_it_is_reset(tooled: Sandbox) -> None:
    assert [tooled.tools.call("count").value for _ in range(3)] == [6, 7, 8]
    tooled.tools.reset()
    assert tooled.tools.call("count").value == 6


def test_what_a_tool_raises_is_raised_with_all_that_is_known(tooled: Sandbox) -> None:
    with pytest.raises(ToolError, match="the tool `fail` raised ValueError: no good") as caught:
        tooled.tools.call("fail", {"message": "no good"})
    error = caught.value
    assert (error.tool, error.kind, error.detail) == ("fail", "ValueError", "no good")
    assert (error.stdout, error.stderr) == ("before\n", "trouble\n")
    assert error.traceback is not None and "somewhere.py" in error.traceback


def test_what_goes_wrong_otherwise_has_a_class_of_its_own(tooled: Sandbox) -> None:
    with pytest.raises(ToolNotFoundError):
        tooled.tools.call("none")
    with pytest.raises(ToolArgumentsError, match="number"):
        tooled.tools.call("double", {"number": "four"})
    with pytest.raises(ToolArgumentsError):
        tooled.tools.call("double", {"number": 4, "other": 1})
    assert tooled.tools.call("double", {"number": "four"}, checked=False).value == "fourfour"
    with pytest.raises(ToolTimedOutError):
        tooled.tools.call("sleepy", {"seconds": 60}, timeout=0.5)
    with pytest.raises(ToolError, match="object"):
        tooled.tools.call("odd")
    with pytest.raises(ToolLostError):
        tooled.tools.call("die")
    assert tooled.tools.call("double", {"number": 1}).value == 2
    with pytest.raises(InvalidError, match="JSON"):
        tooled.tools.call("double", {"number": math.nan})


def test_numbers_that_only_python_can_write_come_back(tooled: Sandbox) -> None:
    assert math.isnan(tooled.tools.call("nan").value)


def test_what_calls_print_is_theirs_also_beside_each_other(tooled: Sandbox) -> None:
    printed: Dict[str, str] = {}

    def talk(name: str) -> None:
        result = tooled.tools.call("talk", {"lines": 20, "name": name})
        printed[result.value] = result.stdout

    threads = [threading.Thread(target=talk, args=(name,)) for name in "abcdefgh"]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert printed == {
        name: "".join(f"{name} {number}\n" for number in range(20)) for name in "abcdefgh"
    }


def test_schemas_are_those_of_openai_and_of_mcp(tooled: Sandbox) -> None:
    openai = {each["function"]["name"]: each for each in tooled.tools.schemas()}
    parameters = openai["shout"]["function"]["parameters"]
    assert openai["shout"]["type"] == "function"
    assert parameters["properties"]["text"]["description"] == "What to say."
    assert parameters["required"] == ["text", "times"]
    mcp = {each["name"]: each for each in tooled.tools.schemas("mcp")}
    assert mcp["shout"]["inputSchema"]["required"] == ["text"]
    assert mcp["double"]["description"] == "Twice as much."


def test_tools_are_listed_and_removed(tooled: Sandbox) -> None:
    tooled.tools.remove("double")
    assert [each.name for each in tooled.tools.list()] == [*FUNCTIONS[1:], "count"]
    with pytest.raises(NotFoundError):
        tooled.tools.remove("double")
    origin = tooled.tools.list()[-1].origin
    assert (origin.kind, origin.name) == ("python", 'somewhere.Counter{"start": 5}')


def test_what_cannot_be_loaded_is_told(sandbox: Sandbox) -> None:
    sandbox.files.upload(Path(somewhere.__file__), "somewhere.py")
    added = sandbox.tools.add("somewhere.double", "nowhere.function", "somewhere.missing")
    assert [each.name for each in added.tools] == ["double"]
    told = {each.entrypoint: each.type for each in added.failures}
    assert told == {
        "nowhere.function": "ModuleNotFoundError",
        "somewhere.missing": "AttributeError",
    }
    with pytest.raises(InvalidError, match="ModuleNotFoundError"):
        sandbox.tools.add("nowhere.function")


def test_a_command_is_a_tool_and_its_arguments_are_never_code(sandbox: Sandbox) -> None:
    greet = {
        "name": "greet",
        "argv": ["echo", "hello", "{name}"],
        "parameters": [{"name": "name"}, {"name": "more", "optional": True}],
    }
    sandbox.tools.add(commands=[greet])
    result = sandbox.tools.call("greet", {"name": "Ada; rm -rf / $(id) `id`"})
    assert result.value.strip() == "hello Ada; rm -rf / $(id) `id`"


def test_the_same_without_blocking(server: Server) -> None:
    async def main() -> None:
        async with AsyncClient(server.url, server.key) as client:
            async with await AsyncSandbox.create(client=client) as sandbox:
                await sandbox.files.upload(Path(somewhere.__file__), "somewhere.py")
                await sandbox.tools.add("somewhere.double", "somewhere.Counter")
                calls = (sandbox.tools.call("double", {"number": n}) for n in range(10))
                values: List[int] = [each.value for each in await asyncio.gather(*calls)]
                assert values == [n * 2 for n in range(10)]
                await sandbox.tools.call("count")
                await sandbox.tools.reset()
                assert (await sandbox.tools.call("count")).value == 1
                await sandbox.tools.remove("count")
                assert [each.name for each in await sandbox.tools.list()] == ["double"]

    asyncio.run(main())
