"""Tools through their unmodified `RemoteHttpRuntime(host, port)`, which is not asked to build anything."""

import contextlib
import io
import json
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import requests
from camel.runtimes import RemoteHttpRuntime
from camel.toolkits import FunctionTool, MathToolkit

from . import sample_tools, wire
from .servers import ENTRYPOINTS, Original, Ours

CASES = []

TOKEN = '0123456789abcdef' * 2


def case(check):
    CASES.append(check)
    return check


def equal(actual, expected) -> None:
    assert actual == expected, f'got {actual!r}, expected {expected!r}'


def client(stage, tools, entrypoint: str, **options) -> RemoteHttpRuntime:
    runtime = RemoteHttpRuntime('127.0.0.1', stage.ours.port)
    return runtime.add(tools, entrypoint, **options)


def sample(stage, *names: str, **options) -> list[FunctionTool]:
    """The client's side of some sample tools; what it has of their code is replaced by a call."""
    tools = [FunctionTool(getattr(sample_tools, name)) for name in names]
    client(stage, tools, 'sample_tools.TOOLS', **options)
    return tools


def post(stage, name: str, *args, timeout: float = 60, **options) -> requests.Response:
    body = {'args': args, 'kwargs': {}} | options
    return requests.post(f'http://127.0.0.1:{stage.ours.port}/{name}', json=body, timeout=timeout)


@case
def the_quick_start_works_without_build(stage) -> None:
    tools = MathToolkit().get_tools()
    runtime = client(stage, tools, 'camel.toolkits.MathToolkit')
    assert runtime.ok and runtime.wait()
    equal(runtime.docs, f'http://127.0.0.1:{stage.ours.port}/docs')
    add, subtract, multiply, divide, round_ = runtime.get_tools()
    equal(add.func(1, 2), 3)
    equal(subtract.func(a=5, b=3), 2)
    equal(multiply.func(2, 3, 2), 6)
    equal(divide.func(7, b=2), 3.5)
    equal(round_.func(2.345, 1), 2.3)
    equal(add(1, 2), 3)


@case
def arguments_pass_as_they_are(stage) -> None:
    (add, *_) = tools = MathToolkit().get_tools()
    client(stage, tools, 'camel.toolkits.MathToolkit')
    equal(add.func('a', 'b'), 'ab')
    (echo,) = sample(stage, 'echo')
    for value in (None, True, -1.5, 'Grüße 🎉\n', [1, [2, {'a': []}]], {'k': {'é': 1}}, 2**64 - 1, 'x' * 5_000_000):
        equal(echo.func(value), value)
    equal(echo.func((1, 2)), [1, 2])
    equal(echo.func(value={1: 'int keys become text'}), {'1': 'int keys become text'})


@case
def a_toolkit_keeps_its_state_and_its_settings(stage) -> None:
    tools = sample_tools.Counter(start=0).get_tools()
    runtime = client(stage, tools, 'sample_tools.Counter', arguments={'start': 5})
    (count,) = runtime.get_tools()
    first = count.func()
    assert first > 5, f'its settings did not arrive: {first}'
    equal(count.func(), first + 1)


@case
def settings_of_a_toolkit_may_be_nested(stage) -> None:
    limits = {'files': {'open': 12}}
    (limit,) = client(stage, sample_tools.Settings({}).get_tools(), 'sample_tools.Settings', arguments={'limits': limits}).get_tools()
    equal(limit.func('files', 'open'), 12)


@case
def a_failure_is_told_as_their_client_tells_it(stage) -> None:
    (fails,) = sample(stage, 'fails')
    told = fails.func('boom é')
    equal(list(told), ['error'])
    body = '{"detail":"Internal Server Error","error_message":"boom é"}'
    equal(told['error'].split('response: ', 1)[1], body)
    equal(' '.join(told['error'].split()), f'Failed to execute function: fails, response: {body}')
    (no_json,) = sample(stage, 'no_json')
    assert 'Object of type set is not JSON serializable' in no_json.func()['error']
    unknown = FunctionTool(equal_to_nothing)
    client(stage, [unknown], 'nowhere')
    assert '{"detail":"Not Found"}' in unknown.func('x')['error']


@case
def what_a_tool_prints_is_printed_here(stage) -> None:
    (prints,) = sample(stage, 'prints', redirect_stdout=True)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        equal(prints.func(3, word='é'), 3)
    equal(said.getvalue(), 'é 0\né 1\né 2\n\n')
    said = io.StringIO()
    (prints,) = sample(stage, 'prints')
    with contextlib.redirect_stdout(said):
        equal(prints.func(3), 3)
    equal(said.getvalue(), '')


@case
def tools_that_print_at_once_get_their_own_lines(stage) -> None:
    def lines(word: str) -> str:
        return post(stage, 'prints', 20, kwargs={'word': word}, redirect_stdout=True).json()['stdout']

    words = [f'caller-{number}' for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lines, words))
    for word, text in zip(words, said, strict=True):
        equal(text, ''.join(f'{word} {number}\n' for number in range(20)))


@case
def an_asynchronous_tool_is_awaited(stage) -> None:
    equal(post(stage, 'later', 41).json(), {'output': '42'})


@case
def numbers_that_json_has_not_come_back(stage) -> None:
    (not_finite,) = sample(stage, 'not_finite')
    nan, plus, minus = not_finite.func()
    assert nan != nan and plus == float('inf') and minus == float('-inf'), (nan, plus, minus)


@case
def eight_calls_run_at_once(stage) -> None:
    # Each waits for the seven others, so that a smaller pool would never answer.
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: post(stage, 'meets', 30).json(), range(8)))
    equal(sorted(int(answer['output']) for answer in answers), list(range(8)))


@case
def slow_tools_do_not_hold_up_others(stage) -> None:
    with ThreadPoolExecutor(6) as pool:
        slow = [pool.submit(post, stage, 'sleeps', 3) for _ in range(6)]
        time.sleep(0.3)
        started = time.monotonic()
        equal(post(stage, 'math_add', 1, 2).json(), {'output': '3'})
        took = time.monotonic() - started
        assert not any(call.done() for call in slow), 'they ended before the quick one was asked'
        equal([call.result().json() for call in slow], [{'output': '3'}] * 6)
    assert took < 2, f'a quick call took {took:.2f} s beside slow ones'


@case
def many_threads_of_their_client_get_what_is_theirs(stage) -> None:
    (add, *_) = tools = MathToolkit().get_tools()
    client(stage, tools, 'camel.toolkits.MathToolkit')
    with ThreadPoolExecutor(8) as pool:
        equal(list(pool.map(add.func, range(200), [1] * 200)), list(range(1, 201)))


@case
def whoever_gives_up_ends_the_call(stage) -> None:
    try:
        post(stage, 'ticks_for', 60, timeout=0.5)
    except requests.exceptions.Timeout:
        pass
    else:
        raise AssertionError('a call of a minute was answered at once')
    deadline = time.monotonic() + 20
    before, now = -1, post(stage, 'ticks').json()['output']
    while now != before:
        assert time.monotonic() < deadline, 'the call goes on without its caller'
        time.sleep(0.5)
        before, now = now, post(stage, 'ticks').json()['output']


@case
def a_tool_that_exits_costs_its_own_call(stage) -> None:
    (exits,) = sample(stage, 'exits')
    equal(exits.func()['error'].split('response: ', 1)[1], 'Internal Server Error')
    equal(post(stage, 'math_add', 1, 2).json(), {'output': '3'})


@case
def a_tool_that_kills_its_process_does_not_end_the_server(stage) -> None:
    answer = post(stage, 'dies')
    equal((answer.status_code, answer.json()['detail']), (500, 'Internal Server Error'))
    assert 'dies' in answer.json()['error_message'], answer.text
    equal(post(stage, 'math_add', 1, 2).json(), {'output': '3'})
    equal(post(stage, 'count').json(), {'output': '6'})


@case
def tools_run_in_a_sandbox(stage) -> None:
    found = json.loads(post(stage, 'surroundings').json()['output'])
    equal(found['runtime'], 'true')
    assert found['prefix'].endswith('/venv'), found
    left = 'left-by-a-tool'
    equal(post(stage, 'leaves', left).json(), {'output': 'true'})
    is_outside = (stage.workspace / left).exists()
    equal(is_outside, stage.runtime in ('cli', 'local'))
    if is_outside:
        (stage.workspace / left).unlink()


@case
def each_tool_has_its_schema_published(stage) -> None:
    url = f'http://127.0.0.1:{stage.ours.port}'
    document = requests.get(f'{url}/openapi.json', timeout=30).json()
    equal(document['openapi'], '3.1.0')
    equal(sorted(document['paths']), sorted({'/health', *(f'/{name}' for name in health(stage)['endpoints'])}))
    schema = document['components']['schemas']['math_round']
    equal(schema['properties']['decimal_places']['type'], ['integer', 'null'])
    equal(schema['required'], ['a'])
    for path in ('/docs', '/redoc'):
        page = requests.get(url + path, timeout=30)
        equal((page.status_code, page.headers['content-type']), (200, 'text/html; charset=utf-8'))
        assert 'math_round' in page.text and 'http://' not in page.text and 'https://' not in page.text
        equal(requests.head(url + path, timeout=30).status_code, 200)


def equal_to_nothing(text: str) -> str:
    """Is served by nobody."""
    return text


def health(stage) -> dict:
    return requests.get(f'http://127.0.0.1:{stage.ours.port}/health', timeout=30).json()


@case
def entrypoints_that_give_nothing_are_told(stage) -> None:
    with stage.another('--open', 'camel.toolkits.MathToolkit', 'no.such.Thing', 'os.nope') as server:
        told = requests.get(f'http://127.0.0.1:{server.port}/health', timeout=30).json()
        equal(told['toolkits'], ['camel.toolkits.MathToolkit'])
        equal([failure['entrypoint'] for failure in told['failures']], ['no.such.Thing', 'os.nope'])
        words = ''.join(server.words)
        assert 'no.such.Thing' in words and "No module named 'no'" in words and 'os.nope' in words, words
        add = requests.post(f'http://127.0.0.1:{server.port}/math_add', json={'args': [1, 1], 'kwargs': {}}, timeout=30)
        equal(add.json(), {'output': '2'})


@case
def an_entrypoint_without_sense_is_refused(stage) -> None:
    for entrypoint in ('nodots', 'sample_tools.Counter{"start": '):
        code, words = stage.refused(entrypoint)
        assert code != 0 and 'is no entrypoint' in words, (code, words)
    with stage.another('--open', 'sample_tools.Counter{"strat": 1}', 'sample_tools.TOOLS') as server:
        told = requests.get(f'http://127.0.0.1:{server.port}/health', timeout=30).json()
        equal([(failure['entrypoint'], failure['type']) for failure in told['failures']], [('sample_tools.Counter{"strat": 1}', 'TypeError')])


@case
def strict_mode_holds_arguments_to_their_schema(stage) -> None:
    with stage.another('--open', '--strict', 'camel.toolkits.MathToolkit') as server:
        url = f'http://127.0.0.1:{server.port}/math_add'
        fits = requests.post(url, json={'args': [1, 2], 'kwargs': {}}, timeout=30)
        equal(fits.json(), {'output': '3'})
        unfit = requests.post(url, json={'args': ['a', 'b'], 'kwargs': {}}, timeout=30)
        equal(unfit.status_code, 422)
        assert isinstance(unfit.json()['detail'], list) and unfit.json()['detail'][0]['msg'], unfit.text


@case
def pages_from_elsewhere_and_other_names_are_refused(stage) -> None:
    url = f'http://127.0.0.1:{stage.ours.port}/math_add'
    body = {'args': [1, 2], 'kwargs': {}}
    for headers, status in (
        ({'Host': 'evil.example'}, 421),
        ({'Host': f'localhost:{stage.ours.port}'}, 200),
        ({'Origin': 'https://evil.example'}, 403),
        ({'Origin': 'null'}, 403),
        ({'Origin': 'http://localhost:3000'}, 403),
        ({'Origin': f'http://127.0.0.1:{stage.ours.port}'}, 200),
    ):
        equal((headers, requests.post(url, json=body, headers=headers, timeout=30).status_code), (headers, status))


@case
def a_token_is_asked_for_and_their_client_can_show_it(stage) -> None:
    with stage.another('camel.toolkits.MathToolkit') as server:
        tools = MathToolkit().get_tools()
        stranger = RemoteHttpRuntime('127.0.0.1', server.port).add(tools, 'camel.toolkits.MathToolkit')
        refused = stranger.get_tools()[0].func(1, 2)
        assert 'Not authenticated' in refused['error'], refused
        tools = MathToolkit().get_tools()
        runtime = RemoteHttpRuntime(server.host, server.port).add(tools, 'camel.toolkits.MathToolkit')
        assert runtime.wait()
        equal(runtime.get_tools()[0].func(1, 2), 3)
        token = server.token
        files = [path for path in server.state.iterdir() if path.name.endswith('.token')]
        equal([(path.name, oct(path.stat().st_mode & 0o777)) for path in files], [(f'tools-{server.port}.token', '0o600')])
        url, body = f'http://127.0.0.1:{server.port}/math_add', {'args': [1, 2], 'kwargs': {}}
        page = {'Origin': 'https://evil.example'}
        equal(requests.post(url, json=body, auth=('any', token), headers=page, timeout=30).status_code, 403)
        equal(requests.post(url, json=body, auth=('any', token[:-1]), timeout=30).status_code, 401)
        assert token not in ''.join(server.words)
    equal([path.name for path in server.state.iterdir() if path.name.endswith('.token')], [])


@case
def a_token_can_be_given_in_a_file(stage) -> None:
    short = stage.scratch / 'short'
    short.write_text('guess me')
    code, words = stage.refused('--token-file', str(short), 'camel.toolkits.MathToolkit')
    assert code != 0 and 'guess me' not in words and '32' in words, words
    file = stage.scratch / 'token'
    file.write_text(TOKEN + '\n')
    with stage.another('--token-file', str(file), 'camel.toolkits.MathToolkit') as server:
        url = f'http://127.0.0.1:{server.port}/math_add'
        body = {'args': [1, 2], 'kwargs': {}}
        equal(requests.post(url, json=body, timeout=30).status_code, 401)
        for token, status in (('Bearer wrong', 401), (TOKEN, 401), (f'Bearer {TOKEN}', 200)):
            answer = requests.post(url, json=body, headers={'Authorization': token}, timeout=30)
            equal((token, answer.status_code), (token, status))
        assert TOKEN not in ''.join(server.words)
    assert file.exists()


@case
def beyond_this_machine_it_is_said_who_does_tls(stage) -> None:
    for words in ((), ('--open',)):
        code, said = stage.refused('--host', '0.0.0.0', *words, 'camel.toolkits.MathToolkit')
        assert code != 0 and '--tls-cert' in said and '--behind-tls-proxy' in said, said
    beyond = ('--host', '0.0.0.0', '--behind-tls-proxy')
    body = {'args': [1, 2], 'kwargs': {}}
    with stage.another(*beyond, 'camel.toolkits.MathToolkit') as server:
        url = f'http://127.0.0.1:{server.port}/math_add'
        equal(requests.post(url, json=body, timeout=30).status_code, 401)
        answer = requests.post(url, json=body, auth=('any', server.token), headers={'Host': 'any.name'}, timeout=30)
        equal(answer.json(), {'output': '3'})
    with stage.another(*beyond, '--open', 'camel.toolkits.MathToolkit') as server:
        answer = requests.post(f'http://127.0.0.1:{server.port}/math_add', json=body, headers={'Host': 'any.name'}, timeout=30)
        equal(answer.json(), {'output': '3'})


@case
def two_servers_live_beside_each_other_and_end_when_told(stage) -> None:
    with stage.another('--open', 'sample_tools.Counter{"start": 5}') as server:
        equal(requests.post(f'http://127.0.0.1:{server.port}/count', json={'args': [], 'kwargs': {}}, timeout=30).json(), {'output': '6'})
        taken = stage.refused('--port', str(server.port), 'camel.toolkits.MathToolkit')
        assert taken[0] != 0 and str(server.port) in taken[1], taken
        code = server.close(signal.SIGINT)
        equal(code, 128 + signal.SIGINT)
        try:
            socket.create_connection(('127.0.0.1', server.port), timeout=5).close()
        except ConnectionRefusedError:
            pass
        else:
            raise AssertionError('somebody still listens')


@case
def every_answer_is_theirs_to_the_byte(stage) -> None:
    """The rows of the contract, asked of both servers in the same order."""
    original = Original(stage.workspace, *ENTRYPOINTS)
    ours = Ours(stage.binary, stage.scratch, stage.workspace, '--open', *ENTRYPOINTS, runtime=stage.runtime)
    different = []
    try:
        for ask in wire.ALL:
            theirs, own = wire.send(original.port, ask), wire.send(ours.port, ask)
            if theirs != own:
                different.append(f'{ask}: theirs {theirs}, ours {own}')
        for ask in wire.QUALIFIED:
            theirs, own = wire.send(original.port, ask), wire.send(ours.port, ask)
            message = theirs.body.replace(b'sample_tools.echo()', b'echo()')
            if (theirs.status, message) != (own.status, own.body):
                different.append(f'{ask}: theirs {theirs}, ours {own}')
    finally:
        original.close()
        ours.close()
    assert not different, f'{len(different)} differ:\n' + '\n'.join(different)

