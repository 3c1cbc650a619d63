"""The frames of a program's streams: a byte for the kind, four for the length, the content."""

from __future__ import annotations

import json
import struct
from typing import Any, Iterator, NamedTuple

from .errors import InternalError

UPGRADE = "zareba-program"
"""What a connection becomes that carries them."""
FRAME_BYTES_MAX = 65_536
STDIN_WINDOW_BYTES = 262_144
"""How much input may be sent that the program has not taken."""

STDIN, END_OF_STDIN, RESIZE, SIGNAL = 0, 1, 2, 3
"""What we send."""
STDOUT, STDERR, EXIT, ERROR, TAKEN = 0, 1, 2, 3, 4
"""What the server sends."""


class Frame(NamedTuple):
    """One whole frame."""

    kind: int
    content: bytes

    def document(self) -> Any:
        """The content, of one that carries JSON."""
        try:
            return json.loads(self.content)
        except ValueError as error:
            raise _nonsense(f"a frame of kind {self.kind} carries no JSON") from error

    def number(self) -> int:
        """The content, of one that carries a number."""
        if len(self.content) != 4:
            raise _nonsense(f"a frame of kind {self.kind} carries no number")
        return int.from_bytes(self.content, "big")


def encode(kind: int, content: bytes = b"") -> bytes:
    """A frame as bytes; its content has at most :data:`FRAME_BYTES_MAX` bytes."""
    return struct.pack("!BI", kind, len(content)) + content


class Parser:
    """Takes bytes as they come and gives frames once they are whole."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """The frames that this piece completes."""
        self._rest += piece
        while len(self._rest) >= 5:
            kind, length = struct.unpack_from("!BI", self._rest)
            if kind > TAKEN or length > FRAME_BYTES_MAX:
                raise _nonsense(f"a frame of kind {kind} has {length} bytes")
            if len(self._rest) < 5 + length:
                return
            content = bytes(self._rest[5 : 5 + length])
            del self._rest[: 5 + length]
            yield Frame(kind, content)


def _nonsense(problem: str) -> InternalError:
    return InternalError(f"the program's streams make no sense: {problem}", code="internal")
