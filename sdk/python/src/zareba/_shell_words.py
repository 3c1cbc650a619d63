"""Text for shells: quoting, and scripts of several lines."""

from __future__ import annotations

import re
import shlex
from typing import Iterable, Mapping

from .errors import InvalidError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def checked_name(name: str) -> str:
    """The name of a variable, or an error: anything else would be run as a command."""
    if not _NAME.match(name):
        raise InvalidError(f"`{name}` cannot be the name of a variable", code="invalid")
    return name


def exports(variables: Mapping[str, str]) -> str:
    """A command that sets variables for a shell and for what it starts."""
    pairs = (f"{checked_name(name)}={shlex.quote(value)}" for name, value in variables.items())
    return "export " + " ".join(pairs)


def unsets(names: Iterable[str]) -> str:
    """A command that removes variables."""
    return "unset " + " ".join(checked_name(name) for name in names)


def one_command(text: str) -> str:
    """A script of several lines as one command, which is what a shell takes at a time."""
    return "{\n" + text + "\n}" if "\n" in text.strip() else text
