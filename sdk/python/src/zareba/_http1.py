"""HTTP/1.1 as bytes: a request to send, and the answer that comes back.

Nothing here does any input or output, so that the two clients, one that blocks and one that does
not, differ in nothing but that.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import Dict, Generator, Iterable, List, Mapping, NamedTuple, Optional

from httpcore import RemoteProtocolError

from .errors import InvalidError

_HEAD_BYTES_MAX = 64 * 1024
_LINE_BYTES_MAX = 4096
"""The line in front of a chunk, or after the last one."""
_WRITE_BYTES = 256 * 1024
"""How much is written at a time."""
_FRAMING = ("content-length", "transfer-encoding")
_UNSENDABLE = re.compile(r"[^\t -~]")
_NUMBER = re.compile(r"[0-9]{1,18}\Z")
_CHUNK_BYTES = re.compile(rb"[0-9A-Fa-f]{1,15}")
_END_OF_HEAD = b"\r\n\r\n"
_END_OF_LINE = b"\r\n"

Steps = Generator[None, bytes, bytes]
"""Takes bytes as they come, and returns those that were looked for."""


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    """By their names in small letters."""
    content: bytes
    is_last: bool = True
    """Whether nothing else can be asked on the same connection."""

    @property
    def is_success(self) -> bool:
        """Whether the server did what it was asked."""
        return 200 <= self.status < 300


def fields(headers: Mapping[str, str]) -> str:
    """Headers as they are sent. None of them may end early, and begin another."""
    for name, value in headers.items():
        if _UNSENDABLE.search(value):
            raise InvalidError(f"the header `{name}` holds what cannot be sent", code="invalid")
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])


def request(method: str, target: str, head: str, content: Optional[bytes]) -> Iterable[bytes]:
    """A request as it is written: at once, unless it is long."""
    if " " in target or _UNSENDABLE.search(target):
        raise InvalidError(f"`{target}` is no path that can be asked for", code="invalid")
    body = content or b""
    if content is not None or method != "GET":
        head += f"content-length: {len(body)}\r\n"
    begun = f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("ascii")
    if len(body) <= _WRITE_BYTES:
        return (begun + body,)
    starts = range(0, len(body), _WRITE_BYTES)
    return chain((begun,), (body[start : start + _WRITE_BYTES] for start in starts))


class AnswerReader:
    """Reads one answer from pieces, however its bytes are cut."""

    def __init__(self) -> None:
        self._held = b""
        self._at = 0
        self._steps = self._answer()
        next(self._steps)

    def feed(self, piece: bytes) -> Optional[Answer]:
        """Takes the next bytes, none at the connection's end; the answer once it is whole."""
        try:
            self._steps.send(piece)
        except StopIteration as done:
            answer: Answer = done.value
            return answer
        return None

    def _answer(self) -> Generator[None, bytes, Answer]:
        status = 0
        # Those below 200 only say that the answer is on its way.
        while status < 200:
            head = yield from self._until(_END_OF_HEAD, _HEAD_BYTES_MAX)
            lines = head.decode("latin-1").split("\r\n")
            version, _, rest = lines[0].partition(" ")
            if not version.startswith("HTTP/1.") or not _NUMBER.match(rest[:3]):
                raise RemoteProtocolError("the answer does not begin as one does")
            status = int(rest[:3])
            if status == 101:
                raise RemoteProtocolError("the answer is a connection of another kind")
        headers = _headers(lines[1:])
        is_last = version != "HTTP/1.1" or "close" in headers.get("connection", "").lower()
        length = headers.get("content-length")
        if "transfer-encoding" in headers:
            if headers["transfer-encoding"].lower() != "chunked" or length is not None:
                raise RemoteProtocolError("the answer comes in a form that is not known")
            content = yield from self._chunks()
        elif status in (204, 304):
            content = b""
        elif length is None:
            content, is_last = (yield from self._rest()), True
        elif _NUMBER.match(length):
            content = yield from self._exactly(int(length))
        else:
            raise RemoteProtocolError("the answer does not tell how long it is")
        # Bytes that nobody has asked for would be taken for the next answer.
        return Answer(status, headers, content, is_last or self._at < len(self._held))

    def _chunks(self) -> Steps:
        parts: List[bytes] = []
        while True:
            line = yield from self._until(_END_OF_LINE, _LINE_BYTES_MAX)
            size = _CHUNK_BYTES.fullmatch(line.partition(b";")[0].strip())
            if size is None:
                raise RemoteProtocolError("a part of the answer does not tell how long it is")
            if int(size.group(), 16) == 0:
                break
            parts.append((yield from self._exactly(int(size.group(), 16))))
            if (yield from self._exactly(2)) != _END_OF_LINE:
                raise RemoteProtocolError("a part of the answer is longer than it says")
        # What may follow the last part, up to an empty line, is of no use here.
        while (yield from self._until(_END_OF_LINE, _LINE_BYTES_MAX)):
            pass
        return b"".join(parts)

    def _until(self, mark: bytes, most: int) -> Steps:
        """The bytes before a mark, which is skipped."""
        while True:
            begin, end = self._at, self._held.find(mark, self._at)
            if end >= 0:
                self._at = end + len(mark)
                return self._held[begin:end]
            if len(self._held) - begin > most:
                raise RemoteProtocolError("the head of the answer, or a line in it, is too long")
            piece = yield from self._more()
            self._held, self._at = self._held[begin:] + piece, 0

    def _exactly(self, count: int) -> Steps:
        parts = [self._held[self._at : self._at + count]]
        have = len(parts[0])
        self._at += have
        while have < count:
            piece = yield from self._more()
            parts.append(piece[: count - have])
            have += len(parts[-1])
            self._held, self._at = piece, len(parts[-1])
        return b"".join(parts)

    def _rest(self) -> Steps:
        parts = [self._held[self._at :]]
        self._at = len(self._held)
        while True:
            piece = yield
            if not piece:
                return b"".join(parts)
            parts.append(piece)

    def _more(self) -> Steps:
        piece = yield
        if not piece:
            raise RemoteProtocolError("the server hung up before its answer was whole")
        return piece


def _headers(lines: List[str]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for line in lines:
        name, is_one, value = line.partition(":")
        name, value = name.lower(), value.strip()
        if not is_one or not name or name != name.strip():
            raise RemoteProtocolError("the answer has a header that makes no sense")
        if found.setdefault(name, value) != value and name in _FRAMING:
            raise RemoteProtocolError(f"the answer says `{name}` twice")
    return found
