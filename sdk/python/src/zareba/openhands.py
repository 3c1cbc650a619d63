"""A runtime for OpenHands: its agents work in a sandbox of ours.

In OpenHands' `config.toml`, with this package installed beside it:

    [core]
    runtime = "zareba.openhands.ZarebaRuntime"

It is OpenHands' own client of the action execution API, pointed at a sandbox of the server that
:class:`zareba.Client` finds. Nothing of OpenHands is changed.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import httpx

try:
    from openhands.core.exceptions import AgentRuntimeDisconnectedError
    from openhands.runtime.impl.action_execution.action_execution_client import (
        ActionExecutionClient,
    )
    from openhands.runtime.runtime_status import RuntimeStatus
    from openhands.utils.async_utils import call_sync_from_async
    from openhands.utils.http_session import HttpSession
except ImportError as error:
    raise ImportError(
        f"zareba.openhands needs OpenHands beside it, which cannot be imported: {error}"
    ) from error

from . import _http, models
from ._sync.client import Client
from ._sync.sandbox import Sandbox
from .errors import DisconnectedError, NotFoundError, ZarebaError

__all__ = ["ZarebaRuntime"]

_LABEL = "openhands.sid"
"""The label by which the sandbox of a conversation is found again."""


class ZarebaRuntime(ActionExecutionClient):  # type: ignore[misc]
    """The sandbox of one conversation.

    It is found again by the conversation's name, and closed with the runtime, unless OpenHands
    says that it shall stay (`keep_runtime_alive`). `workspace_base` is the directory to work in;
    `runtime_container_image`, where it is set, the image whose files the sandbox has.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._client = Client()
        self._sandbox: Optional[Sandbox] = None
        super().__init__(*args, **kwargs)

    @property
    def action_execution_server_url(self) -> str:
        """Where the action execution API of the sandbox is."""
        return f"{self._client.place().base_url}/sessions/{self._built().id}"

    @property
    def session_api_key(self) -> Optional[str]:
        """The key that every request carries."""
        return self._client.place().key

    async def connect(self) -> None:
        """Finds the conversation's sandbox or makes it, and gives it its variables."""
        self.set_runtime_status(RuntimeStatus.STARTING_RUNTIME)
        try:
            await call_sync_from_async(self._start)
            await call_sync_from_async(self.setup_initial_env)
        except BaseException:
            self.close()
            raise
        self.set_runtime_status(RuntimeStatus.READY)
        self._runtime_initialized = True

    def pause(self) -> None:
        """Lets the sandbox's processes stand still."""
        self._built().pause()

    def resume(self) -> None:
        """Lets them go on."""
        self._built().resume()

    def close(self) -> None:
        """Ends the sandbox, unless it is to stay."""
        super().close()
        sandbox, self._sandbox = self._sandbox, None
        is_to_stay = self.config.sandbox.keep_runtime_alive or self.attach_to_existing
        try:
            if sandbox is not None and not is_to_stay:
                sandbox.close()
        except ZarebaError as error:
            self.log("warning", f"the sandbox could not be ended: {error}")
        finally:
            self._client.close()

    @classmethod
    async def delete(cls, conversation_id: str) -> None:
        """Ends the sandbox of a conversation that nobody has open."""

        def end() -> None:
            with Client() as client:
                for each in _sandboxes(client, conversation_id):
                    Sandbox.connect(each.id, client=client).close()

        await call_sync_from_async(end)

    def _start(self) -> None:
        there = _sandboxes(self._client, self.sid)
        if there:
            self._sandbox = Sandbox.connect(there[0].id, client=self._client)
        elif self.attach_to_existing:
            raise AgentRuntimeDisconnectedError(f"there is no sandbox of `{self.sid}`")
        else:
            self._sandbox = self._make()
        # What prompts and file actions call the workspace.
        self.config.workspace_mount_path_in_sandbox = self._sandbox.workspace
        self.session = _Session(self._client)

    def _make(self) -> Sandbox:
        try:
            return Sandbox.create(
                self.config.sandbox.runtime_container_image,
                workspace=self.config.workspace_base,
                labels={_LABEL: self.sid},
                client=self._client,
            )
        except (DisconnectedError, NotFoundError) as error:
            raise AgentRuntimeDisconnectedError(str(error)) from error

    def _built(self) -> Sandbox:
        if self._sandbox is None:
            raise AgentRuntimeDisconnectedError("the sandbox is not there: connect first")
        return self._sandbox


class _Session(HttpSession):  # type: ignore[misc]
    """OpenHands' session, on a connection to our server, which may be a socket."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        place = client.place()
        options: Dict[str, Any] = _http.options(place)
        if place.socket is not None:
            options["transport"] = httpx.HTTPTransport(**_http.transport_options(place))
        self._http = httpx.Client(headers=_http.headers(place), **options)

    def request(self, *args: Any, **kwargs: Any) -> httpx.Response:
        """Sends a request."""
        return self._http.request(*args, **kwargs)

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        """Sends a request whose answer is read piece by piece."""
        return self._http.stream(*args, **kwargs)

    def close(self) -> None:
        """Closes the connections."""
        super().close()
        self._http.close()


def _sandboxes(client: Client, conversation: str) -> List[models.Session]:
    """The sandboxes of a conversation that can be used: one, or none."""
    usable = {models.SessionState.READY, models.SessionState.PAUSED}
    found = Sandbox.list(client=client)
    return [
        each for each in found if each.labels.get(_LABEL) == conversation and each.state in usable
    ]
