# Made by scripts/unasync.py from ../_async/shell.py; change that one.
"""A shell of a sandbox: directory, variables and functions stay from one command to the next."""

from __future__ import annotations

import time
from typing import Mapping, Optional

from .. import _calls
from .._shell_words import one_command
from ..result import Result, result_of
from .client import Client
from .command import INTERRUPT, Command, OnOutput, busy, is_refused


class Shell:
    """One shell. Commands of one run one after the other, those of several beside each other."""

    def __init__(self, client: Client, session: str, name: Optional[str] = None) -> None:
        self._client = client
        self._session = session
        self.name = name
        """Its name; `None` is the one that is meant when none is named."""

    def __repr__(self) -> str:
        return f"<Shell {self.name or 'default'} of {self._session}>"

    def run(
        self,
        command: str,
        *,
        timeout: Optional[float] = None,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        on_output: Optional[OnOutput] = None,
    ) -> Result:
        """Runs a command, or a script of several lines, and returns what came of it.

        After `timeout` seconds (the sandbox's own when left out) the result says `timed_out`, and
        the command goes on in its shell. With `cwd` or `env` it runs in a new shell of its own,
        which starts there and with these variables, and ends with it. `on_output` is called with
        what is new about twice a second; without a timeout such a command is waited for until its
        end, and `cwd` and `env` cannot be used with it.
        """
        if on_output is not None:
            if cwd is not None or env:
                raise ValueError("`on_output` cannot be used together with `cwd` or `env`")
            started = self.start(command)
            return started.wait(timeout, on_output)
        begun = time.monotonic()
        text = one_command(command)
        action = _calls.run(text, timeout=timeout, shell=self.name, cwd=cwd, env=env)
        observation = self._client.perform(self._session, action)
        result = result_of(command, observation, [], time.monotonic() - begun)
        if is_refused(result):
            raise busy(result)
        return result

    def start(self, command: str) -> Command:
        """Starts a command and returns at once. Until it ends, this shell runs no other."""
        text = one_command(command)
        started = Command(self._client, self._session, self.name, text)
        started._begin()
        return started

    def more(self, timeout: float = 1.0) -> Result:
        """Waits for a command that was left running, and returns what it wrote meanwhile."""
        return self._press("", timeout, typed=False)

    def send(self, text: str, timeout: float = 1.0) -> Result:
        """Types a line at the command that runs, and returns what came of it in that time."""
        return self._press(text, timeout, typed=True)

    def interrupt(self, timeout: float = 2.0) -> Result:
        """Presses Ctrl-C at the command that runs."""
        return self._press(INTERRUPT, timeout, typed=False)

    def _press(self, text: str, timeout: float, typed: bool) -> Result:
        started = time.monotonic()
        action = _calls.run(text, timeout=timeout, shell=self.name, typed=typed)
        observation = self._client.perform(self._session, action)
        return result_of(text, observation, [], time.monotonic() - started)

    def _run_whole(self, command: str) -> Result:
        """Runs a command of ours, whose output is not cut."""
        action = _calls.run(command, shell=self.name, whole=True)
        observation = self._client.perform(self._session, action)
        result = result_of(command, observation, [], 0.0)
        if is_refused(result):
            raise busy(result)
        return result
