# Made by scripts/unasync.py from ../_async/wire.py; change that one.
"""A connection that has become something else than HTTP."""

from __future__ import annotations

from typing import Any, Optional

import httpcore
import httpx

from .._wait import Lock, Owned, hang_up
from ..errors import DisconnectedError, TimedOutError

_PIECE_BYTES = 64 * 1024
_WRITE_TIMEOUT = 60.0
"""Seconds without any progress after which a connection counts as broken."""


class Wire:
    """Bytes both ways. One task or thread may read while others write."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._streams: Owned[Any] = Owned()
        self._streams.keep(response.extensions["network_stream"])
        self._writing = Lock()

    @property
    def is_ours(self) -> bool:
        """Whether it can be used here: it is open, and was made in this event loop and process."""
        return self._streams.ours() is not None

    def read(self, timeout: Optional[float] = None) -> bytes:
        """The next bytes, or none at all when the other end has closed."""
        stream = self._stream()
        try:
            return bytes(stream.read(_PIECE_BYTES, timeout=timeout))
        except httpcore.TimeoutException as error:
            raise TimedOutError("nothing has come in time", code="timeout") from error
        except (httpcore.NetworkError, OSError) as error:
            raise _broken(error) from error

    def write(self, content: bytes) -> None:
        """Sends bytes, all of them."""
        with self._writing:
            stream = self._stream()
            try:
                stream.write(content, timeout=_WRITE_TIMEOUT)
            except (httpcore.TimeoutException, httpcore.NetworkError, OSError) as error:
                raise _broken(error) from error

    def close(self) -> None:
        """Closes the connection, also under the hands of somebody who reads."""
        stream = self._streams.take()
        if stream is not None:
            hang_up(stream)
            self._response.close()

    def _stream(self) -> Any:
        stream = self._streams.ours()
        if stream is None:
            reason = "it was closed, or belongs to another event loop or process"
            raise DisconnectedError(f"the connection is no use: {reason}", code="disconnected")
        return stream


def _broken(error: BaseException) -> DisconnectedError:
    reason = str(error) or type(error).__name__
    return DisconnectedError(
        f"the connection broke: {reason}", code="disconnected", may_have_happened=True
    )
