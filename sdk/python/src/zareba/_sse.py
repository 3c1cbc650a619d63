"""Server-sent events: from pieces of bytes to messages."""

from __future__ import annotations

from typing import Iterator, List, NamedTuple

from .errors import InternalError

MESSAGE_BYTES_MAX = 256 * 1024 * 1024
"""One message. A file that an agent has read is an event, and JSON may double its size."""


class Message(NamedTuple):
    """One message."""

    kind: str
    data: str


class Parser:
    """Takes bytes as they come and gives messages once they are whole."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0
        self._kind = ""
        self._data: List[str] = []
        self._data_bytes = 0

    def feed(self, piece: bytes) -> Iterator[Message]:
        """The messages that this piece completes. Lines end as our server ends them."""
        self._rest += piece
        while True:
            end = self._rest.find(b"\n", self._searched)
            if end < 0:
                self._searched = len(self._rest)
                self._check_size()
                return
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            self._searched = 0
            yield from self._line(line.rstrip(b"\r").decode("utf-8", "replace"))

    def _line(self, line: str) -> Iterator[Message]:
        if not line:
            if self._data:
                yield Message(self._kind or "message", "\n".join(self._data))
            self._kind, self._data, self._data_bytes = "", [], 0
            return
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            self._data.append(value)
            self._data_bytes += len(value)
            self._check_size()
        elif name == "event":
            self._kind = value

    def _check_size(self) -> None:
        if len(self._rest) + self._data_bytes > MESSAGE_BYTES_MAX:
            raise InternalError(f"a message is larger than {MESSAGE_BYTES_MAX} bytes")
