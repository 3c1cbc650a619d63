"""Trying again: whether that is harmless, and how long to wait before."""

from __future__ import annotations

import random
from typing import Optional

from . import errors
from ._calls import Call, Repeat

TRIES_MAX = 5
"""How often a request is sent at most."""
STREAM_TRIES_MAX = 10
"""How often a stream is taken up again without anything new in between."""
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
_FINAL = {"conflict", "exists", "quota_exceeded", "directory_not_empty", "disk_quota_exceeded"}
"""What will not change by itself."""


class BackOff:
    """Waits that double, each shortened at random so that many clients do not come back at once."""

    def __init__(self, first: float = _FIRST_WAIT, longest: float = _LONGEST_WAIT) -> None:
        self._next = first
        self._longest = longest

    def step(self) -> float:
        """How long to wait now."""
        wait = self._next * random.uniform(0.5, 1.0)
        self._next = min(self._next * 2, self._longest)
        return wait


class Tries:
    """The tries of one request."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._back_off = BackOff()
        self.made = 1
        self.in_doubt = False
        """Whether an earlier try may have arrived although its answer did not."""

    def wait_after(self, error: errors.ZarebaError) -> Optional[float]:
        """How long to wait before the next try; `None` when there is none."""
        if self.made >= TRIES_MAX or not self._may_repeat(error):
            return None
        self.made += 1
        self.in_doubt = self.in_doubt or error.may_have_happened
        return self._back_off.step()

    def _may_repeat(self, error: errors.ZarebaError) -> bool:
        harmless = self._call.repeat is Repeat.ALWAYS or not error.may_have_happened
        return harmless and is_passing(error)


class StreamTries:
    """The tries of a stream that goes on where it broke off."""

    def __init__(self) -> None:
        self.progress()

    def progress(self) -> None:
        """Something new has come."""
        self._left = STREAM_TRIES_MAX
        self._back_off = BackOff()

    def wait_after(self, error: errors.ZarebaError) -> Optional[float]:
        """How long to wait before the next try; `None` when there is none."""
        if self._left == 0 or not is_passing(error):
            return None
        self._left -= 1
        return self._back_off.step()


def is_passing(error: errors.ZarebaError) -> bool:
    """Whether the same request may succeed later."""
    if error.code in _FINAL:
        return False
    return isinstance(error, (errors.DisconnectedError, errors.BusyError))
