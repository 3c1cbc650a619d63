"""Large parts of an event, which the server keeps apart and refers to by their digest."""

from __future__ import annotations

import json
from typing import Any, Callable, Iterator, List, NamedTuple, Tuple

from .errors import InternalError

MARK = b'"$blob"'
"""What every reference has in it, as the server writes it."""
PARTS_MAX = 256
"""Parts of one event that are put back; an event has a handful."""


class Reference(NamedTuple):
    """A part that is kept apart."""

    digest: str
    is_json: bool

    def value(self, part: bytes) -> Any:
        """What stands in the place of the reference."""
        return json.loads(part) if self.is_json else part.decode("utf-8", "replace")


def references(event: Any) -> List[Tuple[Reference, Callable[[Any], None]]]:
    """Every reference in an event, with what puts a value in its place."""
    found = list(_find(event))
    if len(found) > PARTS_MAX:
        raise InternalError(f"an event has more than {PARTS_MAX} parts that are kept apart")
    return found


def _find(value: Any) -> Iterator[Tuple[Reference, Callable[[Any], None]]]:
    places: Iterator[Tuple[Any, Any]]
    if isinstance(value, dict):
        places = iter(list(value.items()))
    elif isinstance(value, list):
        places = iter(list(enumerate(value)))
    else:
        return
    for key, part in places:
        if not isinstance(part, (dict, list)):
            continue
        reference = _reference(part)
        if reference is None:
            yield from _find(part)
        else:
            yield reference, lambda new, key=key: value.__setitem__(key, new)  # type: ignore[misc]


def _reference(value: Any) -> Any:
    is_one = isinstance(value, dict) and set(value) == {"$blob", "form", "bytes", "head"}
    return Reference(str(value["$blob"]), value["form"] == "json") if is_one else None
