"""The clients that are meant when none is named: one for threads, and one for tasks."""

from __future__ import annotations

import atexit
import threading
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._async.client import AsyncClient
    from ._sync.client import Client

_lock = threading.Lock()
_client: Optional[Client] = None
_async_client: Optional[AsyncClient] = None


def default_client() -> Client:
    """The client of this process."""
    from ._sync.client import Client

    global _client
    with _lock:
        if _client is None:
            _client = Client()
            atexit.register(_client.close)
        return _client


def async_default_client() -> AsyncClient:
    """The same for tasks of all event loops, which have connections of their own in it."""
    from ._async.client import AsyncClient

    global _async_client
    with _lock:
        if _async_client is None:
            _async_client = AsyncClient()
        return _async_client
