"""What callers hand over is looked at here, so that a mistake is an error of ours that says so."""

from __future__ import annotations

import math
import os
import shlex
from typing import Any, Dict, Iterable, Mapping, Optional, Type, TypeVar, Union

from pydantic import BaseModel, ValidationError

from .errors import InvalidError

Document = TypeVar("Document", bound=BaseModel)
Path = Union[str, "os.PathLike[str]"]


def invalid(message: str, hint: Optional[str] = None) -> InvalidError:
    """The error for an argument that makes no sense."""
    return InvalidError(message, code="invalid", hint=hint)


def command(text: object) -> str:
    """A command, which is a line or a script for a shell."""
    if isinstance(text, str):
        return text
    message = f"a command is a text for a shell, and not {kind(text)}"
    if not isinstance(text, (list, tuple)) or not all(isinstance(word, str) for word in text):
        raise invalid(message)
    raise invalid(message, f"use `{shlex.join(text)}`, or `program` for a list of words")


def seconds(value: object, name: str = "timeout") -> Optional[float]:
    """A time to wait, in seconds; `None` leaves it to the server."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise invalid(f"`{name}` is a number of seconds, and not {kind(value)}")
    if not math.isfinite(value) or value < 0:
        raise invalid(f"`{name}` is a number of seconds from 0 on, and not {value}")
    return float(value)


def timeout(value: object) -> Optional[float]:
    """A time that a command may take: some, unlike a wait, which may be none at all."""
    checked = seconds(value)
    if checked == 0:
        raise invalid("`timeout` is a number of seconds above 0")
    return checked


def directory(path: Optional[Path]) -> Optional[str]:
    """A directory inside the sandbox."""
    if path is None or isinstance(path, str):
        return path
    try:
        return os.fspath(path)
    except TypeError:
        raise invalid(f"`cwd` is a path, and not {kind(path)}") from None


def texts(values: Optional[Mapping[str, str]], name: str = "env") -> Dict[str, str]:
    """Texts by their names."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise invalid(f"`{name}` is a dictionary of texts, and not {kind(values)}")
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise invalid(f"`{name}` is a dictionary of texts, and `{key}` is {kind(value)}")
    return dict(values)


def entrypoints(names: Iterable[object]) -> None:
    """Where tools are found inside: names, since functions of this process are not there."""
    for name in names:
        if not isinstance(name, str):
            raise invalid(
                f"a tool is named by its place inside the sandbox, and {kind(name)} is none",
                "write it to a file of the sandbox and add it as `module.function`",
            )


def made(model: Type[Document], **fields: Any) -> Document:
    """A document for the server."""
    try:
        return model(**fields)
    except ValidationError as error:
        raise invalid(_told(error)) from error


def kind(value: object) -> str:
    """What a value is, in words for an error."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _told(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"`{place}`: {first['msg'][:1].lower()}{first['msg'][1:]}"
