"""Drives our server with the real, unmodified `RemoteRuntime` of OpenHands 0.62.

Started by `run --remote` inside the environment that `setup` makes. The server hands out runtimes
as the hosted service of OpenHands does; nothing of the client is replaced or patched.

Prints one line per case and a closing line; exits 0 when nothing failed.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
import uuid
import zipfile
from pathlib import Path

from openhands_client import explain, prepare_environment

CASES = []


def case(check):
    CASES.append(check)
    return check


def command(runtime, text: str, **options):
    from openhands.events.action import CmdRunAction
    from openhands.events.observation import CmdOutputObservation

    observation = runtime.run(CmdRunAction(command=text, **options))
    assert isinstance(observation, CmdOutputObservation), f'not a run observation: {observation!r}'
    return observation


def output(runtime, text: str) -> str:
    observation = command(runtime, text)
    assert observation.exit_code == 0, f'`{text}` failed: {observation}'
    return observation.content


def workspace(provider, runtime) -> Path:
    found = provider.call('GET', f'/sessions/{runtime.sid}').json()
    return Path(found['zareba']['workspace'])


def fresh() -> str:
    return f'sid-{uuid.uuid4().hex}'


def equal(actual, expected) -> None:
    assert actual == expected, f'got {actual!r}, expected {expected!r}'


@case
def a_runtime_is_started_and_runs_commands(provider) -> None:
    runtime = provider.connected(fresh(), runtime_startup_env_vars={'GIVEN': 'a b'})
    try:
        observation = command(runtime, 'echo out; echo $((6 * 7)); false')
        equal((observation.content, observation.exit_code), ('out\n42', 1))
        equal(output(runtime, 'echo "$GIVEN"'), 'a b')
        output(runtime, 'kept=1; cd /')
        equal(output(runtime, 'echo $kept; pwd'), '1\n/')
    finally:
        runtime.close()


@case
def a_command_outlives_its_timeout_and_takes_keys(provider) -> None:
    runtime = provider.connected(fresh(), runtime_startup_env_vars={'NO_CHANGE_TIMEOUT_SECONDS': '1'})
    try:
        observation = command(runtime, 'sleep 100')
        equal(observation.exit_code, -1)
        assert 'has no new output after 1 seconds' in observation.metadata.suffix, observation
        equal(command(runtime, 'C-c', is_input=True).exit_code, 130)
        equal(output(runtime, 'echo again'), 'again')
    finally:
        runtime.close()


@case
def files_are_written_read_and_edited(provider) -> None:
    from openhands.events.action import FileEditAction, FileReadAction, FileWriteAction

    runtime = provider.connected(fresh())
    try:
        path = str(workspace(provider, runtime) / 'note.txt')
        written = runtime.write(FileWriteAction(path=path, content='one\ntwo'))
        equal((written.observation, written.path), ('write', path))
        edited = runtime.edit(FileEditAction(path=path, command='str_replace', old_str='two', new_str='three'))
        equal(edited.observation, 'edit')
        equal(runtime.read(FileReadAction(path=path)).content, 'one\nthree\n')
        equal(output(runtime, f'cat {path}'), 'one\nthree')
        equal(runtime.read(FileReadAction(path='/missing')).observation, 'error')
    finally:
        runtime.close()


@case
def files_are_copied_both_ways_and_listed(provider) -> None:
    runtime = provider.connected(fresh())
    try:
        here = provider.scratch / uuid.uuid4().hex
        (here / 'tree' / 'deep').mkdir(parents=True)
        (here / 'tree' / 'deep' / 'file').write_text('x' * 100_000)
        (here / 'single.txt').write_text('alone')
        place = workspace(provider, runtime)
        runtime.copy_to(str(here / 'tree'), str(place), recursive=True)
        runtime.copy_to(str(here / 'single.txt'), str(place / 'made'))
        equal(runtime.list_files(str(place)), ['made/', 'tree/'])
        equal(runtime.list_files(str(place / 'made')), ['single.txt'])
        equal(output(runtime, f'wc -c < {place}/tree/deep/file'), '100000')
        archive = runtime.copy_from(str(place))
        try:
            with zipfile.ZipFile(archive) as packed:
                equal(sorted(packed.namelist()), ['made/single.txt', 'tree/deep/file'])
        finally:
            archive.unlink()
    finally:
        runtime.close()


@case
def a_second_client_finds_the_runtime_of_its_name(provider) -> None:
    first = provider.connected(fresh())
    try:
        output(first, 'kept=here')
        second = provider.connected(first.sid, attach=True)
        equal(second.runtime_id, first.runtime_id)
        equal(output(second, 'echo $kept'), 'here')
        second.close()
        again = provider.call('POST', '/start', json={'session_id': first.sid, 'image': 'x'}).json()
        equal(again['runtime_id'], first.runtime_id)
        equal(output(first, 'echo $kept'), 'here')
    finally:
        first.close()


@case
def a_closed_runtime_is_gone_and_its_name_can_be_used_again(provider) -> None:
    from openhands.core.exceptions import AgentRuntimeNotFoundError

    first = provider.connected(fresh())
    output(first, 'kept=here')
    first.close()
    equal(provider.call('GET', f'/sessions/{first.sid}').json()['status'], 'stopped')
    try:
        provider.connected(first.sid, attach=True)
    except AgentRuntimeNotFoundError:
        pass
    else:
        raise AssertionError('a stopped runtime was found')
    second = provider.connected(first.sid)
    try:
        assert second.runtime_id != first.runtime_id
        equal(output(second, 'echo "[$kept]"'), '[]')
    finally:
        second.close()


@case
def a_paused_runtime_wakes_when_it_is_used(provider) -> None:
    sid = fresh()
    runtime = provider.connected(sid, keep_runtime_alive=True, pause_closed_runtimes=True)
    runtime_id = runtime.runtime_id
    try:
        if not can_pause(provider, sid):
            answer = provider.call('POST', '/pause', json={'runtime_id': runtime_id})
            equal(answer.status_code, 501)
            return
        output(runtime, 'kept=here')
        equal(provider.call('POST', '/pause', json={'runtime_id': runtime_id}).status_code, 200)
        equal(provider.call('GET', f'/sessions/{sid}').json()['status'], 'paused')
        # The client is answered with 503, calls /resume and asks again. With an action it would
        # wait for itself: it holds the lock of its actions while it sets its environment up anew.
        equal(runtime.list_files('/'), runtime.list_files('/'))
        equal(provider.call('GET', f'/sessions/{sid}').json()['status'], 'running')
        equal(output(runtime, 'echo $kept'), 'here')
        runtime.close()
        equal(provider.call('GET', f'/sessions/{sid}').json()['status'], 'paused')
        again = provider.connected(sid)
        equal((again.runtime_id, output(again, 'echo $kept')), (runtime_id, 'here'))
        again.close()
    finally:
        # Their client closes once more when the program ends, and would try to pause.
        runtime.config.sandbox.keep_runtime_alive = False
        runtime.close()
        provider.call('POST', '/stop', json={'runtime_id': runtime_id})


def can_pause(provider, sid: str) -> bool:
    """Runtimes without walls cannot."""
    found = provider.call('GET', f'/sessions/{sid}').json()
    return found['zareba']['runtime'] not in ('cli', 'local')


@case
def a_plain_client_uses_the_action_execution_api(provider) -> None:
    from openhands.core.config import OpenHandsConfig
    from openhands.llm.llm_registry import LLMRegistry
    from openhands.runtime.impl.action_execution.action_execution_client import ActionExecutionClient

    started = provider.call('POST', '/start', json={'session_id': fresh(), 'image': 'x'}).json()

    class Client(ActionExecutionClient):
        @property
        def action_execution_server_url(self) -> str:
            return started['url']

        async def connect(self) -> None:
            self.check_if_alive()

    try:
        config = OpenHandsConfig()
        client = Client(config, None, LLMRegistry(config))
        client.session.headers.update({'X-Session-API-Key': started['session_api_key']})
        asyncio.run(client.connect())
        equal(output(client, 'echo plain'), 'plain')
        equal(client.list_files(), [])
        client.close()
    finally:
        provider.call('POST', '/stop', json={'runtime_id': started['runtime_id']})


@case
def keys_open_what_they_are_for(provider) -> None:
    import httpx

    equal(provider.call('GET', '/list', key='wrong').status_code, 403)
    one, two = (
        provider.call('POST', '/start', json={'session_id': fresh(), 'image': 'x'}).json() for _ in range(2)
    )
    try:
        for headers in ({}, {'X-Session-API-Key': two['session_api_key']}, {'X-Session-API-Key': 'wrong'}):
            for path in ('/alive', '/server_info', '/vscode/connection_token'):
                answer = httpx.get(one['url'] + path, headers=headers)
                equal((path, answer.status_code, answer.json()), (path, 403, {'detail': 'Invalid API Key'}))
        answer = httpx.get(one['url'] + '/alive', headers={'X-Session-API-Key': one['session_api_key']})
        equal(answer.status_code, 200)
    finally:
        for started in (one, two):
            provider.call('POST', '/stop', json={'runtime_id': started['runtime_id']})


@case
def nothing_is_built_and_that_is_said(provider) -> None:
    from openhands.core.exceptions import AgentRuntimeBuildError

    # Attached, so that there is nothing for it to stop when the program ends.
    builder = provider.runtime(fresh(), attach=True).runtime_builder
    assert builder.image_exists('some/image:tag')
    context = provider.scratch / uuid.uuid4().hex
    context.mkdir()
    (context / 'Dockerfile').write_text('FROM scratch\n')
    try:
        builder.build(str(context), ['some/image:tag', 'some/image:other'])
    except AgentRuntimeBuildError as error:
        assert 'builds no images' in str(error), error
    else:
        raise AssertionError('an image was built')


def run_cases(arguments: argparse.Namespace, scratch: Path) -> tuple[int, int]:
    from provider import Provider, Started

    try:
        if arguments.url:
            provider = Provider(scratch, arguments.url.rstrip('/'), arguments.key_file.read_text().strip())
        else:
            # A build that runs meanwhile must not take the program away.
            binary = Path(shutil.copy2(arguments.binary, scratch / 'zareba'))
            provider = Started(scratch, binary, arguments.runtime)
    except Exception as error:  # noqa: BLE001 - reported like a case, since their package hides it
        print(f'FAIL the_server_starts: {explain(error)}', flush=True)
        return 0, 1
    passed = failed = 0
    try:
        for check in CASES:
            if arguments.only not in check.__name__:
                continue
            started = time.monotonic()
            try:
                check(provider)
            except Exception as error:  # noqa: BLE001 - a case may fail in any way their client can
                failed += 1
                print(f'FAIL {check.__name__}: {explain(error)}', flush=True)
            else:
                passed += 1
                print(f'ok {check.__name__} ({time.monotonic() - started:.2f} s)', flush=True)
        left = provider.call('GET', '/list').json()['runtimes']
        if left:
            failed += 1
            print(f'FAIL no_case_leaves_a_runtime: {left}', flush=True)
    finally:
        provider.close()
    return passed, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--binary', type=Path, help='the zareba binary that has to serve')
    parser.add_argument('--url', help='a server that runs already, instead of one of our own')
    parser.add_argument('--key-file', type=Path, help='the file with the key to that server')
    parser.add_argument('--runtime', help='the runtime that sessions run in; the default of the server otherwise')
    parser.add_argument('--only', default='', help='run only cases whose name contains this')
    arguments = parser.parse_args()
    if not (arguments.binary or (arguments.url and arguments.key_file)):
        parser.error('give --binary, or --url with --key-file')
    with tempfile.TemporaryDirectory(prefix='zareba-remote-') as scratch:
        scratch_path = Path(scratch).resolve()
        prepare_environment(scratch_path)
        passed, failed = run_cases(arguments, scratch_path)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or passed == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
