"""Drives `zareba.openhands.ZarebaRuntime` as OpenHands 0.62 itself would: by its setting's name.

Started by `run` inside the environment of `e2e/foreign/setup`, with our package on the path and
`ZAREBA_BIN` naming the program. Nothing of OpenHands is replaced or patched.

Prints one line per case and a closing line; exits 0 when nothing failed.
"""

import asyncio
import contextlib
import os
import sys
import tempfile
import traceback
import zipfile
from pathlib import Path

NAME = 'zareba.openhands.ZarebaRuntime'
CASES = []


def case(check):
    CASES.append(check)
    return check


def runtime(sid: str, *, attach: bool = False, workspace: Path | None = None, **sandbox):
    """The class that the setting names, made as OpenHands makes it."""
    from openhands.core.config import OpenHandsConfig
    from openhands.llm.llm_registry import LLMRegistry
    from openhands.runtime import get_runtime_cls

    config = OpenHandsConfig()
    config.runtime = NAME
    config.enable_browser = False
    config.workspace_base = str(workspace) if workspace else None
    for name, value in sandbox.items():
        setattr(config.sandbox, name, value)
    kind = get_runtime_cls(config.runtime)
    return kind(config, None, LLMRegistry(config), sid=sid, attach_to_existing=attach)


def connected(sid: str, **options):
    made = runtime(sid, **options)
    asyncio.run(made.connect())
    return made


def output(made, text: str) -> str:
    from openhands.events.action import CmdRunAction

    observation = made.run_action(CmdRunAction(command=text))
    assert getattr(observation, 'exit_code', None) == 0, f'`{text}` failed: {observation}'
    return observation.content


@case
def commands_files_and_variables(scratch: Path) -> None:
    from openhands.events.action import FileEditAction, FileReadAction, FileWriteAction

    made = connected('one', runtime_startup_env_vars={'GIVEN': 'a b'})
    try:
        assert made.runtime_initialized
        assert output(made, 'echo "$GIVEN"; cd /; kept=1') == 'a b'
        assert output(made, 'pwd; echo $kept') == '/\n1'
        path = str(made.workspace_root / 'note.txt')
        made.run_action(FileWriteAction(path=path, content='one\ntwo'))
        edit = FileEditAction(path=path, command='str_replace', old_str='two', new_str='three')
        assert made.run_action(edit).observation == 'edit'
        assert made.run_action(FileReadAction(path=path)).content == 'one\nthree\n'
    finally:
        made.close()


@case
def files_go_in_and_come_out(scratch: Path) -> None:
    source = scratch / 'sent'
    (source / 'inner').mkdir(parents=True)
    (source / 'inner' / 'file.txt').write_text('content')
    made = connected('two')
    try:
        made.copy_to(str(source), str(made.workspace_root), recursive=True)
        assert made.list_files() == ['sent/']
        packed = made.copy_from(str(made.workspace_root))
        try:
            with zipfile.ZipFile(packed) as archive:
                assert archive.read('sent/inner/file.txt') == b'content'
        finally:
            packed.unlink()
    finally:
        made.close()


@case
def a_conversation_is_found_again_and_ends_when_nobody_keeps_it(scratch: Path) -> None:
    from openhands.core.exceptions import AgentRuntimeDisconnectedError

    first = connected('three', keep_runtime_alive=True)
    output(first, 'touch here')
    first.close()
    again = connected('three', attach=True)
    assert output(again, 'ls') == 'here'
    again.pause()
    again.resume()
    assert output(again, 'ls') == 'here'
    again.close()
    asyncio.run(type(again).delete('three'))
    try:
        connected('three', attach=True)
    except AgentRuntimeDisconnectedError:
        return
    raise AssertionError('it was found although it had ended')


@case
def the_workspace_is_the_one_that_is_named(scratch: Path) -> None:
    given = scratch / 'given'
    given.mkdir()
    (given / 'there.txt').write_text('yes')
    made = connected('four', workspace=given)
    try:
        assert output(made, f'cat {made.workspace_root}/there.txt') == 'yes'
        output(made, f'echo done > {made.workspace_root}/made.txt')
    finally:
        made.close()
    # The agent's work stays when its sandbox has gone.
    assert (given / 'made.txt').read_text() == 'done\n'


@contextlib.contextmanager
def named(**variables: str):
    """Variables of this process for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@case
def a_config_that_asks_for_confirmation_is_openhands_own(scratch: Path) -> None:
    project = scratch / 'confirming'
    project.mkdir()
    (project / 'config.toml').write_text(f'[core]\nruntime = "{NAME}"\n[security]\nconfirmation_mode = true\n')
    # Another mode, so that the server is another one than that of the cases before.
    with contextlib.chdir(project), named(ZAREBA_NATIVE_WORKSPACE_MODE='copy-on-write'):
        made = connected('confirming', workspace=project)
        try:
            output(made, f'echo changed > {made.workspace_root}/made.txt')
        finally:
            made.close()
    assert sorted(os.listdir(project)) == ['config.toml']


@case
def a_server_that_keeps_no_changes_says_so_before_the_work(scratch: Path) -> None:
    from openhands.core.exceptions import AgentRuntimeDisconnectedError
    from zareba._private import PrivateServer, program

    given = scratch / 'kept'
    given.mkdir()
    server = PrivateServer(program(os.environ), {'ZAREBA_NATIVE_WORKSPACE_MODE': 'copy-on-write'})
    try:
        place = server.place
        with named(ZAREBA_URL=place.url, ZAREBA_API_KEY=place.key):
            try:
                connected('kept', workspace=given)
            except AgentRuntimeDisconnectedError as error:
                assert 'ZAREBA_NATIVE_WORKSPACE_MODE=copy-on-write' in str(error), error
            else:
                raise AssertionError('the work would have been lost')
            with named(ZAREBA_NATIVE_WORKSPACE_MODE='copy-on-write'):
                made = connected('kept', workspace=given)
                output(made, f'echo changed > {made.workspace_root}/made.txt')
                made.close()
    finally:
        server.end()
    assert os.listdir(given) == []


@case
def failures_are_as_openhands_knows_them(scratch: Path) -> None:
    from openhands.events.action import CmdRunAction, FileReadAction

    made = connected('five')
    try:
        failed = made.run_action(CmdRunAction(command='exit_with() { return 7; }; exit_with'))
        assert failed.exit_code == 7
        assert made.run_action(FileReadAction(path='/missing')).observation == 'error'
    finally:
        made.close()


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory(prefix='zareba-sdk-') as scratch:
        home = Path(scratch, 'home')
        home.mkdir()
        os.environ.update(HOME=str(home), LOG_LEVEL='CRITICAL')
        os.environ['ZAREBA_STATE_DIRECTORY'] = str(Path(scratch, 'no-state'))
        for check in CASES:
            place = Path(scratch, check.__name__)
            place.mkdir()
            try:
                check(place)
                print(f'ok {check.__name__}', flush=True)
            except Exception:
                failed += 1
                print(f'FAIL {check.__name__}\n{traceback.format_exc()}', flush=True)
        from zareba import _private

        for server in _private._servers.values():
            # While its directory can still be removed.
            server.end()
    print(f'{len(CASES) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
