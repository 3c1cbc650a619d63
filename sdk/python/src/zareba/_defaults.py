"""The clients that are meant when none is named: one for threads, and one for each event loop."""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._async.client import AsyncClient
    from ._sync.client import Client

_lock = threading.Lock()
_client: Optional[Client] = None
_of_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = (
    weakref.WeakKeyDictionary()
)


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
    """The client of this event loop: connections of one are of no use in another."""
    from ._async.client import AsyncClient

    loop = asyncio.get_running_loop()
    with _lock:
        client = _of_loop.get(loop)
        if client is None:
            client = _of_loop[loop] = AsyncClient()
        return client
