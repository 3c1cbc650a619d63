# Made by scripts/unasync.py from ../_async/env.py; change that one.
"""The variables of a sandbox's shell."""

from __future__ import annotations

from typing import Dict, Mapping, Optional

from .._shell_words import checked_name, exports, read_variables, show_variables, unsets
from .shell import Shell


class Env:
    """The variables of the shell that is meant when none is named, and of what it starts.

    What is set here is in the sandbox's log; values that must not be belong into the `secrets` of
    :meth:`zareba.Sandbox.create`.
    """

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def all(self) -> Dict[str, str]:
        """Every variable that programs get. Secrets are masked here as they are everywhere."""
        result = self._shell._run_whole(show_variables())
        return read_variables(result.check().output)

    def get(self, name: str, default: Optional[str] = None) -> Optional[str]:
        """The value of a variable."""
        return (self.all()).get(checked_name(name), default)

    def set(self, variables: Optional[Mapping[str, str]] = None, /, **more: str) -> None:
        """Sets variables."""
        wanted = {**(variables or {}), **more}
        if wanted:
            (self._shell.run(exports(wanted))).check()

    def unset(self, *names: str) -> None:
        """Removes variables."""
        if names:
            (self._shell.run(unsets(names))).check()
