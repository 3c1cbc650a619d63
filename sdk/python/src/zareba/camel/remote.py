"""CAMEL's `RemoteHttpRuntime`: tools in another process of this machine, or of another one."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from .. import _private
from .._sync.client import Client
from .._tries import BackOff
from .._wait import pause
from ..result import ToolResult
from ._arguments import as_json
from ._wire import Wire
from .runtime import ZarebaRuntime

_LONGEST_PAUSE = 0.5


class RemoteHttpRuntime(ZarebaRuntime):
    """Tools that run in another process.

    Built, it has a sandbox on this machine, whose interpreter is `python_exec`. What it can import
    is what this program can, so by default there are no walls around it: `runtime="native"` puts
    them up, for tools that the system's own Python or a `workspace` has.

    Not built, it calls a server that runs at `host` and `port` already and speaks CAMEL's
    contract, theirs or ours (`zareba tools serve`). A server of ours asks for a token: it is the
    `key`, or the password in a host such as `any:TOKEN@127.0.0.1`, which CAMEL's own class takes.
    """

    def __init__(
        self,
        host: str,
        port: int = 8000,
        python_exec: str = "python3",
        *,
        runtime: str = "local",
        workspace: Optional[str] = None,
        key: Optional[str] = None,
        **options: Any,
    ) -> None:
        if python_exec == "python3" and runtime == "local":
            # Whoever runs this program in an environment means that one.
            python_exec = sys.executable
        # Modules in the current directory can be imported, as they can there.
        workspace = workspace or os.getcwd()
        super().__init__(python=python_exec, runtime=runtime, workspace=workspace, **options)
        self.host = host
        self.port = port
        self._wire = Wire(host, port, key)

    @property
    def ok(self) -> bool:
        """Whether every tool that was added can be called."""
        if self._sandbox is not None:
            return super().ok
        there = self._wire.endpoints()
        return there is not None and set(self.tools_map) <= there

    def wait(self, timeout: float = 10) -> bool:
        """Waits until it can be used. A server that is not ours tells nobody when that is."""
        deadline = time.monotonic() + timeout
        pauses = BackOff(longest=_LONGEST_PAUSE)
        while not self.ok:
            left = deadline - time.monotonic()
            if left <= 0 or self._sandbox is not None:
                return False
            pause(min(pauses.step(), left))
        return True

    @property
    def docs(self) -> str:
        """Where the tools are described."""
        return super().docs if self._sandbox is not None else f"{self._wire.url}/docs"

    def cleanup(self) -> None:
        """Ends the sandbox, and closes connections."""
        super().cleanup()
        self._wire.close()

    def _connect(self) -> Tuple[Client, List[Callable[[], None]]]:
        if self._given is not None:
            return self._given, []
        place = _private.server(os.environ)
        client = Client(place.url, place.key)
        return client, [client.close]

    def _call(
        self, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any], redirect_stdout: bool
    ) -> ToolResult:
        if self._sandbox is not None:
            return super()._call(name, args, kwargs, redirect_stdout)
        positional, named = as_json(name, args, kwargs)
        return self._wire.call(name, positional, named, redirect_stdout, self.timeout)
