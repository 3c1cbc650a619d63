"""Whatever a caller hands over: it is taken, or the error is one of ours."""

from __future__ import annotations

import errno
import inspect
import itertools
import types
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

import zareba
from zareba import (
    BusyError,
    Client,
    InvalidError,
    LocalFileError,
    LocalFileNotFoundError,
    LocalPermissionError,
    NotFoundError,
    NotTextError,
    Sandbox,
    ZarebaError,
)
from zareba._sync import sandbox as sandboxes

WRONG: List[Any] = [
    5, -1, 1.5, True, None, "x", "", "\ud800", "a\0b", b"x", [], [1], ["x"], {}, {1: 2}, {"a": 1},
    object(), lambda: 5, float("nan"), float("inf"), 1e299, 10**400,
]  # fmt: skip
"""Of each of these most parameters can make nothing."""

RIGHT: Dict[Tuple[str, str], Dict[str, Any]] = {
    ("Sandbox", "act"): {"action": {"action": "read", "args": {"path": "file"}}},
    ("Sandbox", "attach_terminal"): {"name": "terminal"},
    ("Sandbox", "connect"): {"id": "none"},
    ("Sandbox", "edit"): {"path": "file", "old": "old", "new": "new"},
    ("Sandbox", "port"): {"number": 8000},
    ("Sandbox", "port_for_browsers"): {"number": 8000},
    ("Sandbox", "program"): {"program": "true"},
    ("Sandbox", "run"): {"command": "true"},
    ("Sandbox", "set_timeout"): {"seconds": 600},
    ("Sandbox", "start"): {"command": "true"},
    ("Sandbox", "undo_edit"): {"path": "file"},
    ("Sandbox", "unshare_port"): {"number": 8000},
    ("Shell", "run"): {"command": "true"},
    ("Shell", "send"): {"text": "x", "timeout": 0.1},
    ("Shell", "start"): {"command": "true"},
    ("Files", "download"): {"path": "file", "local": "local"},
    ("Files", "exists"): {"path": "file"},
    ("Files", "make_dir"): {"path": "directory"},
    ("Files", "read"): {"path": "file"},
    ("Files", "read_bytes"): {"path": "file"},
    ("Files", "remove"): {"path": "file"},
    ("Files", "rename"): {"path": "file", "to": "other"},
    ("Files", "stat"): {"path": "file"},
    ("Files", "stream"): {"path": "file"},
    ("Files", "upload"): {"local": "here"},
    ("Files", "write"): {"path": "file", "content": "old"},
    ("Env", "get"): {"name": "HOME"},
    ("Tools", "call"): {"name": "none"},
    ("Tools", "remove"): {"name": "none"},
    ("Program", "resize"): {"columns": 80, "rows": 24},
    ("Program", "send_signal"): {"name": "TERM"},
    ("Program", "write"): {"content": b"x"},
    ("Terminal", "read_until"): {"text": "$"},
    ("Terminal", "resize"): {"columns": 80, "rows": 24},
    ("Terminal", "write"): {"content": b"x"},
}
"""What the other parameters of a method are meanwhile, as far as they must be given."""

NOT_FOR_CALLERS = {
    "ask", "observation", "open", "perform", "place", "put_back", "send", "stop", "upgrade",
}  # fmt: skip
"""Methods of a client that the rest of the package uses."""


def makers() -> Dict[str, Callable[[Sandbox], Any]]:
    """An object of each class that callers have, in a sandbox of its own."""

    def command(sandbox: Sandbox) -> Any:
        made = sandbox.start("true")
        made.wait()
        return made

    def program(sandbox: Sandbox) -> Any:
        made = sandbox.program("true")
        while made.read() is not None:
            pass
        return made

    def terminal(sandbox: Sandbox) -> Any:
        made = sandbox.terminal("true")
        made.wait()
        return made

    return {
        "Client": lambda sandbox: sandbox.client,
        "Sandbox": lambda sandbox: sandbox,
        "Shell": lambda sandbox: sandbox.shell(),
        "Command": command,
        "Files": lambda sandbox: sandbox.files,
        "Env": lambda sandbox: sandbox.env,
        "Tools": lambda sandbox: sandbox.tools,
        "Program": program,
        "Terminal": terminal,
        "Events": lambda sandbox: sandbox.events(follow=False),
        "Watch": lambda sandbox: sandbox.files.watch(),
    }


@pytest.fixture
def none_left(client: Client) -> Iterator[None]:
    """Sandboxes that a test makes by the way end with it; those that have failed, too."""
    before = {each.id for each in Sandbox.list(client=client)}
    yield
    for each in Sandbox.list(client=client):
        if each.id not in before:
            each.close()


def methods() -> List[Tuple[str, str]]:
    """Every public method with parameters, of every public class."""
    found = []
    for name in makers():
        for method, value in inspect.getmembers(getattr(zareba, name), callable):
            if method.startswith("_") or (name == "Client" and method in NOT_FOR_CALLERS):
                continue
            if [each for each in inspect.signature(value).parameters if each != "self"]:
                found.append((name, method))
    return found


def test_every_class_that_does_something_is_walked() -> None:
    classes = {
        name
        for name in zareba.__all__
        if inspect.isclass(getattr(zareba, name))
        and getattr(zareba, name).__module__.startswith("zareba._sync")
    }
    assert classes == set(makers())
    assert set(RIGHT) <= set(methods())


@pytest.mark.usefixtures("none_left")
@pytest.mark.parametrize(("name", "method"), methods(), ids=[".".join(m) for m in methods()])
def test_what_a_parameter_cannot_be_is_an_error_of_ours(
    name: str, method: str, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("zareba._defaults._client", client)
    (tmp_path / "here").write_text("content")
    with Sandbox.create(client=client) as sandbox:
        sandbox.files.write("file", "old")
        sandbox.terminal("true", name="terminal")
        called = getattr(makers()[name](sandbox), method)
        right = RIGHT.get((name, method), {})
        for parameter in inspect.signature(called).parameters.values():
            for value in WRONG:
                if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
                    use(partial(called, value))
                else:
                    is_any = parameter.kind is parameter.VAR_KEYWORD
                    use(partial(called, **{**right, "NAME" if is_any else parameter.name: value}))


def use(call: Callable[[], Any]) -> None:
    """Calls something; what it returns is used, and ended."""
    try:
        made = call()
        if isinstance(made, types.GeneratorType):
            list(made)
        elif isinstance(made, (zareba.Events, zareba.Watch)):
            with made as context:
                if isinstance(context, zareba.Events):
                    list(itertools.islice(context, 1))
        elif isinstance(made, (Sandbox, zareba.Program, zareba.Terminal)):
            made.close()
        elif isinstance(made, zareba.Command):
            made.kill()
    except ZarebaError:
        pass


@pytest.mark.parametrize("value", WRONG, ids=range(len(WRONG)))
def test_so_is_what_a_client_cannot_be(value: Any) -> None:
    for arguments in ({"url": value}, {"url": "http://127.0.0.1:9", "key": value}, {"key": value}):
        use(lambda given=arguments: Client(**given).close())  # type: ignore[misc]


def test_files_of_this_machine_have_errors_of_ours_and_of_python(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    files = sandbox.files
    files.write("file", "x")
    with pytest.raises(LocalFileNotFoundError) as caught:
        files.upload(tmp_path / "missing")
    told = caught.value
    for each in (ZarebaError, LocalFileError, NotFoundError, FileNotFoundError):
        assert isinstance(told, each)
    assert (told.errno, told.filename) == (errno.ENOENT, str(tmp_path / "missing"))
    assert str(told) == f"`{tmp_path}/missing` of this machine: no such file or directory"
    with pytest.raises(LocalFileError):
        files.download("file", tmp_path / "none" / "file")
    assert issubclass(LocalPermissionError, PermissionError)


def test_a_file_that_is_no_text_is_an_error_of_ours_and_of_python(sandbox: Sandbox) -> None:
    sandbox.files.write("binary", b"ok \xff")
    with pytest.raises(NotTextError) as caught:
        sandbox.files.read("binary")
    told = caught.value
    assert isinstance(told, InvalidError) and isinstance(told, UnicodeDecodeError)
    assert (told.encoding, told.start) == ("utf-8", 3)
    assert told.hint == 'use `read_bytes`, or `errors="replace"`'


def test_a_list_of_hosts_is_not_one_text(client: Client) -> None:
    with pytest.raises(InvalidError, match="`allow` is a list of texts, and not a str"):
        Sandbox.create(allow="pypi.org", client=client)


def test_paths_inside_may_be_paths(sandbox: Sandbox) -> None:
    sandbox.files.write(Path("a/file"), "old")
    sandbox.edit(Path("a/file"), "old", "new")
    sandbox.files.rename(Path("a/file"), Path("b"))
    assert sandbox.files.read(Path("b")) == "new"
    assert sandbox.program("pwd", cwd=Path("/tmp")).communicate().stdout == b"/tmp\n"
    with pytest.raises(BusyError):
        sandbox.files.write(Path("b"), "x", exclusive=True)


def test_an_empty_list_of_hosts_asks_for_no_network_of_its_own() -> None:
    assert sandboxes._network(None, None, []) is None
    asked = sandboxes._network(None, iter(["pypi.org"]), ())  # type: ignore[arg-type]
    assert asked is not None and (asked.allow, asked.deny) == (["pypi.org"], [])
