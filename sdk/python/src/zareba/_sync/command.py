# Made by scripts/unasync.py from ../_async/command.py; change that one.
"""A command that runs in the background, and can be waited for, watched and ended."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, Optional

import httpx

from .. import _calls, _checks, models
from .._wait import cancelled, in_the_end, tell
from ..errors import BusyError
from ..result import Result, result_of
from .client import Client
from .output import Output

ENDLESS = 30 * 24 * 3600.0
"""Seconds that a command is waited for which nobody limits: the most that there is."""
_WAIT = 60.0
"""Seconds that one request waits at most."""
_RUNNING = -1
"""The exit code of a command that has not ended."""

OnOutput = Callable[[str], Any]


class Command:
    """A command that was started. Several threads or tasks may use it at once.

    It goes on whether or not anybody waits for it. However often it is looked at, it is one action
    in the sandbox's log.
    """

    def __init__(self, client: Client, session: str, shell: Optional[str], text: str) -> None:
        self._client = client
        self._session = session
        self._shell = shell
        self._action = 0
        self._result: Optional[Result] = None
        self._started = time.monotonic()
        self.text = text
        """The command."""

    def __repr__(self) -> str:
        state = "done" if self.done else "running"
        return f"<Command {self.text!r} {state}>"

    @property
    def done(self) -> bool:
        """Whether its end is known."""
        return self._result is not None

    @property
    def shell(self) -> Optional[str]:
        """The name of the shell that it runs in, if that has one."""
        return self._shell

    @property
    def action_id(self) -> int:
        """The number of its action in the sandbox's log."""
        return self._action

    def wait(
        self, timeout: Optional[float] = None, on_output: Optional[OnOutput] = None
    ) -> Result:
        """Waits for its end. When the time is up, the result says so and the command goes on.

        `on_output` is called with each piece of text that it writes, from the beginning, as it
        comes. Joined, the pieces are exactly what it wrote.
        """
        timeout = _checks.wait(timeout)
        _checks.listener(on_output, "on_output")
        deadline = None if timeout is None else time.monotonic() + timeout
        known = ""
        if on_output is not None:
            with Output(self._client, self._session, self._action, timeout) as output:
                for piece in output:
                    known += piece
                    tell(on_output, piece)
            if output.is_whole:
                # Its end is about to be recorded.
                deadline = None
        result = self._ended(deadline)
        if result is None:
            return self._unended(known, is_known=on_output is not None)
        if on_output is not None and not output.is_whole and result.output and not known:
            # This runtime does not show output before the end.
            tell(on_output, result.output)
        return result

    def output(self) -> Iterator[str]:
        """What it writes, as it comes, until its end: what was written already comes first.

        Joined, the pieces are exactly what it wrote.
        """
        is_empty = True
        with Output(self._client, self._session, self._action) as output:
            for piece in output:
                is_empty = False
                yield piece
        if is_empty and not output.is_whole:
            result = self.wait()
            if result.output:
                yield result.output

    def interrupt(self) -> None:
        """Presses Ctrl-C. A command that takes no notice goes on."""
        if not self.done:
            self._client.send(_calls.stop(self._session, self._action, "interrupt"))

    def kill(self) -> None:
        """Kills it with everything that it has started in its shell. Twice is no error."""
        if not self.done:
            self._client.send(_calls.stop(self._session, self._action, "kill"))

    def _begin(self, action: Dict[str, Any]) -> None:
        """Hands the command over, and returns before it has ended.

        A caller that is cancelled meanwhile has no handle; the command, which may run, is stopped.
        """
        call = _calls.run_action(self._session, action, wait=False)
        try:
            accepted = self._client.ask(call, models.ActionAccepted)
        except cancelled:
            in_the_end(lambda: self._client._abandon(self._session, call))
            raise
        self._action = accepted.action

    def _ended(self, deadline: Optional[float]) -> Optional[Result]:
        """What came of it, if that is known in time."""
        while self._result is None:
            left = _WAIT if deadline is None else max(deadline - time.monotonic(), 0.0)
            call = _calls.observation(self._session, self._action, min(left, _WAIT))
            answer = self._client.send(call)
            if answer.status != httpx.codes.ACCEPTED:
                observation = self._client.observation(self._session, answer)
                return self._remember(observation)
            if left == 0.0:
                return None
        return self._result

    def _unended(self, known: str, is_known: bool) -> Result:
        """What there is of it while it runs."""
        if not is_known:
            with Output(self._client, self._session, self._action, 0.0) as output:
                for piece in output:
                    known += piece
        limit = {"kind": "timed_out", "message": "the wait is over; the command goes on"}
        observation = {
            "observation": "run",
            "content": known.rstrip("\n"),
            "cause": self._action,
            "extras": {"metadata": {"exit_code": _RUNNING, "limits": [limit]}},
        }
        return result_of(self.text, observation, time.monotonic() - self._started)

    def _remember(self, observation: Dict[str, Any]) -> Result:
        took = time.monotonic() - self._started
        result = result_of(self.text, observation, took)
        if is_refused(result):
            raise busy(result)
        self._result = result
        return result


def is_refused(result: Result) -> bool:
    """Whether the shell did not run the command because another one runs in it."""
    return result.exit_code == _RUNNING and not result.timed_out


def busy(result: Result) -> BusyError:
    """The error that this is for whoever asked."""
    return BusyError(
        f"the command `{result.command}` was not run: another one still runs in this shell",
        code="conflict",
        hint="wait for it or interrupt it, or use another shell",
    )
