"""Programs that a runtime runs beside its tools: what is asked for, and what comes of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from pydantic import BaseModel

from .._shell_words import exports
from .._sync.program import Program
from .._sync.sandbox import Sandbox
from ..errors import NotFoundError, PermissionDeniedError, UnsupportedError

_TERMINAL = (80, 24)
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
"""What a shell says of programs that it cannot run."""

Demuxed = Tuple[Optional[bytes], Optional[bytes]]


class TaskConfig(BaseModel):
    """A program to run, with the words of docker-py's `exec_run`."""

    cmd: Union[str, List[str]]
    """Its words. A text is cut into words as a shell would, and no shell runs it."""
    stdout: bool = True
    """Whether its output is wanted."""
    stderr: bool = True
    """Whether its errors are wanted."""
    stdin: bool = False
    """Whether it can be written to, by what `socket` returns."""
    tty: bool = False
    """Whether it has a terminal."""
    privileged: bool = False
    """Refused: there is nobody in a sandbox who has more rights than others."""
    user: str = ""
    """Who runs it: nobody, or the one user of the sandbox."""
    detach: bool = False
    """Whether it goes on by itself, and nobody waits for it."""
    stream: bool = False
    """Whether its output is returned piece by piece."""
    socket: bool = False
    """Whether it is returned as it runs, to read from and write to."""
    environment: Union[Dict[str, str], List[str], None] = None
    """Variables, as a dictionary or a list of `NAME=value`."""
    workdir: Optional[str] = None
    """Where it starts."""
    demux: bool = False
    """Whether output and errors are returned apart."""
    timeout: Optional[float] = None
    """Seconds after which it is ended; without an end by default."""

    def words(self) -> List[str]:
        """The program and its arguments."""
        return shlex.split(self.cmd) if isinstance(self.cmd, str) else list(self.cmd)


class ExecResult(NamedTuple):
    """What docker-py returns: the status, and what was written."""

    exit_code: Optional[int]
    output: Any


@dataclass(frozen=True)
class TaskResult:
    """What came of a program that was waited for."""

    words: List[str]
    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.exit_code == 0

    @property
    def output(self) -> bytes:
        """Output and errors, one after the other."""
        return self.stdout + self.stderr


def variables(given: Union[Dict[str, str], Sequence[str], None]) -> Dict[str, str]:
    """Variables, given either way; one without a value is empty."""
    if given is None:
        return {}
    if isinstance(given, dict):
        return {name: str(value) for name, value in given.items()}
    pairs = (each.partition("=") for each in given)
    return {name: value for name, _, value in pairs}


def checked(task: Any) -> TaskConfig:
    """A task, which may be CAMEL's own."""
    if isinstance(task, TaskConfig):
        return task
    return TaskConfig.model_validate(task, from_attributes=True)


class Runner:
    """Runs tasks in a sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._users: Optional[List[str]] = None

    def run(self, task: TaskConfig) -> ExecResult:
        """Runs a task as docker-py would, and returns what that returns."""
        if task.detach:
            self.start(task)
            return ExecResult(None, b"")
        try:
            program = self._program(task)
        except (NotFoundError, PermissionDeniedError) as error:
            return self._unrunnable(task, error)
        if task.socket:
            return ExecResult(None, program)
        if task.stream:
            return ExecResult(None, _pieces(program, task))
        return _collected(program, task)

    def finish(self, task: TaskConfig) -> TaskResult:
        """Runs a task to its end, and returns all that there is to know of it."""
        try:
            program = self._program(task)
        except (NotFoundError, PermissionDeniedError) as error:
            said = str(error).encode()
            return TaskResult(task.words(), _status_of(error), b"", said)
        done = program.communicate(timeout=task.timeout)
        return TaskResult(task.words(), done.exit_code, done.stdout, done.stderr)

    def start(self, task: TaskConfig) -> None:
        """Starts a task that nobody waits for, in a shell of its own, which ends with it."""
        self._check(task)
        line = "exec " + shlex.join(task.words())
        given = variables(task.environment)
        if given:
            line = f"{exports(given)}; {line}"
        if task.workdir:
            line = f"cd {shlex.quote(task.workdir)} && {{ {line}; }}"
        self._sandbox.start(line)

    def _program(self, task: TaskConfig) -> Program:
        self._check(task)
        return self._sandbox.program(
            task.words(),
            cwd=task.workdir,
            env=variables(task.environment),
            stdin=task.stdin and task.socket,
            terminal=_TERMINAL if task.tty else None,
        )

    def _check(self, task: TaskConfig) -> None:
        if task.privileged:
            raise UnsupportedError(
                f"the task `{task.cmd}` asks for more rights than the sandbox has",
                code="unsupported",
                hint="leave `privileged` out; capabilities are an option of the runtime",
            )
        if task.user and task.user not in self._known_users():
            raise UnsupportedError(
                f"the task `{task.cmd}` cannot run as `{task.user}`: the sandbox has one user, "
                f"`{self._known_users()[0]}`",
                code="unsupported",
                hint="leave `user` out; who it is is an option of the runtime",
            )

    def _known_users(self) -> List[str]:
        """The one user of the sandbox, in all the ways in which that can be said."""
        if self._users is None:
            line = "id -un 2>/dev/null || id -u; id -u; echo $(id -u):$(id -g)"
            told = self._sandbox.program(line).communicate()
            self._users = told.stdout.decode(errors="replace").split()
        return self._users

    def _unrunnable(self, task: TaskConfig, error: Exception) -> ExecResult:
        """A program that is not there is a program that failed, as it is for a shell."""
        said = str(error).encode()
        output: Any = (None, said) if task.demux else said
        return ExecResult(_status_of(error), output)


def _status_of(error: Exception) -> int:
    return _NOT_FOUND if isinstance(error, NotFoundError) else _NOT_EXECUTABLE


def _wanted(task: TaskConfig, stream: str) -> bool:
    return task.stdout if stream == "stdout" else task.stderr


def _collected(program: Program, task: TaskConfig) -> ExecResult:
    """All that it wrote: apart, or together in the order in which it came."""
    together: List[bytes] = []
    done = program.communicate(
        timeout=task.timeout,
        on_stdout=together.append if task.stdout and not task.demux else None,
        on_stderr=together.append if task.stderr and not task.demux else None,
    )
    if not task.demux:
        return ExecResult(done.exit_code, b"".join(together))
    apart = (
        (done.stdout or None) if task.stdout else None,
        (done.stderr or None) if task.stderr else None,
    )
    return ExecResult(done.exit_code, apart)


def _pieces(program: Program, task: TaskConfig) -> Iterator[Union[bytes, Demuxed]]:
    """What it writes as it comes. Whoever stops reading ends it."""
    with program:
        for piece in program:
            if not _wanted(task, piece.stream):
                continue
            if not task.demux:
                yield piece.content
            elif piece.stream == "stdout":
                yield piece.content, None
            else:
                yield None, piece.content
