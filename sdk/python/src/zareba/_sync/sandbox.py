# Made by scripts/unasync.py from ../_async/sandbox.py; change that one.
"""The one noun: a place to run commands and keep files."""

from __future__ import annotations

import uuid
from types import TracebackType
from typing import (
    Any,
    Dict,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
    overload,
)

from .. import _calls, _checks, _http, _relay, models
from .._checks import Path
from .._defaults import default_client
from .._shell_words import one_command
from .._wait import beside
from ..errors import BusyError, InternalError, NotFoundError, TimedOutError, UnsupportedError
from ..result import Edit, Result, edit_of
from .client import Client
from .command import ENDLESS, Command, OnOutput
from .env import Env
from .files import Files
from .messages import Events
from .program import Program
from .shell import Shell
from .terminal import Terminal, attach_terminal, list_terminals, open_terminal
from .tools import Tools
from .user import require_user

_READY = "STATUS$READY"
"""The status of a sandbox that can be used; its state follows a moment later."""


def _network(
    mode: Optional[str], allow: Optional[Sequence[str]], deny: Sequence[str]
) -> Optional[models.Network]:
    allowed = None if allow is None else _checks.words(allow, "allow")
    refused = _checks.words(deny, "deny")
    if mode is None and allowed is None and not refused:
        return None
    return _checks.made(models.Network, mode=mode, allow=allowed, deny=refused)


class Sandbox:
    """A sandbox: shells, files and a log, behind walls, on a server.

    Use :meth:`create` or :meth:`connect`. As a context manager, a sandbox that was created here is
    closed in the end, and one that was connected to goes on.
    """

    def __init__(
        self,
        client: Optional[Client] = None,
        session: Optional[models.Session] = None,
        owned: bool = False,
    ) -> None:
        if client is None or session is None:
            raise _checks.invalid(
                "a sandbox is not made like this",
                "use `Sandbox.create()`, or `Sandbox.connect(id)` for one that is there already",
            )
        self._client = client
        self._session = session
        self._owned = owned
        self._is_purged = False
        self.files = Files(client, session.id)
        """Its files."""
        self.env = Env(client, session.id, self.shell())
        """Its variables."""
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
        no_change_timeout: Optional[float] = None,
        network: Optional[str] = None,
        allow: Optional[Sequence[str]] = None,
        deny: Sequence[str] = (),
        memory: Union[int, str, None] = None,
        cpus: Optional[float] = None,
        pids: Optional[int] = None,
        disk: Union[int, str, None] = None,
        workspace_mode: Optional[str] = None,
        user: Optional[str] = None,
        mounts: Sequence[str] = (),
        best_effort: bool = False,
        idle_timeout: Optional[float] = None,
        when_idle: Union[models.Idle, str, None] = None,
        life_max: Optional[float] = None,
        setup: Union[models.Setup, str] = models.Setup.WORKSPACE,
        id: Optional[str] = None,
        client: Optional[Client] = None,
    ) -> Sandbox:
        """Makes a sandbox and returns once it is ready. What is left out is the server's choice.

        `image` is the container image whose files it has, `workspace` a directory of the server's
        machine to work in. `env` and `secrets` are variables of its shells, programs and
        tools; secrets are masked wherever they would be stored or shown. `timeout` is
        how long a command may take that does not say so itself, `no_change_timeout` how long it
        may be silent. After `idle_timeout` seconds without use happens what `when_idle` says:
        "pause", "close" or "stay". `life_max` ends it in any case.

        `network` is what it can reach: "none", "filtered" or "host". `allow` lists the hosts that
        it can reach and filters the network; `deny` lists hosts that it cannot, whatever `allow`
        says.
        `memory` and `disk` are bytes or a text such as "512MiB", `cpus` may have a fraction.
        `workspace_mode` is how the workspace appears: "read-only", "copy-on-write" or "read-write".
        `user`, as "UID" or "UID:GID", and `mounts` are for the runtime `docker`. What the runtime
        cannot hold is an error, or with `best_effort` named in `info().not_held`.
        """
        client = _client(client)
        limits = _checks.made(
            models.SessionLimits,
            idle_timeout=_checks.seconds(idle_timeout, "idle_timeout"),
            when_idle=when_idle,
            life_max=_checks.seconds(life_max, "life_max"),
        )
        new = _checks.made(
            models.CreateSession,
            id=f"py-{uuid.uuid4().hex[:24]}" if id is None else id,
            runtime=runtime,
            image=image,
            workspace=workspace,
            environment=_checks.texts(env),
            secrets=_checks.texts(secrets, "secrets"),
            labels=_checks.texts(labels, "labels"),
            timeout=_checks.timeout(timeout),
            no_change_timeout=_checks.seconds(no_change_timeout, "no_change_timeout"),
            network=_network(network, allow, deny),
            resources=_checks.made(
                models.Resources, memory=memory, cpus=cpus, pids=pids, disk=disk
            ),
            workspace_mode=workspace_mode,
            user=user,
            mounts=_checks.words(mounts, "mounts"),
            best_effort=best_effort,
            limits=limits,
            setup=setup,
        )
        session = _create(client, new, is_ours=id is None)
        return cls(client, session, owned=True)

    @classmethod
    def connect(cls, id: str, *, client: Optional[Client] = None) -> Sandbox:
        """Finds a sandbox that is there already."""
        client = _client(client)
        call = _calls.session("get_session", _checks.text(id, "id"))
        session = client.ask(call, models.Session)
        return cls(client, session)

    @classmethod
    def list(
        cls,
        *,
        labels: Optional[Mapping[str, str]] = None,
        closed: bool = False,
        client: Optional[Client] = None,
    ) -> List[Sandbox]:
        """All sandboxes that the key may see and that have these labels.

        Those that are closed are left out unless asked for.
        """
        client = _client(client)
        wanted = _checks.texts(labels, "labels").items()
        found: List[models.Session] = []
        after: Optional[str] = None
        while True:
            call = _calls.call("list_sessions").asking(after=after)
            page = client.ask(call, models.SessionPage)
            found += page.sessions
            after = page.next
            if after is None:
                open_ones = (each for each in found if closed or each.state != "closed")
                return [cls(client, each) for each in open_ones if wanted <= each.labels.items()]

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
    def labels(self) -> Dict[str, str]:
        """What it was labelled with."""
        return dict(self._session.labels)

    @property
    def state(self) -> str:
        """How it was when it was last asked about: see :meth:`info`."""
        return self._session.state

    @property
    def workspace(self) -> str:
        """The directory to work in, as programs inside see it."""
        return self._session.workspace

    @property
    def client(self) -> Client:
        """The connection that it uses."""
        return self._client

    @overload
    def run(
        self,
        command: str,
        *,
        timeout: Optional[float] = None,
        cwd: Optional[Path] = None,
        shell: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        on_output: Optional[OnOutput] = None,
        separate_stderr: bool = False,
        background: Literal[False] = False,
    ) -> Result: ...

    @overload
    def run(
        self,
        command: str,
        *,
        timeout: Optional[float] = None,
        cwd: Optional[Path] = None,
        shell: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        on_output: None = None,
        separate_stderr: Literal[False] = False,
        background: Literal[True],
    ) -> Command: ...

    def run(
        self,
        command: str,
        *,
        timeout: Optional[float] = None,
        cwd: Optional[Path] = None,
        shell: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        on_output: Optional[OnOutput] = None,
        separate_stderr: bool = False,
        background: bool = False,
    ) -> Union[Result, Command]:
        """Runs a command and returns what came of it: see :meth:`Shell.run`.

        With `background` it is started, as by :meth:`start`.
        """
        if not background:
            return self.shell(shell).run(
                command,
                timeout=timeout,
                cwd=cwd,
                env=env,
                user=user,
                on_output=on_output,
                separate_stderr=separate_stderr,
            )
        if on_output is not None or separate_stderr:
            raise _checks.invalid(
                "`background` goes with neither `on_output` nor `separate_stderr`",
                "read `output()` of what it returns, or use `program` for streams that are apart",
            )
        return self.start(command, shell=shell, cwd=cwd, env=env, timeout=timeout, user=user)

    def start(
        self,
        command: str,
        *,
        shell: Optional[str] = None,
        cwd: Optional[Path] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        user: Optional[str] = None,
    ) -> Command:
        """Starts a command in the background: see :meth:`Shell.start`.

        It has a shell of its own, which ends with it, unless one is named. After `timeout` seconds
        both are ended; in a shell that is named it goes on.
        """
        text = one_command(_checks.command(command))
        patience = _checks.timeout(timeout) or ENDLESS
        require_user(self._client, self.id, user)
        return self.shell(shell)._start(text, cwd, env, patience, alone=shell is None)

    def shell(self, name: Optional[str] = None) -> Shell:
        """A shell by its name, which is made when it is first used."""
        return Shell(self._client, self.id, name)

    def program(
        self,
        program: Union[str, Sequence[str]],
        *,
        cwd: Optional[Path] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        user: Optional[str] = None,
        stdin: bool = False,
        terminal: Optional[Tuple[int, int]] = None,
    ) -> Program:
        """Starts a program with streams of its own, and not in a shell: see :class:`Program`.

        It is a list of words, or a line for a shell. `stdin` says whether it reads what we write;
        `terminal` gives it a terminal with so many columns and rows, otherwise it has pipes. After
        `timeout` seconds it is ended. `user` must be the one that the sandbox runs as.
        """
        size = None
        if terminal is not None:
            numbers = _checks.items(terminal, "terminal")
            if len(numbers) != 2:
                raise _checks.invalid("`terminal` is two numbers: columns and rows")
            size = _checks.made(models.ProgramTerminal, cols=numbers[0], rows=numbers[1])
        patience = _checks.timeout(timeout)
        require_user(self._client, self.id, user)
        return Program._start(
            self._client, self.id, program, cwd, env, stdin, size, patience
        )

    def terminal(
        self,
        command: Union[str, Sequence[str], None] = None,
        *,
        name: Optional[str] = None,
        columns: int = 80,
        rows: int = 24,
        cwd: Optional[Path] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
    ) -> Terminal:
        """Opens a terminal: with a shell, a line for one, or a program as a list of words.

        `user` must be the one that the sandbox runs as.
        """
        words = None if command is None else _checks.program(command)
        is_line = isinstance(words, str)
        wanted = _checks.made(
            models.CreateTerminal,
            name=name,
            argv=None if is_line else words,
            command=words if is_line else None,
            directory=_checks.directory(cwd),
            environment=_checks.texts(env),
            size=_checks.made(models.WindowSize, columns=columns, rows=rows),
        )
        require_user(self._client, self.id, user)
        return open_terminal(self._client, self.id, wanted)

    def attach_terminal(self, name: str) -> Terminal:
        """Finds a terminal that is there already, and shows it as far back as it is kept."""
        return attach_terminal(self._client, self.id, name)

    def terminals(self) -> List[models.Terminal]:
        """All terminals, by name."""
        return list_terminals(self._client, self.id)

    def edit(self, path: Path, old: str, new: str) -> Edit:
        """Replaces a text that occurs exactly once in a file."""
        arguments = {"command": "str_replace", "old_str": old, "new_str": new}
        action = _calls.edit(self._absolute(path), **arguments)
        return edit_of(self._client.perform(self.id, action))

    def undo_edit(self, path: Path) -> Edit:
        """Takes back the last edit of a file."""
        action = _calls.edit(self._absolute(path), command="undo_edit")
        return edit_of(self._client.perform(self.id, action))

    def act(self, action: Mapping[str, Any]) -> Dict[str, Any]:
        """Runs any action of the protocol and returns its observation."""
        return self._client.perform(self.id, _checks.document(action, "action"))

    def changes(self, path: Optional[Path] = None) -> models.ChangeList:
        """What differs in the workspace from the directory that it began as, all or below a path.

        For workspaces that are copied on write, or that began empty.
        """
        call = self._changes(path)
        return self._client.ask(call, models.ChangeList)

    def patch(self, path: Optional[Path] = None) -> bytes:
        """The same as a patch for `git apply` or `patch -p1`.

        What it leaves out, such as binary files, is named in its first lines, which begin with
        `# left out: `.
        """
        return (self._client.send(self._changes(path).asking(format="patch"))).content

    def events(self, from_: int = 0, follow: bool = True) -> Events:
        """What happened, from a number on; following, also what will happen until it is closed."""
        first = _checks.whole(from_, "from_")
        return Events(self._client, self.id, first, bool(follow))

    def port(self, number: int) -> str:
        """Shares a port of the sandbox, and returns the address that nobody else can guess.

        Programs and browsers can open it where the server can be reached. Pages that refer to
        `/` need :meth:`port_for_browsers`.
        """
        share = self._share(number)
        place = self._client.place()
        if place.socket is None:
            return place.base_url + share.path
        relay = beside(lambda: _relay.to(place.socket or ""))
        return relay + share.path

    def port_for_browsers(self, number: int) -> str:
        """The same as a host of its own, `….localhost` unless the server has a domain for it.

        Browsers know what that means; other programs mostly do not.
        """
        share = self._share(number)
        if not share.url.startswith("http"):
            raise UnsupportedError(
                "a server on a socket has no address for browsers",
                code="unsupported",
                hint="use `port`, or a server on a port: `zareba serve`",
            )
        return share.url

    def _share(self, number: int) -> models.SharedPort:
        call = _calls.call("share_port", session=self.id, port=_port(number)).repeated()
        return self._client.ask(call.within(_calls.LONG), models.SharedPort)

    def unshare_port(self, number: int) -> None:
        """Takes the address of a port back."""
        call = _calls.call("unshare_port", session=self.id, port=_port(number)).repeated()
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

    def set_timeout(self, seconds: float) -> models.Session:
        """Lets it live so many seconds from now on, whatever was asked for before.

        More than the operator's settings or the key permit is an error.
        """
        left = _checks.seconds(seconds, "seconds")
        if left is None:
            raise _checks.invalid("`seconds` is a number of seconds, and not None")
        return self._update(ends_in=left)

    def update(
        self,
        *,
        idle_timeout: Optional[float] = None,
        when_idle: Union[models.Idle, str, None] = None,
        life_max: Optional[float] = None,
        labels: Optional[Mapping[str, str]] = None,
    ) -> models.Session:
        """Changes when it goes to sleep, when it ends, or its labels; what is left out stays.

        The arguments mean what they do in :meth:`create`; `labels` replaces all that it has.
        """
        limits = _checks.made(
            models.SessionLimits,
            idle_timeout=_checks.seconds(idle_timeout, "idle_timeout"),
            when_idle=when_idle,
            life_max=_checks.seconds(life_max, "life_max"),
        )
        named = None if labels is None else _checks.texts(labels, "labels")
        return self._update(limits=limits, labels=named)

    def close(self, purge: bool = False) -> None:
        """Ends it. Its log is kept, unless that is to go as well. Twice is no error."""
        call = _calls.session("delete_session", self.id)
        try:
            self._client.send(call.asking(purge=True) if purge else call)
        except NotFoundError:
            if not (purge or self._is_purged):
                raise
        self._is_purged = self._is_purged or bool(purge)

    def _changes(self, path: Optional[Path]) -> _calls.Call:
        below = None if path is None else _checks.path(path)
        return _calls.call("list_changes", session=self.id).asking(path=below).within(_calls.LONG)

    def _update(self, **changes: Any) -> models.Session:
        update = _checks.made(models.UpdateSession, **changes)
        call = _calls.session("update_session", self.id).carrying(update)
        self._session = self._client.ask(call, models.Session)
        return self._session

    def _about(self, operation: str) -> models.Session:
        call = _calls.session(operation, self.id)
        self._session = self._client.ask(call, models.Session)
        return self._session

    def _absolute(self, path: Path) -> str:
        named = _checks.path(path)
        return named if named.startswith("/") else f"{self.workspace.rstrip('/')}/{named}"


def _client(given: Optional[Client]) -> Client:
    return _checks.instance(given, Client, "client") or default_client()


def _port(number: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 1 << 16:
        raise _checks.invalid(f"a port is a number from 1 to 65535, and not {_checks.kind(number)}")
    return number


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
