"""The life of a session: other actions, a second client, set-up scripts, the end."""

import os
import threading
import time

from openhands.core.config.mcp_config import MCPStdioServerConfig
from openhands.events import EventSource, EventStream, EventStreamSubscriber
from openhands.events.action import (
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileReadAction,
    IPythonRunCellAction,
)
from openhands.events.observation import CmdOutputObservation
from openhands.storage.memory import InMemoryFileStore

from . import expect
from .registry import Cases
from .sandbox import Sandbox, Server, wait_until

cases = Cases()
CASES = cases.listed


@cases.case()
def browsing_without_a_browser_is_an_error_observation(sandbox: Sandbox) -> None:
    text = 'Browser functionality is not supported or disabled.'
    expect.error(sandbox.runtime.browse(BrowseURLAction(url='http://localhost:1')), text)
    expect.error(sandbox.runtime.browse_interactive(BrowseInteractiveAction(browser_actions='noop()')), text)


@cases.case(better='the original answers with an internal error here, which ends the session')
def a_notebook_cell_without_a_notebook_is_an_error_observation(sandbox: Sandbox) -> None:
    observation = sandbox.runtime.run_ipython(IPythonRunCellAction(code='print(1)'))
    expect.error(observation, 'JupyterRequirement not found. Unable to run IPython action.')


@cases.case()
def an_unknown_action_is_an_error_of_the_server(sandbox: Sandbox) -> None:
    from openhands.runtime.utils.request import RequestHTTPError

    for action, reason in (
        ({'action': 'nope', 'args': {}}, "'action['action']='nope'' is not defined. Available actions: "),
        ({'action': 'run', 'args': {}}, "missing 1 required positional argument: 'command'"),
    ):
        url = f'{sandbox.runtime.action_execution_server_url}/execute_action'
        try:
            sandbox.runtime._send_action_server_request('POST', url, json={'action': action})
        except RequestHTTPError as refusal:
            expect.equal(refusal.response.status_code, 500)
            expect.contains(refusal.detail, 'Internal server error: ', reason)
        else:
            raise AssertionError(f'{action} was accepted')


@cases.case()
def no_editor_is_offered_for_vscode(sandbox: Sandbox) -> None:
    expect.equal(sandbox.runtime.vscode_url, None)
    url = f'{sandbox.runtime.action_execution_server_url}/vscode/connection_token'
    expect.equal(sandbox.runtime.session.get(url).json(), {'token': None})


@cases.case(better='the original needs npm tools on the host for this')
def announcing_a_tool_server_does_not_break_the_session(sandbox: Sandbox) -> None:
    extra = MCPStdioServerConfig(name='probe', command='true', args=[], env={})
    config = sandbox.runtime.get_mcp_config([extra])
    expect.equal([server.url for server in config.sse_servers], [f'{sandbox.runtime.api_url}/mcp/sse'])


@cases.case()
def the_setup_script_of_a_project_is_sourced(sandbox: Sandbox) -> None:
    sandbox.runtime.event_stream = EventStream('foreign-setup', InMemoryFileStore())
    try:
        sandbox.write('.openhands/setup.sh', 'sleep 1.5\nexport FROM_SETUP=sourced\necho "made" > made.txt')
        sandbox.runtime.maybe_run_setup_script()
    finally:
        sandbox.runtime.event_stream.close()
        sandbox.runtime.event_stream = None
    expect.finished(sandbox.run('echo $FROM_SETUP; cat made.txt'), 'sourced\nmade')


@cases.case()
def instructions_in_the_repository_are_found(sandbox: Sandbox) -> None:
    folder = sandbox.workspace / '.openhands' / 'microagents'
    folder.mkdir(parents=True)
    try:
        (folder / 'repo.md').write_text('---\nname: repo\ntype: repo\n---\nBuild with make.\n')
        (folder / 'deep').mkdir()
        (folder / 'deep' / 'hint.md').write_text('---\ntriggers: [zebra]\n---\nStripes.\n')
        found = {agent.name: agent.content.strip() for agent in sandbox.runtime.get_microagents_from_selected_repo(None)}
    finally:
        for path in sorted((sandbox.workspace / '.openhands').rglob('*'), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (sandbox.workspace / '.openhands').rmdir()
    expect.equal(found, {'repo': 'Build with make.', 'deep/hint': 'Stripes.'})


@cases.case()
def an_action_on_the_event_stream_gets_its_observation(sandbox: Sandbox) -> None:
    stream = EventStream('foreign-stream', InMemoryFileStore())
    runtime = sandbox.runtime
    arrived = threading.Event()
    seen: list[CmdOutputObservation] = []

    def listen(event) -> None:
        if isinstance(event, CmdOutputObservation):
            seen.append(event)
            arrived.set()

    runtime.event_stream = stream
    try:
        stream.subscribe(EventStreamSubscriber.RUNTIME, runtime.on_event, 'runtime')
        stream.subscribe(EventStreamSubscriber.TEST, listen, 'listener')
        action = CmdRunAction(command='echo through the stream')
        stream.add_event(action, EventSource.AGENT)
        assert arrived.wait(20), 'no observation came within 20 s'
    finally:
        stream.close()
        runtime.event_stream = None
    expect.equal([(event.content, event.cause, event.exit_code) for event in seen], [('through the stream', action.id, 0)])


@cases.case()
def a_second_client_finds_the_same_shell(sandbox: Sandbox) -> None:
    sandbox.output('LEFT_BEHIND="by the first"')
    second = sandbox.attached()
    try:
        observation = second.run(CmdRunAction(command='echo "$LEFT_BEHIND"'))
        expect.equal((observation.content, observation.exit_code), ('by the first', 0))
    finally:
        second.close()
    expect.finished(sandbox.run('echo "$LEFT_BEHIND"'), 'by the first')


@cases.case(better='the original keeps the lock until its command ends')
def a_client_that_hangs_up_leaves_the_command_running(sandbox: Sandbox) -> None:
    import httpx
    from openhands.events.serialization import event_to_dict

    action = CmdRunAction(command='echo before; sleep 1.5; echo after > done.txt; echo after')
    action.set_hard_timeout(30)
    url = f'{sandbox.runtime.action_execution_server_url}/execute_action'
    try:
        sandbox.runtime.session.post(url, json={'action': event_to_dict(action)}, timeout=0.5)
    except httpx.TimeoutException:
        pass
    else:
        raise AssertionError('the command ended before the client hung up')
    wait_until((sandbox.directory / 'done.txt').exists, 'the command did not go on')
    observation = sandbox.run('echo next', timeout=10)
    expect.equal((observation.exit_code, observation.content.splitlines()[-1]), (0, 'next'))


@cases.case(better='the original runs one action at a time')
def a_file_is_read_while_a_command_runs(sandbox: Sandbox) -> None:
    (sandbox.directory / 'quick.txt').write_text('quick\n')
    second = sandbox.attached()
    worker = threading.Thread(target=lambda: sandbox.run('sleep 3', timeout=30))
    worker.start()
    try:
        started = time.monotonic()
        content = second.read(FileReadAction(path=str(sandbox.directory / 'quick.txt'))).content
        elapsed = time.monotonic() - started
        ran_meanwhile = worker.is_alive()
    finally:
        worker.join()
        second.close()
    expect.equal((content, ran_meanwhile), ('quick\n', True))
    assert elapsed < 1, f'the read took {elapsed:.2f} s'


@cases.case(server=Server(api_key='closing', silence='1'))
def closing_ends_the_server_and_its_shell(sandbox: Sandbox) -> None:
    shell = int(sandbox.output('echo $$'))
    sandbox.run('sleep 300 > /dev/null 2>&1 &')
    process = sandbox.process
    started = time.monotonic()
    sandbox.runtime.close()
    elapsed = time.monotonic() - started
    assert process.poll() is not None, 'the server is still running'
    assert process.returncode != -9, 'the server had to be killed'
    assert elapsed < 5, f'closing took {elapsed:.1f} s'
    if not sandbox.is_original:
        wait_until(lambda: not os.path.exists(f'/proc/{shell}'), 'the shell outlived the server', 5)
    sandbox.restart()
    expect.finished(sandbox.run('echo again'), 'again')
