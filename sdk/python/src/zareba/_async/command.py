"""A command that runs in the background, and can be waited for, watched and ended."""

from __future__ import annotations

import time
from typing import Any, AsyncIterator, Callable, Dict, Optional

import httpx

from .. import _calls, _checks, models
from .._wait import async_cancelled, async_in_the_end, async_tell
from ..errors import BusyError
from ..result import Result, result_of
from .client import AsyncClient
from .output import AsyncOutput

ENDLESS = 30 * 24 * 3600.0
"""Seconds that a command is waited for which nobody limits: the most that there is."""
_WAIT = 60.0
"""Seconds that one request waits at most."""
_RUNNING = -1
"""The exit code of a command that has not ended."""

OnOutput = Callable[[str], Any]


class AsyncCommand:
    """A command that was started. Several threads or tasks may use it at once.

    It goes on whether or not anybody waits for it. However often it is looked at, it is one action
    in the sandbox's log.
    """

    def __init__(self, client: AsyncClient, session: str, shell: Optional[str], text: str) -> None:
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
        return f"<AsyncCommand {self.text!r} {state}>"

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

    async def wait(
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
            async with AsyncOutput(self._client, self._session, self._action, timeout) as output:
                async for piece in output:
                    known += piece
                    await async_tell(on_output, piece)
            if output.is_whole:
                # Its end is about to be recorded.
                deadline = None
        result = await self._ended(deadline)
        if result is None:
            return await self._unended(known, is_known=on_output is not None)
        if on_output is not None and not output.is_whole and result.output and not known:
            # This runtime does not show output before the end.
            await async_tell(on_output, result.output)
        return result

    async def output(self) -> AsyncIterator[str]:
        """What it writes, as it comes, until its end: what was written already comes first.

        Joined, the pieces are exactly what it wrote.
        """
        is_empty = True
        async with AsyncOutput(self._client, self._session, self._action) as output:
            async for piece in output:
                is_empty = False
                yield piece
        if is_empty and not output.is_whole:
            result = await self.wait()
            if result.output:
                yield result.output

    async def interrupt(self) -> None:
        """Presses Ctrl-C. A command that takes no notice goes on."""
        if not self.done:
            await self._client.send(_calls.stop(self._session, self._action, "interrupt"))

    async def kill(self) -> None:
        """Kills it with everything that it has started in its shell. Twice is no error."""
        if not self.done:
            await self._client.send(_calls.stop(self._session, self._action, "kill"))

    async def _begin(self, action: Dict[str, Any]) -> None:
        """Hands the command over, and returns before it has ended.

        A caller that is cancelled meanwhile has no handle; the command, which may run, is stopped.
        """
        call = _calls.run_action(self._session, action, wait=False)
        try:
            accepted = await self._client.ask(call, models.ActionAccepted)
        except async_cancelled:
            await async_in_the_end(lambda: self._client._abandon(self._session, call))
            raise
        self._action = accepted.action

    async def _ended(self, deadline: Optional[float]) -> Optional[Result]:
        """What came of it, if that is known in time."""
        while self._result is None:
            left = _WAIT if deadline is None else max(deadline - time.monotonic(), 0.0)
            call = _calls.observation(self._session, self._action, min(left, _WAIT))
            answer = await self._client.send(call)
            if answer.status != httpx.codes.ACCEPTED:
                observation = await self._client.observation(self._session, answer)
                return self._remember(observation)
            if left == 0.0:
                return None
        return self._result

    async def _unended(self, known: str, is_known: bool) -> Result:
        """What there is of it while it runs."""
        if not is_known:
            async with AsyncOutput(self._client, self._session, self._action, 0.0) as output:
                async for piece in output:
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
