"""Requests that both servers must answer in the same way, to the byte."""

import json
import socket
from dataclasses import dataclass


@dataclass(frozen=True)
class Ask:
    """One request."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str | None = 'application/json'

    def __str__(self) -> str:
        body = '' if self.body is None else f' {self.body[:120]!r}'
        kind = '' if self.content_type == 'application/json' else f' as {self.content_type}'
        return f'{self.method} {self.path}{body}{kind}'


@dataclass(frozen=True)
class Answer:
    """What of an answer has to be the same."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def post(body: bytes | str, path: str = '/echo', content_type: str | None = 'application/json') -> Ask:
    return Ask('POST', path, body.encode() if isinstance(body, str) else body, content_type)


def call(path: str, *args, **more) -> Ask:
    return post(json.dumps({'args': args, 'kwargs': {}} | more), path)


ROUTES = [
    Ask('GET', '/'),
    Ask('HEAD', '/'),
    Ask('POST', '/', b'{}'),
    Ask('GET', '/nope'),
    Ask('GET', '/nope/'),
    Ask('POST', '/nope', b'{}'),
    Ask('GET', '//health'),
    Ask('GET', '/health'),
    Ask('GET', '/health?x=1'),
    Ask('GET', '/hea%6cth'),
    Ask('GET', '/health/'),
    Ask('GET', '/health/?x=1'),
    Ask('HEAD', '/health'),
    Ask('POST', '/health', b'{}'),
    Ask('DELETE', '/health'),
    Ask('POST', '/health/', b'{}'),
    Ask('GET', '/echo'),
    Ask('HEAD', '/echo'),
    Ask('PUT', '/echo', b'{}'),
    Ask('OPTIONS', '/echo'),
    Ask('POST', '/echo/', b'{}'),
    Ask('GET', '/docs/'),
]

NOT_JSON = [
    post(body)
    for body in (
        '', '  ', '{', 'nope', 'tru', '-', '-x', '01', '1.', '[1,', '[1,]', '[1 2]', '{"a"', '{"a":', '{"a":1', '{"a":1,}',
        '{"a" 1}', '{"a":1 "b"}', '{,}', '{a:1}', '{1:2}', '{} x', '"abc', '"\\', '"\x01"', '"\\q"', '"\\u12"', '"\\u1234',
        '{"x":"\\u12g4"}', '{"x":"\\ud83d\\u12"}', '\n\n {"a":1} \n[', '"é" x', 'NaN x', '\ufeff{}', '[' * 2000,
        b'\xff\xff', b'nul\x00l',
    )
]  # fmt: skip

NO_OBJECT = [post(body) for body in ('[]', '1', 'null', '"x"', '1.5', '1e5', 'true', '[1,{"a":"é"}]')] + [
    post('{"args":[1],"kwargs":{}}', content_type=kind)
    for kind in (
        'text/plain', 'application/x-www-form-urlencoded', None, '', 'text/json', 'json', 'application/jsonx',
        'multipart/form-data', 'multipart/form-data; boundary=x', 'application/foo+json', 'APPLICATION/JSON',
        'application/json; charset=utf-8', 'application/json;',
    )
]  # fmt: skip

ARGUMENTS = [
    post(body)
    for body in (
        '{}', '{"args":[]}', '{"kwargs":{}}', '{"args":[],"kwargs":{}}', '{"args":[1],"kwargs":{"value":2}}',
        '{"args":[1,2],"kwargs":{}}', '{"args":[],"kwargs":{"x":1}}', '{"args":"a","kwargs":{}}', '{"args":"ab","kwargs":{}}',
        '{"args":{"k":1},"kwargs":{}}', '{"args":["é\\n\\u007f\\u0001\\"/ 😀"],"kwargs":{},"x":1}',
        '{"args":[{"b":[1,2.0,null,true],"a":{}}],"kwargs":{}}', '{"args":[],"kwargs":{"value":[1.10,-1,-0.0,1e5]}}',
        '{"args":[18446744073709551615],"kwargs":{}}', '{"args":[-9223372036854775808],"kwargs":{}}',
    )
]  # fmt: skip

STDOUT = [
    post(f'{{"args":[2],"kwargs":{{}},"redirect_stdout":{flag}}}', '/prints')
    for flag in ('true', 'false', '1', '0', '0.0', 'null', '""', '"no"', '[]', '[0]', '{}', '{"a":1}')
]

TOOLS = [
    call('/math_add', 1, 2),
    call('/math_add', 'a', 'b'),
    call('/math_add', kwargs={'a': 1, 'b': 2}),
    call('/math_divide', 1, 0),
    call('/count'),
    call('/count'),
    call('/fails', 'boom é'),
    call('/fails', ''),
    call('/not_finite'),
    call('/no_json'),
    call('/exits'),
    call('/echo', 'after the exit'),
]

ALL = ROUTES + NOT_JSON + NO_OBJECT + ARGUMENTS + STDOUT + TOOLS

# Python puts the place of a function before its name, which the wire does not carry.
QUALIFIED = [
    post(body)
    for body in (
        '{"args":null,"kwargs":{}}', '{"args":3,"kwargs":{}}', '{"args":true,"kwargs":{}}', '{"args":1.5,"kwargs":{}}',
        '{"args":[1],"kwargs":[]}', '{"args":[1],"kwargs":null}', '{"args":[1],"kwargs":"x"}', '{"args":1,"kwargs":1}',
    )
]  # fmt: skip


def send(port: int, ask: Ask) -> Answer:
    """Sends a request as it is written, and reads the answer to its end."""
    lines = [f'{ask.method} {ask.path} HTTP/1.1', f'Host: 127.0.0.1:{port}', 'Connection: close']
    if ask.body is not None:
        lines.append(f'Content-Length: {len(ask.body)}')
        lines += [] if ask.content_type is None else [f'Content-Type: {ask.content_type}']
    with socket.create_connection(('127.0.0.1', port), timeout=60) as connection:
        connection.sendall('\r\n'.join([*lines, '', '']).encode() + (ask.body or b''))
        received = b''.join(iter(lambda: connection.recv(65536), b''))
    head, _, body = received.partition(b'\r\n\r\n')
    first, *rest = head.decode().split('\r\n')
    headers = {name.lower(): value for name, _, value in (line.partition(': ') for line in rest)}
    if headers.get('transfer-encoding', '').lower() == 'chunked':
        body = unchunked(body)
    kept = {name: headers[name] for name in ('content-type', 'allow', 'location') if name in headers}
    # Theirs names itself, ours leaves that to the client; they mean the same.
    if 'location' in kept:
        kept['location'] = kept['location'].removeprefix(f'http://127.0.0.1:{port}')
    return Answer(int(first.split()[1]), tuple(sorted(kept.items())), body)


def unchunked(body: bytes) -> bytes:
    whole = b''
    while body:
        size, _, body = body.partition(b'\r\n')
        whole += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    return whole
