"""Commands, shells, variables, edits and the life of a sandbox, with a server."""

from __future__ import annotations

import threading
import time
from typing import List

import pytest

from conftest import Server
from zareba import (
    BusyError,
    Client,
    CommandError,
    DisconnectedError,
    InvalidError,
    NotFoundError,
    PermissionDeniedError,
    Sandbox,
    SessionState,
)


def test_a_command_has_output_code_and_numbers(sandbox: Sandbox) -> None:
    result = sandbox.run("echo hello; echo again >&2; (exit 3)")
    assert (result.output, result.stdout, result.exit_code) == ("hello\nagain",) * 2 + (3,)
    assert not result.ok and not result.timed_out and not result.truncated
    assert 0 < result.duration < 30 and result.event_id > result.action_id >= 0
    assert result.raw["observation"] == "run"
    with pytest.raises(CommandError, match="exited with 3") as caught:
        result.check()
    assert caught.value.result is result
    assert sandbox.run("true").check().ok


def test_shells_keep_their_state_and_are_apart(sandbox: Sandbox) -> None:
    sandbox.run("cd /tmp; X=1")
    assert sandbox.run("pwd; echo $X").output == "/tmp\n1"
    other = sandbox.shell("other")
    assert other.run("pwd; echo [$X]").output == f"{sandbox.workspace}\n[]"
    assert sandbox.run("pwd; echo $Y", cwd="/usr", env={"Y": "it's"}).output == "/usr\nit's"
    assert sandbox.run("pwd; echo [$Y]").output == "/tmp\n[]"


def test_a_script_of_several_lines_is_one_command(sandbox: Sandbox) -> None:
    script = "cat <<END\nin $HOME\nEND\nZ=5  # kept\nfor n in 1 2\ndo echo $n; done"
    assert sandbox.run(script).output.splitlines()[1:] == ["1", "2"]
    assert sandbox.run("echo $Z").output == "5"


def test_long_output_is_cut_and_can_be_had(sandbox: Sandbox) -> None:
    result = sandbox.run("seq 1 50000")
    assert result.truncated and result.output_file
    assert len(result.output) < 40_000
    assert sandbox.run(f"grep -c . {result.output_file}").output == "50000"


def test_a_timeout_leaves_the_command_running(sandbox: Sandbox) -> None:
    result = sandbox.run("sleep 2; echo late", timeout=0.3)
    assert result.timed_out and result.exit_code == -1
    with pytest.raises(CommandError, match="in time"):
        result.check()
    with pytest.raises(BusyError):
        sandbox.run("true")
    assert sandbox.shell().more(30).output == "late"


def test_a_command_can_be_typed_at_and_interrupted(sandbox: Sandbox) -> None:
    shell = sandbox.shell("typed")
    shell.run("read word; echo got $word", timeout=0.3)
    assert shell.send("yes", timeout=10).output.endswith("got yes")
    shell.run("sleep 600", timeout=0.3)
    assert shell.interrupt(timeout=10).exit_code == 130
    assert shell.run("echo free").output == "free"


def test_output_is_told_while_a_command_runs(sandbox: Sandbox) -> None:
    pieces: List[str] = []
    times: List[float] = []

    def tell(piece: str) -> None:
        pieces.append(piece)
        times.append(time.monotonic())

    begun = time.monotonic()
    result = sandbox.run("echo one; sleep 2; echo two", on_output=tell)
    assert (pieces, result.output, result.exit_code) == (["one", "two"], "one\ntwo", 0)
    assert times[0] - begun < 1.9, "the first line came only at the end"
    quiet = sandbox.run("sleep 600", on_output=tell, timeout=0.2)
    assert quiet.timed_out
    with pytest.raises(ValueError):
        sandbox.run("true", cwd="/", on_output=tell)


def test_a_background_command_is_waited_for_and_watched(sandbox: Sandbox) -> None:
    command = sandbox.start("echo a; sleep 1; echo b; exit 4")
    assert sandbox.run("echo beside").output == "beside"
    assert not command.wait(0.1).ok and not command.done
    assert list(command.output()) == ["a", "b", "exit"] or command.wait().output.startswith("a\nb")
    assert command.wait().exit_code == 4 and command.done


def test_a_background_command_is_interrupted_while_others_wait(sandbox: Sandbox) -> None:
    command = sandbox.start("sleep 600")
    codes: List[int] = []
    waiters = [
        threading.Thread(target=lambda: codes.append(command.wait().exit_code)) for _ in range(3)
    ]
    for each in waiters:
        each.start()
    command.interrupt()
    for each in waiters:
        each.join(30)
    assert codes == [130, 130, 130]
    command.interrupt()


def test_many_threads_share_a_sandbox(sandbox: Sandbox) -> None:
    outputs: List[str] = []

    def run(number: int) -> None:
        outputs.append(sandbox.run(f"sleep 0.2; echo {number}", shell=f"s{number}").output)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert sorted(outputs) == [str(number) for number in range(8)]


def test_variables_are_set_read_and_removed(sandbox: Sandbox) -> None:
    odd = {"ODD": "a b\n\tc\\n $HOME 'x' \"y\" ", "EMPTY": ""}
    sandbox.env.set(odd, MORE="m")
    assert {**odd, "MORE": "m"}.items() <= sandbox.env.all().items()
    sandbox.env.unset("MORE", "EMPTY")
    assert sandbox.env.get("MORE") is None and sandbox.env.get("EMPTY", "none") == "none"
    with pytest.raises(InvalidError):
        sandbox.env.set({"A B": "x"})


def test_what_is_given_at_the_start_is_there_and_secrets_are_not_shown(client: Client) -> None:
    with Sandbox.create(
        env={"PLAIN": "p"}, secrets={"TOKEN": "very-secret-1"}, labels={"a": "b"}, client=client
    ) as sandbox:
        assert sandbox.run("echo $PLAIN ${#TOKEN} $TOKEN").output == "p 13 <secret_hidden>"
        assert sandbox.env.get("TOKEN") == "<secret_hidden>"
        assert sandbox.info().labels == {"a": "b"}
        logged = "".join(str(event.payload) for event in sandbox.events(follow=False))
        assert "very-secret-1" not in logged


def test_an_edit_replaces_once_and_can_be_undone(sandbox: Sandbox) -> None:
    sandbox.run("printf 'one\\ntwo\\n' > f")
    edit = sandbox.edit("f", "two", "three")
    assert edit.diff.endswith("-two\n+three") and edit.event_id > 0
    assert sandbox.run("cat f").output == "one\nthree"
    for old in ("missing", "e"):
        with pytest.raises(InvalidError):
            sandbox.edit("f", old, "x")
    sandbox.undo_edit(f"{sandbox.workspace}/f")
    assert sandbox.run("cat f").output == "one\ntwo"


def test_a_sandbox_is_paused_and_wakes(sandbox: Sandbox) -> None:
    assert sandbox.pause().state == SessionState.PAUSED
    assert sandbox.run("echo awake").output == "awake"
    sandbox.pause()
    assert sandbox.resume().state == "ready"
    before = sandbox.info().last_active
    assert sandbox.keep_alive().last_active >= before
    assert sandbox.inspect()["pid"] > 0


def test_a_sandbox_is_found_by_its_name_and_closed_once(client: Client) -> None:
    with Sandbox.create(id="by-name", client=client) as sandbox:
        with pytest.raises(BusyError) as caught:
            Sandbox.create(id="by-name", client=client)
        assert caught.value.code == "exists" and caught.value.request_id
        with Sandbox.connect("by-name", client=client) as same:
            assert same.run("echo same").output == "same"
        assert sandbox.run("echo still there").ok
        assert "by-name" in [each.id for each in Sandbox.list(client=client)]
    assert "by-name" not in [each.id for each in Sandbox.list(client=client)]
    assert "by-name" in [each.id for each in Sandbox.list(closed=True, client=client)]
    sandbox.close()
    with pytest.raises(BusyError):
        sandbox.run("true")
    sandbox.close(purge=True)
    sandbox.close(purge=True)
    with pytest.raises(NotFoundError):
        Sandbox.connect("by-name", client=client)


def test_limits_are_passed_on(client: Client) -> None:
    with Sandbox.create(
        idle_timeout=100, when_idle="close", life_max=1000.5, timeout=0.5, client=client
    ) as sandbox:
        limits = sandbox.info().limits
        assert (limits.idle_timeout, limits.when_idle, limits.life_max) == (100, "close", 1000.5)
        assert sandbox.run("sleep 600").timed_out


def test_errors_have_their_classes(client: Client, server: Server) -> None:
    with pytest.raises(NotFoundError) as caught:
        Sandbox.connect("nobody", client=client)
    assert caught.value.code == "not_found" and caught.value.status == 404
    with pytest.raises(PermissionDeniedError) as denied, Client(server.url, "wrong") as stranger:
        stranger.status()
    assert denied.value.code == "unauthorized" and server.key not in repr(client)
    with pytest.raises(NotFoundError):
        Sandbox.create(image="no-such-image", client=client)
    with pytest.raises(InvalidError):
        client_action = Sandbox.create(client=client)
        try:
            client_action.act({"action": "read", "args": {"path": 1}})
        finally:
            client_action.close()
    with pytest.raises(DisconnectedError), Client("http://127.0.0.1:1", "k") as nobody:
        nobody.health()


def test_the_server_tells_of_itself(client: Client) -> None:
    assert client.health().status == "ok"
    assert client.status().version
    assert any(each.is_default for each in client.runtimes())
    assert client.limits().sessions > 0


def test_what_the_log_keeps_apart_comes_back_whole(sandbox: Sandbox) -> None:
    text = 'not "$blob" itself\n' * 50_000
    sandbox.files.write("long", text)
    arguments = {"path": f"{sandbox.workspace}/long"}
    assert sandbox.act({"action": "read", "args": arguments})["content"] == text
    whole = {"command": "head -c 2000000 /dev/zero | tr '\\0' a", "blocking": True, "hidden": True}
    assert sandbox.act({"action": "run", "args": whole})["content"] == "a" * 2_000_000
