"""Arguments on their way into a sandbox: Python's values as JSON has them."""

from __future__ import annotations

import dataclasses
import enum
import math
from pathlib import PurePath
from typing import Any, Dict, List, Mapping, Tuple

from pydantic import BaseModel

from ..errors import InvalidError

_DEPTH_MAX = 60
"""How deep values may be in one another; the server has a limit of its own behind it."""


def as_json(tool: str, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tuple[List[Any], Any]:
    """Arguments as the tool's side gets them, by position and by name."""
    positional = [_value(tool, f"argument {n}", each, 0) for n, each in enumerate(args, 1)]
    named: Dict[str, Any] = {
        name: _value(tool, f"argument `{name}`", each, 0) for name, each in kwargs.items()
    }
    return positional, named


def _value(tool: str, place: str, value: Any, depth: int) -> Any:
    if depth > _DEPTH_MAX:
        raise _refused(tool, place, "is nested too deeply")
    if isinstance(value, enum.Enum):
        return _value(tool, place, value.value, depth + 1)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _refused(tool, place, f"is {value}, which JSON cannot say")
        return value
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, PurePath):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
        return {name: _value(tool, place, each, depth + 1) for name, each in fields}
    if isinstance(value, Mapping):
        return {
            _key(tool, place, key): _value(tool, place, each, depth + 1)
            for key, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_value(tool, place, each, depth + 1) for each in value]
    raise _refused(tool, place, f"is a {type(value).__name__}, which JSON cannot say")


def _key(tool: str, place: str, key: Any) -> str:
    if not isinstance(key, str):
        raise _refused(tool, place, f"has the key {key!r}, and keys are text in JSON")
    return key


def _refused(tool: str, place: str, problem: str) -> InvalidError:
    return InvalidError(
        f"the tool `{tool}` was not called: {place} {problem}",
        code="invalid",
        hint="hand over text, numbers, lists or dictionaries, or a file in the sandbox",
    )
