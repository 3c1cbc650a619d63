"""A runtime for OpenHands: its agents work in a sandbox of ours.

In OpenHands' `config.toml`, with this package installed beside it:

    [core]
    runtime = "zareba.openhands.ZarebaRuntime"

It is OpenHands' own client of the action execution API, pointed at a sandbox of the server that
:class:`zareba.Client` finds. Nothing of OpenHands is changed.
"""

from __future__ import annotations

import os
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

from . import _http, _place, _private, models
from ._sync.client import Client
from ._sync.sandbox import Sandbox
from .errors import DisconnectedError, NotFoundError, PermissionDeniedError, ZarebaError

__all__ = ["ZarebaRuntime"]

_MODE = "ZAREBA_NATIVE_WORKSPACE_MODE"
"""Whether changes to the workspace are changes to the directory that it is."""
_KEPT = "read-write"
"""They are, as with OpenHands' own runtimes."""
_LABEL = "openhands.sid"
"""The label by which the sandbox of a conversation is found again."""


class ZarebaRuntime(ActionExecutionClient):  # type: ignore[misc]
    """The sandbox of one conversation.

    It is found again by the conversation's name, and closed with the runtime, unless OpenHands
    says that it shall stay (`keep_runtime_alive`). `workspace_base` is the directory to work in,
    and what the agent changes there is changed, as with OpenHands' own runtimes. A server that
    does not permit that refuses it; with `ZAREBA_NATIVE_WORKSPACE_MODE=copy-on-write` the agent
    works on a copy, and a warning says so.
    `runtime_container_image`, where it is set, is the image whose files the sandbox has.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._client = _client()
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
            with _client() as client:
                for each in _sandboxes(client, conversation_id):
                    each.close()

        await call_sync_from_async(end)

    def _start(self) -> None:
        there = _sandboxes(self._client, self.sid)
        if there:
            self._sandbox = there[0]
        elif self.attach_to_existing:
            raise AgentRuntimeDisconnectedError(f"there is no sandbox of `{self.sid}`")
        else:
            self._sandbox = self._make()
        # What prompts and file actions call the workspace.
        self.config.workspace_mount_path_in_sandbox = self._sandbox.workspace
        self._tell_of_workspace()
        self.session = _Session(self._client)

    def _make(self) -> Sandbox:
        try:
            return Sandbox.create(
                self.config.sandbox.runtime_container_image,
                workspace=self.config.workspace_base,
                workspace_mode=self._workspace_mode(),
                labels={_LABEL: self.sid},
                client=self._client,
            )
        except (DisconnectedError, NotFoundError) as error:
            raise AgentRuntimeDisconnectedError(str(error)) from error
        except PermissionDeniedError as error:
            if "`workspace_mode`" not in str(error):
                raise
            raise AgentRuntimeDisconnectedError(
                f"{error}; set {_MODE}=copy-on-write to let the agent work on a copy, whose "
                "changes end with the sandbox"
            ) from error

    def _workspace_mode(self) -> Optional[str]:
        """How the workspace appears; nothing is asked where the sandbox has an empty one."""
        return os.environ.get(_MODE, _KEPT) if self.config.workspace_base else None

    def _tell_of_workspace(self) -> None:
        """Says that changes go with the sandbox, where they do."""
        base = self.config.workspace_base
        if base and self._built().info().workspace_mode != _KEPT:
            self.log("warning", f"what changes in the workspace is not kept in {base}")

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


def _client() -> Client:
    """The server that is named or runs already, or a private one that keeps an agent's work."""
    if _is_named():
        return Client()
    environment = os.environ
    settings = {} if _MODE in environment else {_MODE: _KEPT}
    # OpenHands reads its `config.toml` itself and does what that says, such as asking its user
    # before an action, so that a server does not have to. A `zareba.toml` comes before that file.
    in_project = os.path.exists("zareba.toml")
    place = _private.server(environment, settings, in_project)
    return Client(place.url, place.key)


def _is_named() -> bool:
    """Whether there is a server that is not ours alone."""
    return bool(_place.named(os.environ) or _place.running(os.environ))


def _sandboxes(client: Client, conversation: str) -> List[Sandbox]:
    """The sandboxes of a conversation that can be used: one, or none."""
    usable = {models.SessionState.READY, models.SessionState.PAUSED}
    found = Sandbox.list(labels={_LABEL: conversation}, client=client)
    return [each for each in found if each.state in usable]
