# Made by scripts/unasync.py from ../_async/shell.py; change that one.
"""A shell of a sandbox: directory, variables and functions stay from one command to the next."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from functools import partial
from typing import Any, Dict, Mapping, Optional

from .. import _calls, _checks
from .._checks import Path
from .._shell_words import in_shell, one_command
from .._wait import cancelled, in_the_end
from ..result import Result, result_of
from .client import Client
from .command import ENDLESS, Command, OnOutput, busy, is_refused
from .user import require_user

INTERRUPT = "C-c"


class Shell:
    """One shell. Commands of one run one after the other, those of several beside each other."""

    def __init__(self, client: Client, session: str, name: Optional[str] = None) -> None:
        self._client = client
        self._session = session
        self.name = _checks.optional_text(name, "name")
        """Its name; `None` is the one that is meant when none is named."""

    def __repr__(self) -> str:
        return f"<Shell {self.name or 'default'} of {self._session}>"

    def run(
        self,
        command: str,
        *,
        timeout: Optional[float] = None,
        cwd: Optional[Path] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        on_output: Optional[OnOutput] = None,
        separate_stderr: bool = False,
    ) -> Result:
        """Runs a command, or a script of several lines, and returns what came of it.

        After `timeout` seconds (the sandbox's own when left out) the result says `timed_out`, and
        the command goes on in its shell. With `cwd` or `env` it runs in a new shell of its own,
        which starts there and with these variables, and ends with it; a timeout ends both.
        `on_output` is called with each piece of text as it comes; without a timeout such a command
        is waited for until its end. With `separate_stderr`, errors are in the result's `stderr` and
        not in its output. `user` must be the one that the sandbox runs as; any other is refused.

        Whoever is cancelled while this waits stops the command.
        """
        timeout = _checks.timeout(timeout)
        text = one_command(_checks.command(command))
        _checks.listener(on_output, "on_output")
        require_user(self._client, self._session, user)
        errors = f"/tmp/.zareba-stderr-{uuid.uuid4().hex}" if separate_stderr else None
        if errors is not None:
            text = f"{in_shell(text)} 2>{errors}"
        begun = time.monotonic()
        if on_output is not None:
            started = self._start(text, cwd, env, timeout or ENDLESS)
            try:
                result = started.wait(on_output=on_output)
            except cancelled:
                stop = partial(self._client.stop, self._session, started.action_id)
                in_the_end(stop)
                raise
        else:
            action = self._action(text, cwd, env, timeout)
            observation = self._client.perform(self._session, action)
            result = result_of(command, observation, time.monotonic() - begun)
        if is_refused(result):
            raise busy(result)
        result = replace(result, command=command)
        return result if errors is None else self._with_errors(result, errors)

    def start(
        self,
        command: str,
        *,
        cwd: Optional[Path] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        user: Optional[str] = None,
    ) -> Command:
        """Starts a command and returns at once. Until it ends, this shell runs no other.

        With `cwd` or `env` it runs in a new shell of its own. After `timeout` seconds it is
        answered as `timed_out`, and goes on or is ended, as with :meth:`run`; so is `user`.
        """
        text = one_command(_checks.command(command))
        patience = _checks.timeout(timeout) or ENDLESS
        require_user(self._client, self._session, user)
        return self._start(text, cwd, env, patience)

    def _start(
        self,
        text: str,
        cwd: Optional[Path],
        env: Optional[Mapping[str, str]],
        timeout: float,
        alone: bool = False,
    ) -> Command:
        started = Command(self._client, self._session, self.name, text)
        started._begin(self._action(text, cwd, env, timeout, alone))
        return started

    def _action(
        self,
        text: str,
        cwd: Optional[Path],
        env: Optional[Mapping[str, str]],
        timeout: Optional[float],
        alone: bool = False,
    ) -> Dict[str, Any]:
        return _calls.run(
            text,
            timeout=timeout,
            shell=self.name,
            cwd=_checks.directory(cwd),
            env=_checks.texts(env),
            alone=alone,
        )

    def _with_errors(self, result: Result, path: str) -> Result:
        """The result with what the command wrote as errors."""
        call = _calls.call("read_file", session=self._session).asking(path=path)
        content = (self._client.send(call.within(_calls.LONG))).content
        if not result.timed_out:
            gone = _calls.call("remove_file", session=self._session).asking(path=path)
            self._client.send(gone.repeated())
        return replace(result, stderr=content.decode(errors="replace"))

    def more(self, timeout: float = 1.0) -> Result:
        """Waits for a command that was left running, and returns what it wrote meanwhile."""
        return self._press("", timeout, typed=False)

    def send(self, text: str, timeout: float = 1.0) -> Result:
        """Types a line at the command that runs, and returns what came of it in that time."""
        _checks.text(text, "text")
        return self._press(text, timeout, typed=True)

    def interrupt(self, timeout: float = 2.0) -> Result:
        """Presses Ctrl-C at the command that runs."""
        return self._press(INTERRUPT, timeout, typed=False)

    def _press(self, text: str, timeout: float, typed: bool) -> Result:
        started = time.monotonic()
        patience = _checks.timeout(timeout)
        action = _calls.run(text, timeout=patience, shell=self.name, typed=typed)
        observation = self._client.perform(self._session, action)
        return result_of(text, observation, time.monotonic() - started)

    def _run_whole(self, command: str) -> Result:
        """Runs a command of ours, whose output is not cut."""
        action = _calls.run(command, shell=self.name, whole=True)
        observation = self._client.perform(self._session, action)
        result = result_of(command, observation, 0.0)
        if is_refused(result):
            raise busy(result)
        return result
