"""Commands, shells, variables, edits and the life of a sandbox, with a server."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any, Callable, List

import pytest

from conftest import Server
from zareba import (
    BusyError,
    Client,
    ClosedError,
    CommandError,
    DisconnectedError,
    InvalidError,
    NotFoundError,
    PermissionDeniedError,
    Sandbox,
    SessionState,
    UnsupportedError,
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


def test_pieces_of_output_join_to_what_the_command_wrote(sandbox: Sandbox) -> None:
    pieces: List[str] = []
    seen = threading.Event()

    def tell(piece: str) -> None:
        pieces.append(piece)
        if "20%" in "".join(pieces):
            seen.set()

    def let_go() -> None:
        seen.wait(60)
        sandbox.run("echo > go", shell="other")

    sandbox.run("mkfifo go; exec 3<>go")
    helper = threading.Thread(target=let_go)
    helper.start()
    command = r"printf 'a  \n\n\n20%%\r'; read -u 3; printf '40%%\r100%%\n  b\n'"
    result = sandbox.run(command, on_output=tell)
    helper.join(60)
    assert "".join(pieces) == "a  \n\n\n20%\r40%\r100%\n  b\n"
    assert len(pieces) > 1, "all of it came at the end"
    # The result is that of a command that nobody watches.
    assert (result.output, result.exit_code) == ("a\n\n\n100%\n  b", 0)
    assert sandbox.run("printf a; sleep 0.6; echo b", on_output=tell).output == "ab"


def test_a_command_that_is_watched_is_one_action(sandbox: Sandbox) -> None:
    before = sandbox.run("true").event_id
    sandbox.run("for n in 1 2 3; do echo $n; sleep 0.4; done", on_output=lambda _: None)
    command = sandbox.start("echo a; sleep 1; echo b")
    assert command.wait(0.2).timed_out
    assert "".join(command.output()) == "a\nb\n" and command.wait().output == "a\nb"
    later = [each for each in sandbox.events(from_=before + 1, follow=False)]
    assert [each.kind for each in later] == ["action", "observation"] * 2


def test_a_watched_command_has_a_directory_variables_and_a_timeout(sandbox: Sandbox) -> None:
    pieces: List[str] = []
    result = sandbox.run("pwd; echo $X", cwd="/usr", env={"X": "it's"}, on_output=pieces.append)
    assert ("".join(pieces), result.output) == ("/usr\nit's\n", "/usr\nit's")
    quiet = sandbox.run("echo begun; sleep 600", on_output=pieces.append, timeout=3)
    assert (quiet.timed_out, quiet.output, pieces[-1]) == (True, "begun", "begun\n")
    sandbox.shell().interrupt()


def test_a_directory_that_is_not_there_is_told(sandbox: Sandbox) -> None:
    result = sandbox.run("echo ran", cwd="/nowhere")
    assert result.exit_code == 1 and "No such file or directory" in result.output
    assert "ran" not in result.output


def test_errors_are_apart_when_that_is_asked_for(sandbox: Sandbox) -> None:
    result = sandbox.run("echo out; echo 'err  ' >&2; cd /tmp; (exit 3)", separate_stderr=True)
    assert (result.output, result.stderr, result.exit_code) == ("out", "err  \n", 3)
    assert sandbox.run("pwd; ls /tmp/.zareba-stderr-* 2>/dev/null").output == "/tmp"
    assert sandbox.run("echo x >&2").stderr is None


def test_a_background_command_is_waited_for_and_watched(sandbox: Sandbox) -> None:
    command = sandbox.run(
        "pwd; echo $N; until [ -e /tmp/gate ]; do sleep 0.05; done; echo b; exit 4",
        background=True,
        cwd="/usr",
        env={"N": "a"},
    )
    assert sandbox.run("echo beside").output == "beside"
    written = ""
    for piece in command.output():
        written += piece
        if written == "/usr\na\n":
            break
    early = command.wait(0.3)
    assert (early.timed_out, early.output, command.done) == (True, "/usr\na", False)
    sandbox.run("touch /tmp/gate")
    assert "".join(command.output()).startswith("/usr\na\nb\n")
    assert command.wait().exit_code == 4 and command.done


def test_a_background_command_is_killed_and_its_shell_goes_with_it(sandbox: Sandbox) -> None:
    command = sandbox.start("trap '' INT TERM; echo begun; sleep 600")
    assert next(iter(command.output())) == "begun\n"
    command.interrupt()
    assert not command.wait(0.3).ok and not command.done
    command.kill()
    assert command.wait(60).exit_code == 137
    command.kill()
    assert sandbox.run("pgrep -f 'sleep 60[0]'").exit_code == 1


def test_any_number_of_commands_are_started_one_after_the_other(sandbox: Sandbox) -> None:
    codes = [sandbox.start(f"exit {n % 7}").wait().exit_code for n in range(70)]
    assert codes == [n % 7 for n in range(70)]


def test_whoever_is_interrupted_leaves_no_command_behind(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = Client.send
    is_first = True

    def interrupted(client: Client, call: Any, body: Any = None) -> Any:
        nonlocal is_first
        if is_first:
            # As if Ctrl-C were pressed while the answer is waited for.
            is_first = False
            threading.Thread(target=send, args=(client, call, body), daemon=True).start()
            raise KeyboardInterrupt
        return send(client, call, body)

    sandbox.run("X=kept")
    monkeypatch.setattr(Client, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sandbox.run("sleep 600")
    assert sandbox.run("echo $X").output == "kept"


def test_a_background_command_is_interrupted_while_others_wait(sandbox: Sandbox) -> None:
    command = sandbox.start("echo begun; sleep 600")
    assert next(iter(command.output())) == "begun\n"
    # A key that is pressed while a program is being started may be lost, as at any terminal: after
    # the fork, the shell's own handler hears it until the program is there.
    sandbox.run("until pgrep -f 'sleep 60[0]'; do :; done", timeout=60).check()
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


def test_variables_and_secrets_reach_every_shell_and_program(client: Client) -> None:
    show = 'echo "$LATER ${#TOKEN}"'
    with Sandbox.create(secrets={"TOKEN": "very-secret-1"}, client=client) as sandbox:
        sandbox.run("true", shell="before")
        sandbox.env.set(LATER="unlogged-value")
        outputs = [sandbox.run(show, shell=shell).output for shell in ("before", "after")]
        outputs.append(sandbox.run(show, cwd=".").output)
        with sandbox.program(["sh", "-c", show]) as program:
            outputs.append(program.communicate().stdout.decode().strip())
        assert outputs == ["unlogged-value 13"] * 4
        sandbox.env.unset("LATER")
        assert sandbox.run('echo "[$LATER]"', shell="before").output == "[]"


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
    with pytest.raises(ClosedError, match="`by-name` is closed"):
        sandbox.run("true")
    with pytest.raises(ClosedError):
        sandbox.files.read("/etc/hostname")
    sandbox.close(purge=True)
    sandbox.close(purge=True)
    with pytest.raises(NotFoundError):
        Sandbox.connect("by-name", client=client)


def test_a_sandbox_whose_log_is_removed_inside_its_context_ends_once(client: Client) -> None:
    with Sandbox.create(client=client) as sandbox:
        sandbox.close(purge=True)
        sandbox.close()


def test_a_sandbox_that_is_forgotten_is_paused_after_an_hour_and_stays(sandbox: Sandbox) -> None:
    limits = sandbox.info().limits
    # That is: as the server's settings say, whose defaults this page is made from.
    assert (limits.idle_timeout, limits.when_idle, limits.life_max) == (None, None, None)
    page = (Path(__file__).resolve().parents[3] / "docs" / "configuration.md").read_text()
    defaults = dict(re.findall(r"^\| `sessions\.(\w+)` \| [^|]+ \| ([^|]+) \|", page, re.MULTILINE))
    told = [defaults[each] for each in ("idle_timeout", "when_idle", "life_max")]
    assert told == ["`3600`", '`"pause"`', "unset"]


def test_limits_are_passed_on(client: Client) -> None:
    with Sandbox.create(
        idle_timeout=100, when_idle="close", life_max=1000.5, timeout=0.5, client=client
    ) as sandbox:
        limits = sandbox.info().limits
        assert (limits.idle_timeout, limits.when_idle, limits.life_max) == (100, "close", 1000.5)
        assert sandbox.run("sleep 600").timed_out


def test_a_life_can_be_changed_and_ends_the_sandbox(client: Client) -> None:
    with Sandbox.create(life_max=3600, labels={"a": "1"}, client=client) as sandbox:
        changed = sandbox.update(when_idle="close", life_max=7200, labels={"b": "2"})
        assert (changed.limits.when_idle, changed.limits.life_max) == ("close", 7200)
        assert sandbox.labels == {"b": "2"} and changed == sandbox.info()
        life = sandbox.set_timeout(60).limits.life_max
        assert life is not None and 60 <= life < 3600
        with sandbox.events() as events:
            sandbox.set_timeout(0.001)
            assert any(each.payload.get("state") == "closed" for each in events)
        with pytest.raises(ClosedError):
            sandbox.set_timeout(60)


def test_errors_have_their_classes(client: Client, server: Server) -> None:
    with pytest.raises(NotFoundError) as caught:
        Sandbox.connect("nobody", client=client)
    assert caught.value.code == "not_found" and caught.value.status == 404
    with pytest.raises(PermissionDeniedError) as denied, Client(server.url, "wrong") as stranger:
        stranger.status()
    assert denied.value.code == "unauthorized" and server.key not in repr(client)
    assert "Client(url=…, key=…)" in str(denied.value) and "Bearer" not in str(denied.value)
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


MISTAKES: List[Callable[[Sandbox], object]] = [
    lambda sandbox: sandbox.run(["echo"]),  # type: ignore[call-overload]
    lambda sandbox: sandbox.run(b"echo"),  # type: ignore[call-overload]
    lambda sandbox: sandbox.run("true", timeout=-1),
    lambda sandbox: sandbox.run("true", timeout=0),
    lambda sandbox: sandbox.run("true", timeout="1"),  # type: ignore[call-overload]
    lambda sandbox: sandbox.run("true", timeout=float("nan")),
    lambda sandbox: sandbox.run("true", cwd=1),  # type: ignore[call-overload]
    lambda sandbox: sandbox.run("true", env={"A": 1}),  # type: ignore[dict-item]
    lambda sandbox: sandbox.run("true", env={"A B": "1"}),
    lambda sandbox: sandbox.run("true", background=True, separate_stderr=True),  # type: ignore
    lambda sandbox: sandbox.start(None),  # type: ignore[arg-type]
    lambda sandbox: sandbox.start("true", timeout=-1),
    lambda sandbox: sandbox.shell().send("x", timeout=-1),
    lambda sandbox: sandbox.program(["true", 1]),  # type: ignore[list-item]
    lambda sandbox: sandbox.terminal(columns="many"),  # type: ignore[arg-type]
    lambda sandbox: sandbox.tools.add(lambda: None),  # type: ignore[arg-type]
    lambda sandbox: sandbox.tools.call("none", timeout=-1),
    lambda sandbox: sandbox.port(0),
    lambda sandbox: sandbox.port("8000"),  # type: ignore[arg-type]
    lambda sandbox: sandbox.set_timeout(0),
    lambda sandbox: sandbox.set_timeout("1"),  # type: ignore[arg-type]
    lambda sandbox: sandbox.update(when_idle="kill"),
    lambda sandbox: Sandbox.create(when_idle="kill", client=sandbox.client),
    lambda sandbox: Sandbox.create(timeout=-1, client=sandbox.client),
    lambda sandbox: Sandbox.create(labels={"a": 1}, client=sandbox.client),  # type: ignore
    lambda sandbox: Sandbox.create(image=1, client=sandbox.client),  # type: ignore[arg-type]
    lambda sandbox: Sandbox(),
]


def test_every_mistake_of_a_caller_is_an_error_of_ours(sandbox: Sandbox) -> None:
    for number, mistake in enumerate(MISTAKES):
        with pytest.raises(InvalidError) as caught:
            mistake(sandbox)
        assert caught.value.code in ("invalid", "invalid_request"), (number, caught.value)
    with pytest.raises(InvalidError, match="`echo 'a b'`, or `program`"):
        sandbox.run(["echo", "a b"])  # type: ignore[call-overload]
    with pytest.raises(InvalidError, match=r"Sandbox\.create"):
        Sandbox()


def with_user(sandbox: Sandbox, user: str) -> List[Callable[[str], object]]:
    """Everything that runs a command, as a user."""
    return [
        lambda command: sandbox.run(command, user=user),
        lambda command: sandbox.run(command, user=user, background=True).wait(),
        lambda command: sandbox.start(command, user=user).wait(),
        lambda command: sandbox.shell("other").run(command, user=user),
        lambda command: sandbox.shell("other").start(command, user=user).wait(),
        lambda command: sandbox.program(command, user=user).communicate(),
        lambda command: sandbox.terminal(command, user=user).wait(30),
    ]


def test_a_user_that_commands_cannot_run_as_is_refused_before_anything_runs(
    sandbox: Sandbox,
) -> None:
    name, number = sandbox.run("id -un; id -u").output.split()
    for run in with_user(sandbox, "somebody-else"):
        with pytest.raises(UnsupportedError, match=f"run as `{name}`"):
            run("echo ran >> log")
    assert not sandbox.files.exists("log")
    for user in (name, number):
        for run in with_user(sandbox, user):
            run("echo ran >> log")
    assert sandbox.files.read("log") == "ran\n" * 14


def test_a_background_command_whose_time_is_up_goes_on_in_a_shell_that_is_named(
    sandbox: Sandbox,
) -> None:
    sandbox.run("mkfifo on off").check()
    shell = sandbox.shell("kept")
    for start in (
        shell.start,
        lambda text, timeout: sandbox.start(text, shell="b", timeout=timeout),
    ):
        result = start("echo begun; read < on; echo > off", timeout=0.5).wait()
        assert (result.timed_out, result.exit_code, result.output) == (True, -1, "begun")
        assert [each.message for each in result.metadata.limits] == [
            "the answer was due after 0.5 s and the command goes on"
        ]
        assert sandbox.run("echo > on; read < off && echo it went on").output == "it went on"


def test_a_background_command_with_a_shell_of_its_own_ends_at_its_timeout(
    sandbox: Sandbox,
) -> None:
    starts: List[Callable[[str], Any]] = [
        lambda text: sandbox.start(text, timeout=0.5),
        lambda text: sandbox.run(text, timeout=0.5, background=True),
        lambda text: sandbox.shell("other").start(text, cwd="/tmp", timeout=0.5),
    ]
    for start in starts:
        command = start("echo begun; exec sleep 600")
        result = command.wait()
        assert (result.timed_out, result.exit_code, result.output) == (True, -1, "begun")
        assert [each.message for each in result.metadata.limits] == [
            "the command did not end within 0.5 s and was ended with its shell"
        ]
        assert command.done
        gone = "while pgrep -f 'sleep 60[0]'; do sleep 0.1; done"
        assert sandbox.run(gone, timeout=60).ok


def test_sandboxes_are_found_by_their_labels_and_can_be_used(client: Client) -> None:
    with Sandbox.create(labels={"kind": "a", "n": "1"}, client=client) as one:
        with Sandbox.create(labels={"kind": "a", "n": "2"}, client=client):
            found = Sandbox.list(labels={"kind": "a", "n": "1"}, client=client)
            assert [(each.id, each.state, each.labels["n"]) for each in found] == [
                (one.id, "ready", "1")
            ]
            assert found[0].run("echo found").output == "found"
            assert len(Sandbox.list(labels={"kind": "a"}, client=client)) == 2


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


def test_a_server_of_this_user_that_is_named_needs_no_key(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZAREBA_URL", server.url + "/")
    with pytest.raises(PermissionDeniedError), Client() as stranger:
        stranger.status()
    monkeypatch.setenv("ZAREBA_STATE_DIRECTORY", str(server.state))
    with Client() as owner:
        assert owner.status().version
    monkeypatch.setenv("ZAREBA_STATE_DIRECTORY", "/nonexistent")
    with Client(key=server.key) as named:
        assert named.status().version
    with pytest.raises(PermissionDeniedError), Client(key="wrong") as stranger:
        stranger.status()
    monkeypatch.setenv("ZAREBA_STATE_DIRECTORY", str(server.state))
    # Another address is another server, which gets no key of ours.
    port = int(server.url.rsplit(":", 1)[1])
    monkeypatch.setenv("ZAREBA_URL", f"http://localhost:{port}")
    with pytest.raises(PermissionDeniedError), Client() as stranger:
        stranger.status()


def test_a_key_without_a_server_is_an_error() -> None:
    with pytest.raises(InvalidError, match="no server that it is for"), Client(key="k") as client:
        client.status()
