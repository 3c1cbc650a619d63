"""Text for shells: quoting, and scripts of several lines."""

from __future__ import annotations

import re
import shlex
from typing import Dict, Mapping

from .errors import InvalidError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ESCAPE = re.compile(r"\\([\\ntr])")
_PLAIN = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}


def checked_name(name: str) -> str:
    """The name of a variable, or an error: anything else would be run as a command."""
    if not isinstance(name, str) or not _NAME.match(name):
        raise InvalidError(f"`{name}` cannot be the name of a variable", code="invalid")
    return name


def exports(variables: Mapping[str, str]) -> str:
    """A command that sets variables for a shell and for what it starts."""
    pairs = (f"{checked_name(name)}={shlex.quote(value)}" for name, value in variables.items())
    return "export " + " ".join(pairs)


def one_command(text: str) -> str:
    """A script of several lines as one command, which is what a shell takes at a time."""
    return "{\n" + text + "\n}" if "\n" in text.strip() else text


def in_shell(text: str) -> str:
    """A command behind another one: whatever is in it, it is a command of its own."""
    return f"eval {shlex.quote(text)}"


def show_variables() -> str:
    """A command that shows every variable on a line of its own.

    What a terminal would interpret is escaped, and the end of each line is marked, as trailing
    spaces are not shown. It stays readable on purpose: secrets are masked by what they look like.
    """
    escapes = r"s/\\/\\\\/g; s/\n/\\n/g; s/\t/\\t/g; s/\r/\\r/g; s/$/;/"
    return f"env -0 | sed -z '{escapes}' | tr '\\0' '\\n'"


def read_variables(shown: str) -> Dict[str, str]:
    """The variables that such a command has shown."""
    found = {}
    for line in shown.splitlines():
        name, is_one, value = line.partition("=")
        if is_one:
            value = value[:-1] if value.endswith(";") else value
            found[name] = _ESCAPE.sub(lambda match: _PLAIN[match.group(1)], value)
    return found
