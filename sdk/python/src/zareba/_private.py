"""A server of our own, for a program that names none: it ends with this process, however that ends.

Between us and the server stands a guardian (:mod:`zareba._guardian`), because a process that is
killed can clean up nothing itself.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Dict, FrozenSet, List, Mapping, Optional, Tuple

from . import _guardian
from ._place import UNIX, Place
from .errors import DisconnectedError, UnsupportedError

_PATH_MAX = 107 - len("/native/") - 64 - len("/s")
"""Bytes of the directory's path: below it, named by a sandbox, is a socket, whose path the system
limits."""
_END_TIMEOUT = 60.0
_SHOWN_MAX = 2000

_lock = threading.Lock()
_servers: Dict[Tuple[FrozenSet[Tuple[str, str]], bool], PrivateServer] = {}
"""By their settings beside those of this process, and by whether they read a project."""


class PrivateServer:
    """A server that nobody else knows of, with settings of its own beside those of this process.

    It runs in the current directory, whose `zareba.toml` it reads, or in its own.
    """

    def __init__(
        self,
        program: str,
        settings: Optional[Mapping[str, str]] = None,
        in_project: bool = True,
    ) -> None:
        self.directory = _directory()
        held, self._lifeline = os.pipe()
        ready, told = os.pipe()
        arguments = (program, self.directory, held, told)
        guardian = os.path.abspath(_guardian.__file__)
        try:
            self._guardian = subprocess.Popen(
                # Isolated: nothing in the current directory or the environment may be imported.
                [sys.executable, "-I", "-S", guardian, *map(str, arguments)],
                cwd=None if in_project else self.directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **(settings or {})},
                pass_fds=(held, told),
                start_new_session=True,
            )
        finally:
            os.close(held)
            os.close(told)
        with os.fdopen(ready, "rb") as answer:
            if answer.read(1) != b"r":
                raise self._start_failure(program)
        key = Path(self.directory, "admin.key").read_text().strip()
        self.place = Place(f"{UNIX}{self.directory}/socket", key)

    def is_alive(self) -> bool:
        """Whether it may still answer."""
        return self._guardian.poll() is None and Path(self.directory, "socket").exists()

    def end(self) -> None:
        """Closes its sandboxes, ends it and removes what it kept. Twice is no error."""
        self.let_go()
        try:
            self._guardian.wait(_END_TIMEOUT)
        except subprocess.TimeoutExpired:
            # It goes on without us, and still has only one thing to do.
            return

    def let_go(self) -> None:
        """Closes our end of the pipe; the guardian does the rest."""
        lifeline, self._lifeline = self._lifeline, -1
        if lifeline >= 0:
            os.close(lifeline)

    def _start_failure(self, program: str) -> DisconnectedError:
        try:
            said = Path(self.directory, "server.log").read_text(errors="replace")
        except OSError:
            said = ""
        self.end()
        return DisconnectedError(
            f"`{program} serve` did not start: {said.strip()[-_SHOWN_MAX:]}",
            code="disconnected",
            hint="`zareba doctor` tells what this machine lacks",
        )


def server(
    environment: Mapping[str, str],
    settings: Optional[Mapping[str, str]] = None,
    in_project: bool = True,
) -> Place:
    """The private server of this process with some settings, started when there is none."""
    kind = (frozenset((settings or {}).items()), in_project)
    with _lock:
        there = _servers.get(kind)
        if there is None or not there.is_alive():
            if there is not None:
                there.end()
            there = _servers[kind] = PrivateServer(program(environment), settings, in_project)
        return there.place


def program(environment: Mapping[str, str]) -> str:
    """The program to start: named, brought along, or installed."""
    candidates: List[str] = []
    if environment.get("ZAREBA_BIN"):
        candidates.append(environment["ZAREBA_BIN"])
    else:
        candidates.append(str(Path(__file__).parent / "_bin" / "zareba"))
        installed = shutil.which("zareba", path=environment.get("PATH"))
        candidates += [installed] if installed else []
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return os.path.abspath(candidate)
    raise UnsupportedError(
        f"there is no server, and no program to start one: looked at {', '.join(candidates)}",
        code="unsupported",
        hint="build the program as the README says (`make build`) and put it on PATH or name it in "
        "ZAREBA_BIN; or name a server in ZAREBA_URL",
    )


def _directory() -> str:
    """A directory of ours alone, whose name is short enough for a socket in it."""
    made = tempfile.mkdtemp(prefix="zareba-")
    if len(os.fsencode(made)) <= _PATH_MAX:
        return made
    os.rmdir(made)
    return tempfile.mkdtemp(prefix="zareba-", dir="/tmp")


def _end() -> None:
    for each in _servers.values():
        each.let_go()
    for each in _servers.values():
        each.end()


def _forget() -> None:
    """In a child that was forked: the servers are its parent's, and must not wait for both."""
    global _lock
    _lock = threading.Lock()
    for each in _servers.values():
        each.let_go()
    _servers.clear()


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)
