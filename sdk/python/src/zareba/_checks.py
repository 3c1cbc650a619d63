"""What callers hand over is looked at here, so that a mistake is an error of ours that says so."""

from __future__ import annotations

import os
import shlex
from contextlib import contextmanager
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Type,
    TypeVar,
    Union,
)

from pydantic import BaseModel, ValidationError

from .errors import InvalidError, of_local_file

Document = TypeVar("Document", bound=BaseModel)
Kind = TypeVar("Kind")
Path = Union[str, "os.PathLike[str]"]
_WAIT_MAX = 1e8
"""Seconds, three years: more is more than some calls of the system can wait."""


def invalid(message: str, hint: Optional[str] = None) -> InvalidError:
    """The error for an argument that makes no sense."""
    return InvalidError(message, code="invalid", hint=hint)


def command(value: object) -> str:
    """A command, which is a line or a script for a shell."""
    if isinstance(value, str):
        return text(value, "command")
    message = f"a command is a text for a shell, and not {kind(value)}"
    if not isinstance(value, (list, tuple)) or not all(isinstance(word, str) for word in value):
        raise invalid(message)
    raise invalid(message, f"use `{shlex.join(value)}`, or `program` for a list of words")


def program(value: object) -> Union[str, List[str]]:
    """A program, which is a line for a shell or a list of words."""
    if isinstance(value, str):
        return text(value, "program")
    if isinstance(value, (list, tuple)) and value:
        return [text(word, "program") for word in value]
    raise invalid(f"a program is a list of words or a line for a shell, and not {kind(value)}")


def text(value: object, name: str) -> str:
    """A text that can be sent."""
    if not isinstance(value, str):
        raise invalid(f"`{name}` is a text, and not {kind(value)}")
    if not value.isascii():
        _encoded(value, name)
    return value


def optional_text(value: object, name: str) -> Optional[str]:
    """The same, or `None`."""
    return None if value is None else text(value, name)


def content(value: object, name: str = "content") -> bytes:
    """Bytes to send; a text stands for its UTF-8."""
    if isinstance(value, str):
        return _encoded(value, name)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise invalid(f"`{name}` is bytes or a text, and not {kind(value)}")


def whole(value: object, name: str, least: int = 0) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid(f"`{name}` is a whole number, and not {kind(value)}")
    if not least <= value < 1 << 63:
        raise invalid(f"`{name}` is a whole number from {least} on, and not {_number(value)}")
    return value


def mode(value: object) -> Optional[str]:
    """Permissions, as octal digits."""
    if value is None:
        return None
    number = whole(value, "mode") if isinstance(value, int) else -1
    if not 0 <= number <= 0o7777:
        raise invalid(f"`mode` is a number such as 0o755, and not {value!r}")
    return format(number, "o")


def words(values: object, name: str) -> List[str]:
    """A list of texts. One text alone would be taken for its letters."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise invalid(f"`{name}` is a list of texts, and not {kind(values)}")
    return [text(value, name) for value in values]


def items(values: object, name: str) -> List[Any]:
    """A list of anything."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise invalid(f"`{name}` is a list, and not {kind(values)}")
    return list(values)


def document(value: object, name: str) -> Dict[str, Any]:
    """A dictionary whose keys are texts."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise invalid(f"`{name}` is a dictionary with texts as keys, and not {kind(value)}")
    return dict(value)


def listener(value: Optional[Callable[..., Any]], name: str) -> None:
    """A function to call, or `None`."""
    if value is not None and not callable(value):
        raise invalid(f"`{name}` is a function, and not {kind(value)}")


def instance(value: Optional[Kind], of: Type[Kind], name: str) -> Optional[Kind]:
    """An object of one of our classes, or `None`."""
    if value is None or isinstance(value, of):
        return value
    raise invalid(f"`{name}` is a {of.__name__}, and not {kind(value)}")


def seconds(value: object, name: str = "timeout") -> Optional[float]:
    """A time to wait, in seconds; `None` leaves it to the server."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise invalid(f"`{name}` is a number of seconds, and not {kind(value)}")
    # Whole numbers have no bounds here, and those that are no float are too large.
    if not 0 <= value < 1e300:
        raise invalid(f"`{name}` is a number of seconds from 0 on, and not {_number(value)}")
    return float(value)


def wait(value: object, name: str = "timeout") -> Optional[float]:
    """A time that this process waits; `None` is without an end."""
    checked = seconds(value, name)
    return None if checked is None else min(checked, _WAIT_MAX)


def timeout(value: object) -> Optional[float]:
    """A time that a command may take: some, unlike a wait, which may be none at all."""
    checked = seconds(value)
    if checked == 0:
        raise invalid("`timeout` is a number of seconds above 0")
    return checked


def directory(value: Optional[Path]) -> Optional[str]:
    """A directory inside the sandbox."""
    return None if value is None else path(value, "cwd")


def path(value: object, name: str = "path") -> str:
    """A path inside the sandbox."""
    return text(os.fspath(value) if isinstance(value, os.PathLike) else value, name)


def local(value: object, name: str = "local") -> str:
    """A path of this machine."""
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(given, str):
        raise invalid(f"`{name}` is a path of this machine, and not {kind(value)}")
    try:
        encoded = os.fsencode(given)
    except UnicodeEncodeError:
        encoded = b""
    if not encoded or b"\0" in encoded:
        raise invalid(f"`{name}` is a path of this machine, and not {given!r}")
    return given


@contextmanager
def local_files() -> Iterator[None]:
    """Makes errors of ours from those of files of this machine."""
    try:
        yield
    except OSError as error:
        raise of_local_file(error) from error


def texts(values: Optional[Mapping[str, str]], name: str = "env") -> Dict[str, str]:
    """Texts by their names."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise invalid(f"`{name}` is a dictionary of texts, and not {kind(values)}")
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise invalid(f"`{name}` is a dictionary of texts, and `{key}` is {kind(value)}")
        text(key, name)
        text(value, name)
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


def _encoded(value: str, name: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise invalid(f"`{name}` is no text that can be sent: {error.reason}") from None


def _number(value: Union[int, float]) -> str:
    """A number for an error; of one with very many digits only that."""
    return str(value) if -1e300 < value < 1e300 else "one as large"


def _told(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"`{place}`: {first['msg'][:1].lower()}{first['msg'][1:]}"
