"""Commands that do not end in time: what is told, and how one goes on."""

import time

from . import expect
from .registry import Cases
from .sandbox import Sandbox, Server, wait_until

cases = Cases()
CASES = cases.listed

# Long enough that the original, which looks twice a second, sees the output before it ends.
SHORT = 1.25


def wait_for(name: str) -> str:
    """A command that waits until the case makes the file of this name."""
    return f'until [ -e {name} ]; do sleep 0.05; done'


def let_through(sandbox: Sandbox, name: str) -> None:
    (sandbox.directory / name).touch()


@cases.case()
def silence_is_reported_and_an_answer_completes_the_command(sandbox: Sandbox) -> None:
    expect.running(sandbox.run('read -p "Enter name: " name && echo "Hello $name"'), 'Enter name:', expect.silent(1))
    expect.finished(sandbox.run('John', is_input=True), 'Hello John')


@cases.case(server=Server(api_key=None, silence=None))
def silence_lasts_ten_seconds_unless_told_otherwise(sandbox: Sandbox) -> None:
    started = time.monotonic()
    expect.running(sandbox.run('echo waiting; sleep 60'), 'waiting', expect.silent(10))
    elapsed = time.monotonic() - started
    assert 9.5 <= elapsed < 14, f'answered after {elapsed:.1f} s'
    expect.finished(sandbox.keys('C-c'), '^C', 130, 'C')


@cases.case()
def a_hard_timeout_gives_the_output_so_far(sandbox: Sandbox) -> None:
    expect.running(sandbox.run('echo begun; sleep 60', timeout=SHORT), 'begun', expect.timed_out(SHORT))
    expect.finished(sandbox.keys('C-c'), '^C', 130, 'C')
    expect.running(sandbox.run('sleep 60', timeout=1), '', expect.timed_out(1.0))
    expect.finished(sandbox.keys('C-c'), '^C', 130, 'C')


@cases.case()
def a_blocking_command_may_be_silent(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('sleep 1.8; echo done', timeout=20), 'done')


@cases.case()
def a_running_server_is_stopped_and_started_again(sandbox: Sandbox) -> None:
    command = 'python -u -m http.server 0 --bind 127.0.0.1'
    for _ in range(2):
        observation = sandbox.run(command, timeout=2)
        expect.contains(observation.content, 'Serving HTTP on')
        expect.equal((observation.exit_code, observation.metadata.suffix), (-1, expect.timed_out(2.0)))
        stopped = sandbox.keys('C-c')
        expect.contains(stopped.content, 'Keyboard interrupt received, exiting.')
        expect.equal((stopped.exit_code, stopped.metadata.suffix), (0, expect.completed(0, 'C')))
        expect.equal(stopped.metadata.working_dir, str(sandbox.directory))
        expect.finished(sandbox.run('ls -A'), '')


@cases.case()
def each_look_gives_only_what_is_new(sandbox: Sandbox) -> None:
    command = f'for i in 1 2 3 4; do echo $i; {wait_for("go$i")}; done'
    expect.running(sandbox.run(command, timeout=SHORT), '1', expect.timed_out(SHORT))
    for number in (2, 3, 4):
        let_through(sandbox, f'go{number - 1}')
        observation = sandbox.run('', timeout=SHORT)
        expect.running(observation, str(number), expect.timed_out(SHORT), expect.CONTINUED)
    let_through(sandbox, 'go4')
    expect.finished(sandbox.run('', timeout=10), '')


@cases.case()
def the_last_look_gives_the_rest_and_the_exit_code(sandbox: Sandbox) -> None:
    command = f'echo early; {wait_for("go")}; echo late; (exit 5)'
    expect.running(sandbox.run(command, timeout=SHORT), 'early', expect.timed_out(SHORT))
    let_through(sandbox, 'go')
    expect.finished(sandbox.run('', timeout=10), 'late', 5)


@cases.case()
def another_command_is_refused_while_one_runs(sandbox: Sandbox) -> None:
    command = f'echo 1; {wait_for("one")}; echo 2; {wait_for("two")}; echo 3'
    expect.running(sandbox.run(command, timeout=SHORT), '1', expect.timed_out(SHORT))
    expect.running(sandbox.run('touch intruder'), '', expect.refused('touch intruder'), expect.CONTINUED)
    let_through(sandbox, 'one')
    expect.running(sandbox.run('', timeout=SHORT), '2', expect.timed_out(SHORT), expect.CONTINUED)
    let_through(sandbox, 'two')
    expect.finished(sandbox.run('', timeout=10), '3')
    expect.equal((sandbox.directory / 'intruder').exists(), False)


@cases.case()
def a_finished_command_does_not_block_the_next(sandbox: Sandbox) -> None:
    command = f'{wait_for("go")}; touch gone; (exit 9)'
    expect.running(sandbox.run(command, timeout=SHORT), '', expect.timed_out(SHORT))
    let_through(sandbox, 'go')
    wait_until((sandbox.directory / 'gone').exists, 'the command did not go on')
    time.sleep(0.3)
    observation = sandbox.run('echo next')
    expect.equal((observation.exit_code, observation.content.splitlines()[-1]), (0, 'next'))


@cases.case()
def there_is_nothing_to_wait_for_without_a_command(sandbox: Sandbox) -> None:
    for options, text in (
        ({'command': ''}, 'ERROR: No previous running command to retrieve logs from.'),
        ({'command': '   '}, 'ERROR: No previous running command to retrieve logs from.'),
        ({'command': 'hello', 'is_input': True}, 'ERROR: No previous running command to interact with.'),
    ):
        observation = sandbox.run(**options)
        metadata = observation.metadata
        expect.equal(
            (observation.content, observation.command, metadata.exit_code, metadata.prefix, metadata.suffix),
            (text, '', -1, '', ''),
        )


@cases.case()
def long_lines_soft_and_hard_timeouts_follow_one_another(sandbox: Sandbox) -> None:
    noise = "for i in $(seq 1 400); do printf '%0500d\\n' $i; done"
    for _ in range(2):
        expect.running(sandbox.run('read -p "Go on? " answer && echo "got $answer"'), 'Go on?', expect.silent(1))
        expect.finished(sandbox.run('Y', is_input=True), 'got Y')
        observation = sandbox.run(f'{noise}; sleep 60', timeout=2)
        everything = '\n'.join(f'{n:0500}' for n in range(1, 401))
        expect.running(observation, expect.shortened(everything), expect.timed_out(2.0))
        expect.running(sandbox.run('ls'), '', expect.refused('ls'), expect.CONTINUED)
        expect.finished(sandbox.keys('C-c'), '^C', 130, 'C')
        expect.finished(sandbox.run('ls -A'), '')
