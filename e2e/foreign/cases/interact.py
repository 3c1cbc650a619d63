"""Talking to a running program: answers, control keys, jobs."""

import re

from . import expect
from .registry import Cases
from .sandbox import Sandbox, wait_until

cases = Cases()
CASES = cases.listed

QUESTIONS = """\
name = input("Enter your name: ")
age = input("Enter your age: ")
print(f"Hello {name}, you are {age} years old")
"""


# Takes any free port and tells which, so that runs side by side do not meet.
SERVE = """\
import http.server
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
open("port", "w").write(str(server.server_port))
server.serve_forever()
"""

FETCH = """\
import urllib.request
address = "http://127.0.0.1:" + open("port").read() + "/page.txt"
print(urllib.request.urlopen(address).read().decode().strip())
"""


@cases.case()
def a_program_with_two_questions_gets_two_answers(sandbox: Sandbox) -> None:
    (sandbox.directory / 'ask.py').write_text(QUESTIONS)
    expect.running(sandbox.run('python3 ask.py'), 'Enter your name:', expect.silent(1))
    expect.running(sandbox.run('Alice', is_input=True), 'Enter your age:', expect.silent(1), expect.CONTINUED)
    expect.finished(sandbox.run('25', is_input=True), 'Hello Alice, you are 25 years old')


@cases.case()
def an_answer_that_is_not_marked_as_input_is_refused(sandbox: Sandbox) -> None:
    (sandbox.directory / 'ask.py').write_text(QUESTIONS)
    expect.running(sandbox.run('python3 ask.py'), 'Enter your name:', expect.silent(1))
    expect.running(sandbox.run('Alice'), '', expect.refused('Alice'), expect.CONTINUED)
    sandbox.run('Alice', is_input=True)
    expect.finished(sandbox.run('25', is_input=True), 'Hello Alice, you are 25 years old')


@cases.case()
def the_interpreter_keeps_its_variables_between_inputs(sandbox: Sandbox) -> None:
    started = sandbox.run('python3 -q')
    expect.equal((started.content, started.exit_code), ('>>>', -1))
    sandbox.run('x = 6 * 7', is_input=True)
    expect.contains(sandbox.run('print(f"x is {x}")', is_input=True).content, 'x is 42')
    expect.equal(sandbox.run('raise SystemExit(3)', is_input=True).exit_code, 3)


@cases.case()
def control_c_interrupts_and_control_d_ends_the_input(sandbox: Sandbox) -> None:
    expect.running(sandbox.run('sleep 60'), '', expect.silent(1))
    expect.finished(sandbox.keys('C-c'), '^C', 130, 'C')
    expect.running(sandbox.run('cat > copy.txt'), '', expect.silent(1))
    expect.running(sandbox.run('a line', is_input=True), '', expect.silent(1), expect.CONTINUED)
    expect.finished(sandbox.keys('C-d'), '', 0, 'D')
    expect.equal((sandbox.directory / 'copy.txt').read_text(), 'a line\n')


@cases.case()
def control_z_stops_a_job_that_can_be_ended_later(sandbox: Sandbox) -> None:
    expect.running(sandbox.run('sleep 61'), '', expect.silent(1))
    expect.finished(sandbox.keys('C-z'), '^Z\n[1]+  Stopped                 sleep 61', 148, 'Z')
    expect.finished(sandbox.run('jobs'), '[1]+  Stopped                 sleep 61')
    expect.equal(sandbox.run('kill %1').exit_code, 0)
    # Bash can overlook an end while it tells of a stop, and finds it with that of the next program.
    wait_until(lambda: sandbox.run('/bin/true; jobs').content == '', 'the job was not ended')


@cases.case()
def control_c_at_the_prompt_changes_nothing(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('C-c'), '^C', 130, 'C')
    expect.finished(sandbox.run('echo after'), 'after')


@cases.case()
def a_program_in_the_background_does_not_hold_up_the_shell(sandbox: Sandbox) -> None:
    (sandbox.directory / 'page.txt').write_text('served\n')
    (sandbox.directory / 'serve.py').write_text(SERVE)
    (sandbox.directory / 'fetch.py').write_text(FETCH)
    started = sandbox.run('python3 serve.py > server.log 2>&1 &')
    told = re.fullmatch(r'\[1\] (\d+)', started.content)
    assert told, f'no job line: {started.content!r}'
    expect.equal((started.exit_code, started.metadata.pid), (0, int(told.group(1))))
    sandbox.output('until [ -s port ]; do sleep 0.05; done', timeout=20)
    expect.finished(sandbox.run('python3 fetch.py', timeout=20), 'served')
    expect.equal(sandbox.run('kill $!').exit_code, 0)
    # The shell tells of the end of the job with this command or the one before.
    sandbox.run('wait', timeout=10)


@cases.case()
def a_running_background_job_may_go_on_writing(sandbox: Sandbox) -> None:
    started = sandbox.run('(for i in 1 2 3; do sleep 0.2; echo "tick $i"; done) &')
    expect.equal(started.exit_code, 0)
    waited = sandbox.run('wait', timeout=10)
    expect.contains(waited.content, 'tick 3')
    expect.equal(waited.exit_code, 0)


@cases.case()
def an_unfinished_command_does_not_spoil_the_next(sandbox: Sandbox) -> None:
    for unfinished in ('echo "never closed', "echo 'never closed", 'if true; then echo x', 'echo $(date', 'for i in 1 2; do'):
        observation = sandbox.run(unfinished)
        if observation.exit_code == -1:
            # The original types the text and waits for the rest of it; refusing it at once is as good.
            expect.equal(observation.metadata.suffix, expect.silent(1))
            observation = sandbox.keys('C-c')
        # bash answers a syntax error with 2, and with 1 inside a command substitution.
        expect.equal(observation.exit_code in (1, 2, 130), True)
        expect.finished(sandbox.run('echo closed'), 'closed')
