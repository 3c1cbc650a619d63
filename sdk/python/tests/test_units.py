"""The parts that need no server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from zareba import _blobs, _calls, _place, _private, _shell_words, errors, models
from zareba._sse import Message, Parser
from zareba._tries import TRIES_MAX, BackOff, Tries

SDK = Path(__file__).resolve().parents[1]


def test_the_client_that_blocks_is_made_from_the_one_that_does_not() -> None:
    command = [sys.executable, str(SDK / "scripts" / "unasync.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_messages_are_whole_however_their_bytes_are_cut() -> None:
    stream = b': ping\n\nid: 1\nevent: note\ndata: {"a":\ndata: \xc3\xa4}\r\n\r\ndata:x\n\n'
    expected = [Message("note", '{"a":\nä}'), Message("message", "x")]
    for size in range(1, len(stream) + 1):
        parser, got = Parser(), []
        for start in range(0, len(stream), size):
            got += list(parser.feed(stream[start : start + size]))
        assert got == expected, size


def test_a_message_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zareba._sse.MESSAGE_BYTES_MAX", 100)
    with pytest.raises(errors.InternalError):
        list(Parser().feed(b"data: " + b"x" * 200))


def test_waits_grow_up_to_the_longest() -> None:
    back_off = BackOff(0.1, 0.3)
    for most in (0.1, 0.2, 0.3, 0.3):
        assert most / 2 <= back_off.step() <= most


def test_only_what_is_harmless_and_may_pass_is_tried_again() -> None:
    lost = errors.DisconnectedError("lost", may_have_happened=True)
    unsent = errors.DisconnectedError("unsent")
    once, named = _calls.call("rename_file", session="s"), _calls.session("pause_session", "s")
    assert Tries(once).wait_after(lost) is None
    assert Tries(once).wait_after(unsent) is not None
    assert Tries(named).wait_after(lost) is not None
    for error in (
        errors.NotFoundError("no"),
        errors.TimedOutError("late", may_have_happened=True),
        errors.BusyError("there", code="exists"),
    ):
        assert Tries(named).wait_after(error) is None
    tries = Tries(named)
    waits = [tries.wait_after(lost) for _ in range(TRIES_MAX)]
    assert waits[-1] is None and None not in waits[:-1]


def test_every_call_that_changes_something_has_a_key_of_its_own() -> None:
    keys: List[str] = []
    for operation, (method, path) in _calls.OPERATIONS.items():
        parts: Dict[str, object] = {
            "action": 1,
            "digest": "d",
            "port": 2,
            "terminal": "t",
            "tool": "u",
        }
        call = _calls.call(operation, session="a/b", **parts)
        assert "{" not in call.path and "a/b" not in call.path, path
        assert ("idempotency-key" in call.headers) == (method != "GET")
        keys += [call.headers["idempotency-key"]] if method != "GET" else []
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "asked",
    [{}, {"cwd": "/"}, {"env": {"A": "b"}}, {"typed": True}, {"whole": True}, {"shell": "s"}],
)
def test_commands_are_as_their_model_says(asked: Dict[str, Any]) -> None:
    arguments = _calls.run("true", **asked)["args"]
    model = models.RunCommand.model_validate(arguments)
    assert model.blocking and model.is_static == bool("cwd" in asked or "env" in asked)
    # Nothing that is a default, and nothing that the server does not know.
    assert model.model_dump(exclude_defaults=True) == arguments


def test_refusals_of_proxies_and_later_servers_have_a_class() -> None:
    proxy = errors.refusal(502, b"<html>Bad gateway</html>", None)
    assert isinstance(proxy, errors.DisconnectedError) and proxy.code == "disconnected"
    body = {"error": {"code": "conflict", "message": "no", "hint": "do", "request_id": "r"}}
    ours = errors.refusal(409, json.dumps(body).encode(), None)
    assert isinstance(ours, errors.BusyError)
    assert (ours.code, ours.hint, ours.request_id, str(ours)) == ("conflict", "do", "r", "no (do)")
    for odd in (b"[]", b'{"error": 3}', b"\xff"):
        assert isinstance(errors.refusal(500, odd, "id"), errors.InternalError)


def test_parts_that_are_kept_apart_are_put_back() -> None:
    reference = {"$blob": "0" * 64, "form": "text", "bytes": 3, "head": "a"}
    document: Dict[str, Any] = {"content": dict(reference), "list": [{"deep": dict(reference)}]}
    found = _blobs.references(document)
    for each, put in found:
        put(each.value(b"abc"))
    assert document == {"content": "abc", "list": [{"deep": "abc"}]}
    assert _blobs.references({"content": {"$blob": "x", "form": "text"}}) == []


def test_names_of_variables_cannot_be_commands() -> None:
    assert _shell_words.exports({"A": "it's; rm"}) == "export A='it'\"'\"'s; rm'"
    for name in ("", "1A", "A=1; rm", "A B", "Ä", "A\n"):
        with pytest.raises(errors.InvalidError):
            _shell_words.exports({name: "x"})


def test_a_place_shows_no_key_and_knows_sockets() -> None:
    place = _place.checked("unix:/run/x", "very-secret")
    assert "very-secret" not in repr(place)
    assert (place.socket, place.base_url, place.is_local) == ("/run/x", "http://localhost", True)
    assert not _place.checked("https://example.com/", "k").is_local
    with pytest.raises(errors.InvalidError):
        _place.checked("example.com", None)


def test_a_server_that_does_not_answer_is_not_found(tmp_path: Path) -> None:
    environment = {"ZAREBA_STATE_DIRECTORY": str(tmp_path)}
    assert _place.running(environment) is None
    (tmp_path / "admin.key").write_text("k\n")
    (tmp_path / "server.json").write_text(json.dumps({"url": f"unix:{tmp_path}/none", "pid": 1}))
    assert _place.running(environment) is None


def test_without_a_program_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(errors.UnsupportedError) as caught:
        _private.program({"ZAREBA_BIN": str(tmp_path / "none"), "PATH": "/usr/bin"})
    assert "ZAREBA_URL" in str(caught.value)


def test_what_was_stopped_before_its_turn_is_an_error_of_its_own() -> None:
    text = "ERROR: The command was NOT run: the action was stopped before its turn came."
    error = errors.of_observation("stopped", text)
    assert type(error) is errors.StoppedError
    assert (error.code, error.message) == ("stopped", text[len("ERROR: ") :])
    assert type(errors.of_observation("guard_denied", "no")) is errors.PermissionDeniedError
    assert type(errors.of_observation("", "no")) is errors.InvalidError
