"""A server started by their `LocalRuntime`, and the few verbs that the cases use on it."""

import asyncio
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
from openhands.core.config import OpenHandsConfig
from openhands.events.action import CmdRunAction, FileEditAction, FileReadAction, FileWriteAction
from openhands.events.event import FileReadSource
from openhands.events.observation import CmdOutputObservation, Observation
from openhands.llm.llm_registry import LLMRegistry
from openhands.runtime.impl.local.local_runtime import LocalRuntime
from openhands.runtime.plugins import PluginRequirement

# Their client starts `<sys.executable> -u -m <module> PORT ...`; this drops the first three words.
LAUNCHER = """#!/bin/sh
shift 3
exec {binary} executor "$@"
"""

# Their search commands call `rg`. This one shows the words that reach it, which says more about
# quoting than a list of files would, and does not depend on what is installed.
SHOW_ARGUMENTS = """#!/bin/sh
printf '<%s>\\n' "$@"
"""


@dataclass(frozen=True)
class Server:
    """What distinguishes one server from another; equal values share a running one."""

    # Seconds of silence after which a command is reported as still running. Short, so that the
    # cases about it do not wait.
    silence: str | None = '1'
    api_key: str | None = 'a key with "quotes" and $signs'
    plugins: tuple[str, ...] = ()
    startup_env: tuple[tuple[str, str], ...] = ()
    # Set in the environment of the client while it starts the server.
    host_env: tuple[tuple[str, str], ...] = ()


class Sandbox:
    """One running server with its workspace."""

    def __init__(self, scratch: Path, number: int, server: Server, binary: Path | None):
        self.server = server
        self.is_original = binary is None
        self.number = number
        self.workspace = scratch / f'workspace-{number}'
        self.workspace.mkdir(mode=0o777)
        self.elsewhere = scratch / f'cases-{number}'
        self.elsewhere.mkdir()
        # Of its own, because the client writes into the profile of the shell.
        self.home = scratch / f'home-{number}'
        self.home.mkdir()
        self.directory = self.workspace
        self.entered = 0
        self.statuses: list[tuple[str, str]] = []
        self.launcher = launcher(scratch, binary)
        self.restart()

    def _new_runtime(self, sid: str, attach: bool = False, event_stream=None) -> LocalRuntime:
        config = OpenHandsConfig()
        config.enable_browser = False
        config.workspace_base = str(self.workspace)
        config.init_git_in_empty_workspace = True
        if self.server.startup_env:
            config.sandbox.runtime_startup_env_vars = dict(self.server.startup_env)
        return LocalRuntime(
            config,
            event_stream,
            LLMRegistry(config),
            sid=sid,
            plugins=stock_plugins(self.server.plugins),
            status_callback=lambda level, status, message: self.statuses.append((level, status.value)),
            attach_to_existing=attach,
        )

    def restart(self) -> None:
        """Starts the server with their client; also after a case has ended it."""
        set_or_clear('NO_CHANGE_TIMEOUT_SECONDS', self.server.silence)
        set_or_clear('SESSION_API_KEY', self.server.api_key)
        # The original puts its shells into tmux, which would share one environment among servers.
        os.environ.update(self.server.host_env, HOME=str(self.home), TMUX_TMPDIR=str(self.home))
        real = sys.executable
        sys.executable = str(self.launcher)
        try:
            # The client reads the key and the host's variables when the object is made.
            self.runtime = self._new_runtime(f'foreign-{self.number}')
            asyncio.run(self.runtime.connect())
            self.process = self.runtime.server_process
        finally:
            sys.executable = real
            for name, _ in self.server.host_env:
                os.environ.pop(name)

    def attached(self) -> LocalRuntime:
        """A second client object on the same running server, as another worker would make one."""
        set_or_clear('SESSION_API_KEY', self.server.api_key)
        runtime = self._new_runtime(f'foreign-{self.number}', attach=True)
        asyncio.run(runtime.connect())
        return runtime

    def enter_own_directory(self, name: str) -> None:
        """Gives a case an empty directory of its own, with the shell in it."""
        self.entered += 1
        self.directory = self.elsewhere / f'{self.entered:03}-{name}'
        self.directory.mkdir()
        observation = self.run(f'cd {shlex.quote(str(self.directory))}')
        assert observation.exit_code == 0, f'cannot enter the directory of the case: {observation}'

    def check_usable(self) -> None:
        """Fails when the shell does not answer one command with exactly its output."""
        observation = self.run('echo still here')
        answer = (observation.content, observation.exit_code)
        assert answer == ('still here', 0), f'the case left the shell unusable: {observation}'

    def run(self, command: str, **options) -> CmdOutputObservation:
        """Runs a command that has to be answered with a `run` observation."""
        observation = self.act(command, **options)
        assert isinstance(observation, CmdOutputObservation), f'not a run observation: {observation!r}'
        return observation

    def act(self, command: str, *, timeout: float | None = None, **options) -> Observation:
        """Sends a `run` action; a timeout makes it blocking, as it does for their agent."""
        action = CmdRunAction(command=command, **options)
        if timeout is not None:
            action.set_hard_timeout(timeout)
        return self.runtime.run(action)

    def output(self, command: str, **options) -> str:
        """The output of a command that has to succeed."""
        observation = self.run(command, **options)
        assert observation.exit_code == 0, f'`{command}` failed: {observation}'
        return observation.content

    def keys(self, keys: str) -> CmdOutputObservation:
        """Presses a control key (`C-c`) in the running program."""
        return self.run(keys, is_input=True)

    def edit(self, path: Path | str, command: str, **fields) -> Observation:
        return self.runtime.edit(FileEditAction(path=str(path), command=command, **fields))

    def view(self, path: Path | str, view_range: list[int] | None = None) -> Observation:
        """What the stock agent sends for its editor's `view`."""
        return self.runtime.read(
            FileReadAction(path=str(path), impl_source=FileReadSource.OH_ACI, view_range=view_range)
        )

    def read(self, path: Path | str, **fields) -> Observation:
        return self.runtime.read(FileReadAction(path=str(path), **fields))

    def write(self, path: Path | str, content: str, **fields) -> Observation:
        return self.runtime.write(FileWriteAction(path=str(path), content=content, **fields))

    def close(self) -> None:
        self.runtime.close()


class Sandboxes:
    """The running servers, by kind; at most one of each."""

    def __init__(self, scratch: Path, binary: Path | None):
        self.scratch = scratch
        self.binary = binary
        if binary is not None:
            refuse_to_touch_the_real_home(scratch, binary)
        self.started = 0
        self.running: dict[Server, Sandbox] = {}
        # A server that did not come up costs two minutes of their client's patience, once.
        self.broken: dict[Server, str] = {}

    def get(self, server: Server) -> Sandbox:
        if server in self.broken:
            raise AssertionError(f'this kind of server did not start: {self.broken[server]}')
        if server not in self.running:
            self.started += 1
            try:
                self.running[server] = Sandbox(self.scratch, self.started, server, self.binary)
            except BaseException as error:
                self.broken[server] = repr(error)
                raise
        return self.running[server]

    def discard(self, server: Server) -> None:
        sandbox = self.running.pop(server, None)
        if sandbox:
            sandbox.close()

    def close(self) -> None:
        for server in list(self.running):
            self.discard(server)


def refuse_to_touch_the_real_home(scratch: Path, binary: Path) -> None:
    """Fails unless shells of this executor live in the home directory that it was given.

    The first thing the client does is to write into the profile and the git configuration of its
    sandbox. Those must not be the developer's own, so one shell is asked before it is let loose.
    """
    home = scratch / 'home'
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    command = [str(binary.resolve()), 'executor', str(port), '--working-dir', str(home), '--no-enable-browser']
    environment = os.environ | {'HOME': str(home)}
    words = scratch / 'first-words.log'
    with words.open('wb') as log:
        process = subprocess.Popen([*command, '--username', os.environ['USER']], env=environment, stdout=log, stderr=log)
    try:
        wait_until(lambda: answers(port) or process.poll() is not None, 'the executor did not answer')
        assert process.poll() is None, f'the executor ended at once: {words.read_text()}'
        answer = httpx.post(
            f'http://127.0.0.1:{port}/execute_action',
            json={'action': {'action': 'run', 'args': {'command': 'echo ~'}, 'timeout': 10}},
        ).json()
    finally:
        process.terminate()
        process.wait(timeout=10)
    assert answer.get('content') == str(home), (
        f'the executor was started with HOME={home} and gave its shell another: {answer}'
    )


def answers(port: int) -> bool:
    try:
        return httpx.get(f'http://127.0.0.1:{port}/alive').status_code == 200
    except httpx.HTTPError:
        return False


def stock_plugins(names: tuple[str, ...]) -> list[PluginRequirement]:
    from openhands.runtime.plugins import AgentSkillsRequirement, JupyterRequirement

    known = {'agent_skills': AgentSkillsRequirement, 'jupyter': JupyterRequirement}
    return [known[name]() for name in names]


def wait_until(holds: Callable[[], bool], otherwise: str, seconds: float = 10) -> None:
    """Waits for something that the server does on its own; fails after a while."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)


def set_or_clear(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def launcher(scratch: Path, binary: Path | None) -> Path:
    """The program that their client starts as "python", beside the tools that its shells find.

    Their client puts the directory of the interpreter in front of the PATH of the server.
    """
    directory = scratch / 'bin'
    if not directory.exists():
        directory.mkdir()
        write_program(directory / 'rg', SHOW_ARGUMENTS)
        for name in ('python', 'python3'):
            (directory / name).symlink_to(sys.executable)
        os.environ['PATH'] = f'{directory}{os.pathsep}{os.environ.get("PATH", "")}'
    if binary is None:
        return Path(sys.executable)
    program = directory / 'executor-launcher'
    if not program.exists():
        write_program(program, LAUNCHER.format(binary=shlex.quote(str(binary.resolve()))))
    return program


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
