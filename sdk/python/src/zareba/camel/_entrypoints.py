"""The texts that name tools inside a sandbox: given, or read off a function."""

from __future__ import annotations

import inspect
import json
from typing import Any, List, Mapping, Optional

from ..errors import InvalidError
from ._tool import Tool, original


def with_arguments(entrypoint: str, arguments: Optional[Mapping[str, Any]]) -> str:
    """An entrypoint with what its toolkit is made with."""
    if arguments is None:
        return entrypoint
    if not isinstance(arguments, Mapping):
        raise TypeError(f"`arguments` is a dictionary, and not {type(arguments).__name__}")
    if "{" in entrypoint:
        raise InvalidError(f"`{entrypoint}` has arguments already", code="invalid")
    try:
        return entrypoint + json.dumps(dict(arguments), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidError(
            f"the arguments of `{entrypoint}` cannot be said in JSON: {error}", code="invalid"
        ) from error


def of_tools(tools: List[Tool]) -> List[str]:
    """The entrypoint of each tool, read off its function."""
    return [_of_function(original(each.func), each.get_function_name()) for each in tools]


def _of_function(function: Any, name: str) -> str:
    owner = getattr(function, "__self__", None)
    if owner is not None and not inspect.ismodule(owner):
        kind = owner if inspect.isclass(owner) else type(owner)
        if not callable(getattr(kind, "get_tools", None)):
            raise _unreachable(name, "it is a method of an object, which stays in this process")
        return _path(kind, name)
    return _path(inspect.unwrap(function), name)


def _path(thing: Any, name: str) -> str:
    module = getattr(thing, "__module__", None)
    path = getattr(thing, "__qualname__", "")
    if module in (None, "__main__"):
        raise _unreachable(name, "it is defined in the program itself, which nobody can import")
    if "<" in path or "." in path:
        raise _unreachable(name, f"it is `{path}`, and only what a module has can be imported")
    return f"{module}.{path}"


def _unreachable(name: str, reason: str) -> InvalidError:
    return InvalidError(
        f"the tool `{name}` has no entrypoint, and none can be read off it: {reason}",
        code="invalid",
        hint="put it into a module of its own, or say `entrypoint=...`",
    )
