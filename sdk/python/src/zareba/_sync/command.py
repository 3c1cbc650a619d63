# Made by scripts/unasync.py from ../_async/command.py; change that one.
"""A command that runs in the background, and can be waited for, watched and interrupted."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List, Optional

import httpx

from .. import _calls, models
from .._wait import Lock, tell
from ..errors import BusyError
from ..result import Result, result_of
from .client import Client

WATCHED = 0.5
"""Seconds after which whoever watches is told what is new."""
_UNWATCHED_MAX = 2.0
"""Seconds that one look at a command takes at most, which is how long an interruption may wait."""
_INTERRUPTED = 2.0
"""Seconds that a command has to end after an interruption before it is looked at again."""
_RUNNING = -1
"""The exit code of a command that has not ended."""
INTERRUPT = "C-c"

OnOutput = Callable[[str], Any]


class Command:
    """A command that was started. Several threads or tasks may use it at once.

    It goes on whether or not anybody waits for it. Each look at it is an action in the sandbox's
    log, like any other.
    """

    def __init__(self, client: Client, session: str, shell: Optional[str], text: str) -> None:
        self._client = client
        self._session = session
        self._shell = shell
        self._lock = Lock()
        self._asked = 0
        self._pieces: List[str] = []
        self._last: Optional[Result] = None
        self._is_done = False
        self._interrupts = 0
        self._started = time.monotonic()
        self.text = text
        """The command."""

    def __repr__(self) -> str:
        state = "done" if self._is_done else "running"
        return f"<Command {self.text!r} {state}>"

    @property
    def done(self) -> bool:
        """Whether its end is known."""
        return self._is_done

    @property
    def shell(self) -> Optional[str]:
        """The name of the shell that it runs in."""
        return self._shell

    def wait(
        self, timeout: Optional[float] = None, on_output: Optional[OnOutput] = None
    ) -> Result:
        """Waits for its end. When the time is up, the result says so and the command goes on.

        `on_output` is called with what it writes, about twice a second.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        patience, told = WATCHED, 0
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            result = self._step(patience if left is None else min(patience, left))
            while on_output is not None and told < len(self._pieces):
                told += 1
                tell(on_output, self._pieces[told - 1])
            if self._is_done or left == 0.0:
                return result
            patience = WATCHED if on_output else min(patience * 2, _UNWATCHED_MAX)

    def output(self) -> Iterator[str]:
        """What it writes, as it comes, until its end: what was said already comes first."""
        seen = 0
        while True:
            while seen < len(self._pieces):
                seen += 1
                yield self._pieces[seen - 1]
            if self._is_done:
                return
            self._step(WATCHED)

    def interrupt(self) -> None:
        """Presses Ctrl-C. A command that takes no notice goes on."""
        if self._is_done:
            return
        self._interrupts += 1
        # Whoever is waiting presses the key; if nobody is, we do.
        with self._lock:
            if self._interrupts and not self._is_done:
                self._look(_INTERRUPTED)

    def _begin(self) -> None:
        """Hands the command over, and returns before it has ended."""
        action = _calls.run(self.text, timeout=WATCHED, shell=self._shell)
        call = _calls.run_action(self._session, action, wait=False)
        accepted = self._client.ask(call, models.ActionAccepted)
        self._asked = accepted.action

    def _step(self, patience: float) -> Result:
        """Looks at the command for some time, or until its end."""
        with self._lock:
            if self._last is None or not self._is_done:
                return self._look(patience)
            return self._last

    def _look(self, patience: float) -> Result:
        """Takes the next observation of the command. Called by whoever holds the lock."""
        if self._asked:
            call = _calls.observation(self._session, self._asked, patience)
            answer = self._client.send(call)
            if answer.status == httpx.codes.ACCEPTED:
                return self._remember(_still_waiting(self._asked))
            self._asked = 0
            return self._remember(self._client.observation(self._session, answer))
        text = ""
        if self._interrupts:
            self._interrupts, text, patience = 0, INTERRUPT, _INTERRUPTED
        # A hard timeout of zero would mean none.
        action = _calls.run(text, timeout=max(patience, 0.05), shell=self._shell)
        return self._remember(self._client.perform(self._session, action))

    def _remember(self, observation: Dict[str, Any]) -> Result:
        took = time.monotonic() - self._started
        result = result_of(self.text, observation, self._pieces, took)
        is_first = self._last is None
        if is_first and is_refused(result):
            raise busy(result)
        if observation.get("content"):
            self._pieces.append(str(observation["content"]))
        self._is_done = result.exit_code != _RUNNING
        self._last = result
        return result


def _still_waiting(action: int) -> Dict[str, Any]:
    """Stands for the observation of a command that waits behind another one in its shell."""
    limit = {"kind": "timed_out", "message": "the command has not been started yet"}
    metadata = {"exit_code": _RUNNING, "limits": [limit]}
    return {
        "observation": "run",
        "content": "",
        "cause": action,
        "extras": {"metadata": metadata},
    }


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
