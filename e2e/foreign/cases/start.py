"""The first look at a server: an untouched workspace, who we are, and what `connect` left behind."""

import getpass
import os

from . import expect
from .registry import Cases
from .sandbox import Sandbox, Server

cases = Cases()
CASES = cases.listed


@cases.case()
def an_empty_workspace_holds_nothing(sandbox: Sandbox) -> None:
    sandbox.output(f'cd {sandbox.workspace}')
    expect.finished(sandbox.run('ls -l'), 'total 0')
    expect.finished(sandbox.run('ls -A'), '')
    expect.equal(sandbox.runtime.list_files(), [])


@cases.case()
def connecting_reports_the_statuses_in_order(sandbox: Sandbox) -> None:
    expect.equal(
        sandbox.statuses,
        [('info', 'STATUS$STARTING_RUNTIME'), ('info', 'STATUS$STARTING_RUNTIME'), ('info', 'STATUS$READY')],
    )


@cases.case()
def a_finished_command_tells_where_and_who(sandbox: Sandbox) -> None:
    metadata = sandbox.run('echo hi').metadata
    expect.equal(
        (metadata.username, metadata.hostname, metadata.working_dir),
        (getpass.getuser(), os.uname().nodename.split('.')[0], str(sandbox.directory)),
    )
    expect.equal(metadata.py_interpreter_path, sandbox.output('which python'))


@cases.case()
def the_model_sees_output_exit_code_and_directory(sandbox: Sandbox) -> None:
    observation = sandbox.run('echo hi')
    expect.equal(
        observation.to_agent_observation(),
        'hi\n[The command completed with exit code 0.]\n'
        f'[Current working directory: {sandbox.directory}]\n'
        f'[Python interpreter: {observation.metadata.py_interpreter_path}]\n'
        '[Command finished with exit code 0]',
    )


@cases.case()
def the_client_configures_who_commits(sandbox: Sandbox) -> None:
    expect.equal(sandbox.output('git config --global user.name'), 'openhands')
    expect.equal(sandbox.output('git config --global user.email'), 'openhands@all-hands.dev')


@cases.case()
def a_wrong_key_is_refused_and_the_right_one_is_not(sandbox: Sandbox) -> None:
    from openhands.runtime.utils.request import RequestHTTPError

    headers = sandbox.runtime.session.headers
    right = headers['X-Session-API-Key']
    for wrong in ('', 'no', right[:-1], right + 'x'):
        headers['X-Session-API-Key'] = wrong
        try:
            sandbox.runtime.list_files()
        except RequestHTTPError as refusal:
            expect.equal((refusal.response.status_code, refusal.detail), (403, 'Invalid API Key'))
        else:
            raise AssertionError(f'the key {wrong!r} was accepted')
        finally:
            headers['X-Session-API-Key'] = right
    expect.equal(sandbox.runtime.list_files(str(sandbox.directory)), [])


@cases.case()
def being_alive_and_the_server_info_need_no_key(sandbox: Sandbox) -> None:
    headers = sandbox.runtime.session.headers
    right = headers.pop('X-Session-API-Key')
    try:
        sandbox.runtime.check_if_alive()
        url = f'{sandbox.runtime.action_execution_server_url}/server_info'
        info = sandbox.runtime.session.get(url).json()
    finally:
        headers['X-Session-API-Key'] = right
    expect.equal(sorted(info), ['idle_time', 'resources', 'uptime'])
    expect.equal(sorted(info['resources']), ['cpu_percent', 'disk', 'io', 'memory'])


@cases.case(better='the original hands its whole environment to the shell')
def the_key_is_not_in_the_environment_of_the_shell(sandbox: Sandbox) -> None:
    variables = sandbox.output('env', hidden=True)
    expect.contains(variables, f'HOME={sandbox.home}\n', 'NO_CHANGE_TIMEOUT_SECONDS=1\n')
    expect.lacks(variables, 'SESSION_API_KEY', sandbox.server.api_key)


@cases.case(server=Server(api_key=None, silence=None))
def without_a_key_the_same_client_works(sandbox: Sandbox) -> None:
    expect.equal(sandbox.runtime.session_api_key, None)
    expect.finished(sandbox.run('echo hi'), 'hi')
    expect.equal(sandbox.runtime.list_files(str(sandbox.directory)), [])


@cases.case(
    server=Server(plugins=('agent_skills', 'jupyter')),
    better='the original starts a notebook here, which this environment does not have',
)
def a_session_with_the_plugins_of_the_stock_agent_starts(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('echo hi'), 'hi')
    sandbox.runtime.add_env_vars({'from_a_session': 'yes'})
    expect.finished(sandbox.run('echo $FROM_A_SESSION'), 'yes')
