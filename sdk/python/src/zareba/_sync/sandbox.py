# Made by scripts/unasync.py from ../_async/sandbox.py; change that one.
"""The one noun: a place to run commands and keep files."""

from __future__ import annotations

import uuid
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type, Union

from .. import _calls, _http, models
from .._defaults import default_client
from ..errors import BusyError, InternalError, NotFoundError, TimedOutError
from ..result import Edit, Result, edit_of
from .client import Client
from .command import Command, OnOutput
from .env import Env
from .files import Files
from .messages import Events
from .program import Program
from .shell import Shell
from .terminal import Terminal, attach_terminal, list_terminals, open_terminal
from .tools import Tools

_READY = "STATUS$READY"
"""The status of a sandbox that can be used; its state follows a moment later."""


class Sandbox:
    """A sandbox: shells, files and a log, behind walls, on a server.

    Use :meth:`create` or :meth:`connect`. As a context manager, a sandbox that was created here is
    closed in the end, and one that was connected to goes on.
    """

    def __init__(self, client: Client, session: models.Session, owned: bool = False) -> None:
        self._client = client
        self._session = session
        self._owned = owned
        self.files = Files(client, session.id)
        """Its files."""
        self.env = Env(self.shell())
        """The variables of its shell."""
        self.tools = Tools(client, session.id)
        """Functions that run in it."""

    @classmethod
    def create(
        cls,
        image: Optional[str] = None,
        *,
        runtime: Optional[str] = None,
        workspace: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        secrets: Optional[Mapping[str, str]] = None,
        labels: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        idle_timeout: Optional[float] = None,
        when_idle: Union[models.Idle, str, None] = None,
        life_max: Optional[float] = None,
        setup: Union[models.Setup, str] = models.Setup.WORKSPACE,
        id: Optional[str] = None,
        client: Optional[Client] = None,
    ) -> Sandbox:
        """Makes a sandbox and returns once it is ready. What is left out is the server's choice.

        `image` is the container image whose files it has, `workspace` a directory of the server's
        machine to work in. `env` are variables of its shells, programs and tools, `secrets` of its
        default shell alone; they are masked wherever they would be stored or shown. `timeout` is
        how long a command may take that does not say so itself. After `idle_timeout` seconds
        without use happens what `when_idle` says: "pause", "close" or "stay". `life_max` ends it in
        any case.
        """
        client = client or default_client()
        limits = models.SessionLimits(
            idle_timeout=idle_timeout,
            when_idle=models.Idle(when_idle) if when_idle else None,
            life_max=life_max,
        )
        new = models.CreateSession(
            id=id or f"py-{uuid.uuid4().hex[:24]}",
            runtime=runtime,
            image=image,
            workspace=workspace,
            environment=dict(env or {}),
            secrets=dict(secrets or {}),
            labels=dict(labels or {}),
            timeout=timeout,
            limits=limits,
            setup=models.Setup(setup),
        )
        session = _create(client, new, is_ours=id is None)
        return cls(client, session, owned=True)

    @classmethod
    def connect(cls, id: str, *, client: Optional[Client] = None) -> Sandbox:
        """Finds a sandbox that is there already."""
        client = client or default_client()
        session = client.ask(_calls.session("get_session", id), models.Session)
        return cls(client, session)

    @classmethod
    def list(
        cls, *, closed: bool = False, client: Optional[Client] = None
    ) -> List[models.Session]:
        """All sandboxes that the key may see, without those that are closed unless asked for."""
        client = client or default_client()
        found: List[models.Session] = []
        after: Optional[str] = None
        while True:
            call = _calls.call("list_sessions").asking(after=after)
            page = client.ask(call, models.SessionPage)
            found += page.sessions
            after = page.next
            if after is None:
                return [each for each in found if closed or each.state != "closed"]

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._owned:
            self.close()

    def __repr__(self) -> str:
        return f"<Sandbox {self.id}>"

    @property
    def id(self) -> str:
        """Its name, by which it can be connected to."""
        return self._session.id

    @property
    def workspace(self) -> str:
        """The directory to work in, as programs inside see it."""
        return self._session.workspace

    @property
    def client(self) -> Client:
        """The connection that it uses."""
        return self._client

    def run(
        self,
        command: str,
        *,
        timeout: Optional[float] = None,
        cwd: Optional[str] = None,
        shell: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        on_output: Optional[OnOutput] = None,
    ) -> Result:
        """Runs a command and returns what came of it: see :meth:`Shell.run`."""
        return self.shell(shell).run(
            command, timeout=timeout, cwd=cwd, env=env, on_output=on_output
        )

    def start(self, command: str, *, shell: Optional[str] = None) -> Command:
        """Starts a command in the background, in a shell of its own unless one is named."""
        if shell is None:
            shell = f"background-{uuid.uuid4().hex[:12]}"
        return self.shell(shell).start(command)

    def shell(self, name: Optional[str] = None) -> Shell:
        """A shell by its name, which is made when it is first used."""
        return Shell(self._client, self.id, name)

    def program(
        self,
        program: Union[str, Sequence[str]],
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: bool = False,
        terminal: Optional[Tuple[int, int]] = None,
    ) -> Program:
        """Starts a program with streams of its own, and not in a shell: see :class:`Program`.

        It is a list of words, or a line for a shell. `stdin` says whether it reads what we write;
        `terminal` gives it a terminal with so many columns and rows, otherwise it has pipes.
        """
        size = models.ProgramTerminal(cols=terminal[0], rows=terminal[1]) if terminal else None
        return Program._start(self._client, self.id, program, cwd, env, stdin, size)

    def terminal(
        self,
        command: Union[str, Sequence[str], None] = None,
        *,
        name: Optional[str] = None,
        columns: int = 80,
        rows: int = 24,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> Terminal:
        """Opens a terminal: with a shell, a line for one, or a program as a list of words."""
        is_line = isinstance(command, str)
        wanted = models.CreateTerminal(
            name=name,
            argv=None if is_line or command is None else list(command),
            command=str(command) if is_line else None,
            directory=cwd,
            environment=dict(env or {}),
            size=models.WindowSize(columns=columns, rows=rows),
        )
        return open_terminal(self._client, self.id, wanted)

    def attach_terminal(self, name: str) -> Terminal:
        """Finds a terminal that is there already, and shows it as far back as it is kept."""
        return attach_terminal(self._client, self.id, name)

    def terminals(self) -> List[models.Terminal]:
        """All terminals, by name."""
        return list_terminals(self._client, self.id)

    def edit(self, path: str, old: str, new: str) -> Edit:
        """Replaces a text that occurs exactly once in a file."""
        arguments = {"command": "str_replace", "old_str": old, "new_str": new}
        action = _calls.edit(self._absolute(path), **arguments)
        return edit_of(self._client.perform(self.id, action))

    def undo_edit(self, path: str) -> Edit:
        """Takes back the last edit of a file."""
        action = _calls.edit(self._absolute(path), command="undo_edit")
        return edit_of(self._client.perform(self.id, action))

    def act(self, action: Mapping[str, Any]) -> Dict[str, Any]:
        """Runs any action of the protocol and returns its observation."""
        return self._client.perform(self.id, dict(action))

    def events(self, from_: int = 0, follow: bool = True) -> Events:
        """What happened, from a number on; following, also what will happen until it is closed."""
        return Events(self._client, self.id, from_, follow)

    def port(self, number: int) -> str:
        """Shares a port of the sandbox, and returns the address that nobody else can guess."""
        call = _calls.call("share_port", session=self.id, port=number).repeated()
        return (self._client.ask(call.within(_calls.LONG), models.SharedPort)).url

    def unshare_port(self, number: int) -> None:
        """Takes the address of a port back."""
        call = _calls.call("unshare_port", session=self.id, port=number).repeated()
        self._client.send(call)

    def ports(self) -> List[models.Port]:
        """The ports that programs listen on, as far as that is known, and those that are shared."""
        call = _calls.call("list_ports", session=self.id).within(_calls.LONG)
        return (self._client.ask(call, models.PortPage)).ports

    def info(self) -> models.Session:
        """How it is now."""
        return self._about("get_session")

    def inspect(self) -> Dict[str, Any]:
        """What stands around it and what it uses; what that says depends on the runtime."""
        response = self._client.send(_calls.session("inspect_session", self.id))
        return _http.parse_object(response.content)

    def pause(self) -> models.Session:
        """Lets its processes stand still until something is asked of it."""
        return self._about("pause_session")

    def resume(self) -> models.Session:
        """Lets its processes go on."""
        return self._about("resume_session")

    def keep_alive(self) -> models.Session:
        """Counts as use, so that it does not go to sleep for another while."""
        return self._about("keep_session_alive")

    def close(self, purge: bool = False) -> None:
        """Ends it. Its log is kept, unless that is to go as well. Twice is no error."""
        call = _calls.session("delete_session", self.id)
        try:
            self._client.send(call.asking(purge=True) if purge else call)
        except NotFoundError:
            if not purge:
                raise

    def _about(self, operation: str) -> models.Session:
        call = _calls.session(operation, self.id)
        self._session = self._client.ask(call, models.Session)
        return self._session

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self.workspace.rstrip('/')}/{path}"


def _create(client: Client, new: models.CreateSession, is_ours: bool) -> models.Session:
    """Makes a sandbox. With a name of ours that may be asked for again: nobody else has it."""
    call = _calls.create_session(new)
    try:
        session = client.ask(call.repeated() if is_ours else call, models.Session)
    except BusyError as error:
        if not (is_ours and error.in_doubt and error.code == "exists"):
            raise
        session = _await_ready(client, str(new.id))
    if session.state == models.SessionState.FAILED:
        raise InternalError(session.message, code="start_failed")
    if session.state == models.SessionState.STARTING:
        raise TimedOutError(
            f"the sandbox `{session.id}` is still being started",
            code="timeout",
            hint="connect to it later",
        )
    return session


def _await_ready(client: Client, name: str) -> models.Session:
    """A sandbox that was made by a request whose answer is lost, once its start is over."""
    with Events(client, name, 0, follow=True) as events:
        for event in events:
            if event.kind != models.EventKind.STATUS:
                continue
            call = _calls.session("get_session", name)
            session = client.ask(call, models.Session)
            if event.payload.get("status") == _READY:
                return session.model_copy(update={"state": models.SessionState.READY})
            if session.state != models.SessionState.STARTING:
                return session
    return client.ask(_calls.session("get_session", name), models.Session)
