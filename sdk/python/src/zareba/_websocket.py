"""WebSockets (RFC 6455), the side of the client: from bytes to messages, and back."""

from __future__ import annotations

import base64
import hashlib
import os
import struct
from typing import Dict, Iterator, NamedTuple, Optional

from .errors import InternalError

MESSAGE_BYTES_MAX = 16 * 1024 * 1024
"""One message. Those of a terminal have far less."""
TEXT, BYTES, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
_CONTINUED = 0x0
_CONTROL_BYTES_MAX = 125
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Message(NamedTuple):
    """One whole message."""

    kind: int
    content: bytes


def handshake() -> Dict[str, str]:
    """What a request says that asks for a WebSocket."""
    return {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": base64.b64encode(os.urandom(16)).decode(),
    }


def is_answer(asked: Dict[str, str], accepted: Optional[str]) -> bool:
    """Whether the answer is one to this very request."""
    digest = hashlib.sha1((asked["sec-websocket-key"] + _GUID).encode()).digest()
    return accepted == base64.b64encode(digest).decode()


def frame(kind: int, content: bytes) -> bytes:
    """A message in one frame, masked as that of a client has to be."""
    length = len(content)
    if length < 126:
        head = struct.pack("!BB", 0x80 | kind, 0x80 | length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, length)
    else:
        head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, length)
    mask = os.urandom(4)
    return head + mask + _masked(content, mask)


def close_code(content: bytes) -> int:
    """Why the other end has closed; 1005 when it does not say."""
    return int(struct.unpack("!H", content[:2])[0]) if len(content) >= 2 else 1005


class Parser:
    """Takes bytes as they come and gives messages once they are whole."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._kind = _CONTINUED
        self._begun = bytearray()

    def feed(self, piece: bytes) -> Iterator[Message]:
        """The messages that this piece completes."""
        self._rest += piece
        while True:
            found = self._frame()
            if found is None:
                return
            is_last, kind, content = found
            if kind >= CLOSE:
                yield Message(kind, content)
                continue
            if (kind == _CONTINUED) != (self._kind != _CONTINUED):
                raise _nonsense("a message began within another one, or without a beginning")
            self._kind = kind or self._kind
            self._begun += content
            if len(self._begun) > MESSAGE_BYTES_MAX:
                raise _nonsense(f"a message has more than {MESSAGE_BYTES_MAX} bytes")
            if is_last:
                yield Message(self._kind, bytes(self._begun))
                self._kind, self._begun = _CONTINUED, bytearray()

    def _frame(self) -> Optional[tuple[bool, int, bytes]]:
        rest = self._rest
        if len(rest) < 2:
            return None
        first, length, begin = rest[0], rest[1], 2
        if first & 0x70 or length & 0x80:
            raise _nonsense("a frame is masked, or uses an extension that nobody has agreed to")
        kind, is_last = first & 0x0F, bool(first & 0x80)
        if kind >= CLOSE and (length > _CONTROL_BYTES_MAX or not is_last):
            raise _nonsense("a control frame is too long, or comes in parts")
        if length >= 126:
            begin = 4 if length == 126 else 10
            if len(rest) < begin:
                return None
            length = int.from_bytes(rest[2:begin], "big")
        if length > MESSAGE_BYTES_MAX:
            raise _nonsense(f"a frame has more than {MESSAGE_BYTES_MAX} bytes")
        if len(rest) < begin + length:
            return None
        content = bytes(rest[begin : begin + length])
        del rest[: begin + length]
        return is_last, kind, content


def _masked(content: bytes, mask: bytes) -> bytes:
    """Each byte combined with its own of the mask; as whole numbers, which is a lot faster."""
    length = len(content)
    pattern = (mask * (length // 4 + 1))[:length]
    mixed = int.from_bytes(content, "big") ^ int.from_bytes(pattern, "big")
    return mixed.to_bytes(length, "big")


def _nonsense(problem: str) -> InternalError:
    return InternalError(f"the server's WebSocket makes no sense: {problem}", code="internal")
