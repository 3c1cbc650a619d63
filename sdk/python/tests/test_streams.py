"""Frames of WebSockets and of programs, whole and in pieces, good and bad."""

from __future__ import annotations

import random
import struct
from typing import List

import pytest

from zareba import InternalError, _frames, _websocket


def server_frame(kind: int, content: bytes, is_last: bool = True) -> bytes:
    """A frame as a server sends it, which is without a mask."""
    first = (0x80 if is_last else 0) | kind
    if len(content) < 126:
        return struct.pack("!BB", first, len(content)) + content
    if len(content) < 1 << 16:
        return struct.pack("!BBH", first, 126, len(content)) + content
    return struct.pack("!BBQ", first, 127, len(content)) + content


def pieces(content: bytes, seed: int) -> List[bytes]:
    chance = random.Random(seed)
    made = []
    while content:
        length = chance.choice([1, 2, 3, 10, 1000, 100_000])
        made.append(content[:length])
        content = content[length:]
    return made


@pytest.mark.parametrize("seed", range(20))
def test_messages_come_out_as_they_went_in_however_they_are_cut(seed: int) -> None:
    sent = [
        _websocket.Message(_websocket.BYTES, b""),
        _websocket.Message(_websocket.TEXT, b"x" * 125),
        _websocket.Message(_websocket.BYTES, b"y" * 126),
        _websocket.Message(_websocket.PING, b"ping"),
        _websocket.Message(_websocket.BYTES, b"z" * 70_000),
        _websocket.Message(_websocket.CLOSE, b"\x03\xe8"),
    ]
    wire = b"".join(server_frame(each.kind, each.content) for each in sent)
    parser = _websocket.Parser()
    assert [each for piece in pieces(wire, seed) for each in parser.feed(piece)] == sent


def test_a_message_in_parts_is_one_and_a_ping_may_come_between() -> None:
    wire = server_frame(_websocket.TEXT, b"one ", is_last=False)
    wire += server_frame(_websocket.PING, b"") + server_frame(0, b"two")
    assert list(_websocket.Parser().feed(wire)) == [(_websocket.PING, b""), (1, b"one two")]


@pytest.mark.parametrize(
    "wire",
    [
        _websocket.frame(_websocket.TEXT, b"masked"),
        server_frame(0x40 | _websocket.TEXT, b"extension"),
        server_frame(0, b"the end of nothing"),
        server_frame(_websocket.TEXT, b"a", is_last=False) + server_frame(_websocket.TEXT, b"b"),
        server_frame(_websocket.PING, b"", is_last=False),
        struct.pack("!BBQ", 0x82, 127, 1 << 40),
    ],
)
def test_frames_that_make_no_sense_are_an_error(wire: bytes) -> None:
    with pytest.raises(InternalError):
        list(_websocket.Parser().feed(wire))


def test_what_a_client_sends_is_masked_and_can_be_read() -> None:
    for content in (b"", b"abc", b"\x00" * 200, bytes(range(256)) * 300):
        frame = _websocket.frame(_websocket.BYTES, content)
        assert frame[1] & 0x80
        begin = {126: 4, 127: 10}.get(frame[1] & 0x7F, 2)
        mask, masked = frame[begin : begin + 4], frame[begin + 4 :]
        assert bytes(byte ^ mask[n % 4] for n, byte in enumerate(masked)) == content


def test_an_answer_to_another_request_is_none() -> None:
    # The example of RFC 6455.
    asked = {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert _websocket.is_answer(asked, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    assert not _websocket.is_answer(_websocket.handshake(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    assert not _websocket.is_answer(asked, None)


@pytest.mark.parametrize("seed", range(20))
def test_frames_of_programs_come_out_as_they_went_in(seed: int) -> None:
    sent = [
        _frames.Frame(_frames.STDOUT, b"out"),
        _frames.Frame(_frames.STDERR, b""),
        _frames.Frame(_frames.STDOUT, b"x" * _frames.FRAME_BYTES_MAX),
        _frames.Frame(_frames.TAKEN, b"\x00\x00\x01\x00"),
        _frames.Frame(_frames.EXIT, b'{"code": 3}'),
    ]
    wire = b"".join(_frames.encode(each.kind, each.content) for each in sent)
    parser = _frames.Parser()
    got = [each for piece in pieces(wire, seed) for each in parser.feed(piece)]
    assert got == sent
    assert (got[3].number(), got[4].document()) == (256, {"code": 3})


@pytest.mark.parametrize("wire", [b"\x09\x00\x00\x00\x00", b"\x00\x00\x01\x00\x01"])
def test_frames_of_programs_that_make_no_sense_are_an_error(wire: bytes) -> None:
    with pytest.raises(InternalError):
        list(_frames.Parser().feed(wire))
    with pytest.raises(InternalError):
        _frames.Frame(_frames.EXIT, b"no json").document()
    with pytest.raises(InternalError):
        _frames.Frame(_frames.TAKEN, b"12345").number()
