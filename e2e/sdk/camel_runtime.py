"""Drives `zareba.camel` with the real, unmodified `camel-ai` 0.2.90.

Started by `run --camel` inside the environment of `e2e/foreign/setup-camel`, with our package on
the path and `ZAREBA_BIN` naming the program. The tools run by the same interpreter, in sandboxes
of a private server.

Prints one line per case and a closing line; exits 0 when nothing failed.
"""

import asyncio
import contextlib
import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / 'docs' / 'camel-sdk.md'
CASES = []


def case(check):
    CASES.append(check)
    return check


def built(*adds, **options):
    """A drop-in runtime with tools, each a list and its entrypoint."""
    from zareba.camel import RemoteHttpRuntime

    runtime = RemoteHttpRuntime('localhost', **options)
    for tools, entrypoint, more in adds:
        runtime.add(tools, entrypoint, **more)
    return runtime.build()


def equal(actual, expected) -> None:
    assert actual == expected, f'got {actual!r}, expected {expected!r}'


@case
def the_quick_start_runs_with_one_import_changed() -> None:
    text = PAGE.read_text()
    [code] = re.findall(r'^```python camel\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, '-B', '-c', code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    equal(done.stdout.splitlines(), re.findall(r'^ *#> (.*)$', code, re.MULTILINE))


@case
def the_classes_are_camels() -> None:
    from camel.runtimes import BaseRuntime

    import zareba.camel as ours

    for name in ours.__all__:
        if name.endswith('Runtime'):
            assert issubclass(getattr(ours, name), BaseRuntime), name


@case
def math_toolkit_by_position_by_name_and_as_a_tool() -> None:
    from camel.toolkits import MathToolkit

    tools = MathToolkit().get_tools()
    with built((tools, 'camel.toolkits.MathToolkit', {})) as runtime:
        equal(runtime.get_tools(), tools)
        add, subtract, multiply, divide, _ = tools
        equal([add.func(1, 2), subtract.func(a=5, b=3), multiply(2, 3)], [3, 2, 6])
        equal(divide.get_openai_tool_schema()['function']['name'], 'math_divide')
        # Read off the tools themselves, it is the same.
        equal(built((MathToolkit().get_tools(), None, {})).get_tools()[0].func(1, 2), 3)


@case
def a_toolkit_remembers_and_takes_nested_arguments() -> None:
    from camel_tools import CountingToolkit

    arguments = {'start': 5, 'options': {'step': {'size': 2}}}
    tools = CountingToolkit().get_tools()
    with built((tools, 'camel_tools.CountingToolkit', {'arguments': arguments})) as runtime:
        equal([tools[0].func() for _ in range(3)], [7, 9, 11])
        runtime.reset_tools()
        equal(tools[0].func(), 7)
        runtime.reset()
        equal(tools[0].func(), 7)


@case
def failures_are_raised_or_returned() -> None:
    from camel_tools import fail

    from zareba import ToolError

    with built((fail, 'camel_tools.fail', {})):
        try:
            fail.func('why')
            raise AssertionError('it did not fail')
        except ToolError as error:
            equal((error.kind, error.stdout), ('KeyError', 'before\n'))
            assert 'camel_tools.py' in error.traceback
        try:
            fail('why')
            raise AssertionError('it did not fail')
        except ValueError as error:
            assert 'KeyError' in str(error), error
    with built((fail, 'camel_tools.fail', {}), errors='return'):
        assert list(fail.func('why')) == ['error']


@case
def what_parallel_calls_print_is_theirs() -> None:
    from camel_tools import talk

    with built((talk, 'camel_tools.talk', {'redirect_stdout': True})) as runtime:
        results = {}

        def call(name: str) -> None:
            results[name] = runtime.sandbox.tools.call('talk', {'name': name, 'lines': 20}).stdout

        threads = [threading.Thread(target=call, args=(name,)) for name in 'abcdefgh']
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        expected = {n: ''.join(f'{n} {line}\n' for line in range(20)) for n in 'abcdefgh'}
        equal(results, expected)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            talk.func('x', 2)
        equal(printed.getvalue(), 'x 0\nx 1\n')


@case
def slow_calls_run_beside_each_other_and_end_when_their_time_is_up() -> None:
    from camel_tools import sleepy

    from zareba import ToolTimedOutError

    with built((sleepy, 'camel_tools.sleepy', {}), timeout=5) as runtime:
        begun = time.monotonic()
        threads = [threading.Thread(target=sleepy.func, args=(1.0,)) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert time.monotonic() - begun < 4, 'they waited for each other'
        runtime.timeout = 0.5
        try:
            sleepy.func(60.0)
            raise AssertionError('it was waited for')
        except ToolTimedOutError:
            pass


@case
def async_tools_are_awaited_and_models_handed_over() -> None:
    from camel_tools import Point, later, mirrored

    with built(([later], 'camel_tools.later', {}), ([mirrored], 'camel_tools.mirrored', {})):
        equal(later.is_async, True)
        equal(asyncio.run(later.async_call(1)), 2)
        equal(mirrored.func(Point(x=1, y=2)), {'x': -1, 'y': -2})
        equal(mirrored.func(point=Point(x=1, y=2)), {'x': -1, 'y': -2})


@case
def an_agent_uses_the_tools_unchanged() -> None:
    from camel.agents import ChatAgent
    from camel.toolkits import MathToolkit
    from scripted_model import ScriptedModel

    call = [('math_add', json.dumps({'a': 19, 'b': 23}))]
    model = ScriptedModel(call, 'it is 42')
    try:
        with built((MathToolkit().get_tools(), 'camel.toolkits.MathToolkit', {})) as runtime:
            agent = ChatAgent('You add.', model=model.camel(), tools=runtime.get_tools())
            response = agent.step('What is 19 + 23?')
            equal(response.msgs[0].content, 'it is 42')
            [record] = response.info['tool_calls']
            equal((record.tool_name, record.result), ('math_add', 42))
            # The call is in the sandbox's log.
            called = [
                event.payload['args']['name']
                for event in runtime.sandbox.events(follow=False)
                if event.payload.get('action') == 'call_tool'
            ]
            equal(called, ['math_add'])
    finally:
        model.close()


@case
def a_model_guards_and_everything_unexpected_is_a_no() -> None:
    from camel.toolkits import FunctionTool, MathToolkit
    from scripted_model import ScriptedModel

    from zareba.camel import GuardDeniedError, LLMGuardRuntime

    def risk(**arguments) -> tuple[str, str]:
        return ('function_risk', json.dumps(arguments))

    model = ScriptedModel('nothing yet')
    try:
        guard = LLMGuardRuntime(model=model.camel())
        add: FunctionTool = MathToolkit().get_tools()[0]
        guard.add(add)
        model.answers = [[risk(score=1, reason='sums')]]
        equal(add.func(1, 2), 3)
        question = json.loads(model.asked[-1]['messages'][-1]['content'])
        equal((question['function'], question['args']), ('math_add', [1, 2]))
        for answer in (
            [risk(score=3, reason='no')],
            'It is fine, go on.',
            [risk(score=1, reason='yes'), risk(score=3, reason='no')],
            [risk(score='1', reason='yes')],
            [risk(score=0, reason='yes')],
            [risk(reason='yes')],
            [risk(score=1)],
            [('other', json.dumps({'score': 1, 'reason': 'yes'}))],
            [('function_risk', 'no json')],
        ):
            model.answers = [answer]
            try:
                add.func(1, 2)
                raise AssertionError(f'{answer} let it through')
            except GuardDeniedError:
                pass
        equal([tool.get_function_name() for tool in guard.get_tools()], ['math_add'])
    finally:
        model.close()


@case
def tasks_may_be_camels_own() -> None:
    from camel.runtimes import TaskConfig

    with built() as runtime:
        equal(runtime.exec_run(TaskConfig(cmd='echo there')), (0, b'there\n'))
        equal(runtime.exec_run(TaskConfig(cmd='echo there', demux=True)), (0, (b'there\n', None)))


def main() -> int:
    failed = 0
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix='zareba-sdk-') as scratch:
        os.environ.update(HOME=scratch, ZAREBA_STATE_DIRECTORY=str(Path(scratch, 'no-state')))
        # Where the tools are found, both here and by the interpreter in the sandbox.
        shutil.copy(HERE / 'camel_tools.py', scratch)
        os.chdir(scratch)
        sys.path.insert(0, scratch)
        for check in CASES:
            begun = time.monotonic()
            try:
                check()
                print(f'ok {check.__name__} ({time.monotonic() - begun:.2f} s)', flush=True)
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
