"""Requests and answers as bytes, without any connection."""

from __future__ import annotations

from typing import List, Optional

import pytest
from httpcore import RemoteProtocolError

from zareba import InvalidError, _http1
from zareba._http1 import Answer, AnswerReader

OK = b"HTTP/1.1 200 OK\r\n"


def read(stream: bytes, size: int) -> Answer:
    """Reads an answer that comes in pieces of one size, and then ends."""
    reader = AnswerReader()
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    for piece in [*pieces, b""]:
        answer = reader.feed(piece)
        if answer is not None:
            return answer
    raise AssertionError("the end is nothing that a reader waits after")


@pytest.mark.parametrize(
    "stream, content, is_last",
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", b"hello", False),
        (OK + b"content-length: 0\r\n\r\n", b"", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", False),
        (OK + b"content-length:2\r\nConnection: Close\r\n\r\nok", b"ok", True),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", b"ok", True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length: 2\r\n\r\nok", b"ok", False),
        (OK + b"\r\nas far as it goes", b"as far as it goes", True),
        (OK + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n", b"", False),
        (
            OK + b"Transfer-Encoding: Chunked\r\n\r\n3;of=us\r\nabc\r\n00A\r\n\r\n34567\r\n!\r\n"
            b"0\r\nmore: or less\r\n\r\n",
            b"abc\r\n34567\r\n!",
            False,
        ),
    ],
)
def test_an_answer_is_the_same_however_its_bytes_are_cut(
    stream: bytes, content: bytes, is_last: bool
) -> None:
    for size in range(1, len(stream) + 1):
        answer = read(stream, size)
        assert (answer.content, answer.is_last) == (content, is_last), size
        assert answer.is_success and answer.status in (200, 204)


def test_headers_have_names_in_small_letters() -> None:
    stream = (
        b"HTTP/1.1 404 Not Found\r\nX-Request-ID:  a:b \r\nx-empty:\r\ncontent-length: 0\r\n\r\n"
    )
    answer = read(stream, 7)
    assert (answer.status, answer.is_success) == (404, False)
    assert answer.headers == {"x-request-id": "a:b", "x-empty": "", "content-length": "0"}


def test_what_comes_after_an_answer_is_not_the_next_one() -> None:
    answer = AnswerReader().feed(OK + b"content-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n")
    assert answer is not None and answer.content == b"ok" and answer.is_last


@pytest.mark.parametrize(
    "stream",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        OK + b"content-length: -1\r\n\r\n",
        OK + b"content-length: 1_0\r\n\r\n",
        OK + b"content-length: 2, 2\r\n\r\nok",
        OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nok!",
        OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"transfer-encoding: gzip\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\nmany\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n-1\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n" + b"0" * 5000,
        OK + b"no colon\r\n\r\n",
        OK + b"content-length : 2\r\n\r\nok",
        OK + b"content-length: 2\r\n folded: yes\r\n\r\nok",
        OK + b"x: " + b"y" * 70_000,
        OK + b"content-length: 5\r\n\r\nhell",
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
        OK,
        b"",
    ],
)
def test_what_makes_no_sense_is_an_error(stream: bytes) -> None:
    for size in (1 << 20, 1000, 3):
        with pytest.raises(RemoteProtocolError):
            read(stream, size)


def written(method: str, target: str, content: Optional[bytes]) -> List[bytes]:
    return list(_http1.request(method, target, _http1.fields({"host": "h"}), content))


def test_requests_are_written_at_once_unless_they_are_long() -> None:
    assert written("GET", "/x?y=z", None) == [b"GET /x?y=z HTTP/1.1\r\nhost: h\r\n\r\n"]
    head = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: "
    assert written("POST", "/", None) == [head + b"0\r\n\r\n"]
    assert written("POST", "/", b"{}") == [head + b"2\r\n\r\n{}"]
    long = bytes(range(256)) * 4000
    pieces = written("POST", "/", long)
    assert len(pieces) > 2 and max(map(len, pieces)) <= 256 * 1024
    assert b"".join(pieces) == head + b"1024000\r\n\r\n" + long


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\nx: y", "a\0", "\N{SNOWMAN}", "\x7f"])
def test_nothing_can_be_smuggled_into_a_request(value: str) -> None:
    with pytest.raises(InvalidError) as refused:
        _http1.fields({"authorization": value})
    assert value not in str(refused.value)
    with pytest.raises(InvalidError):
        written("GET", f"/{value}", None)
    with pytest.raises(InvalidError):
        written("GET", "/a b", None)
