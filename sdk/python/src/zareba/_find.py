"""Which server is meant when none is named."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Optional

from . import _place, _private
from .errors import InvalidError


def find(key: Optional[str] = None) -> _place.Place:
    """The one of the environment, this user's that runs already, or one that is started now.

    A key is that to one of the first two, and counts before any other.
    """
    environment = os.environ
    found = _place.named(environment) or _place.running(environment)
    if not key:
        return found or _private.server(environment)
    if found is None:
        raise InvalidError(
            "there is a key and no server that it is for",
            code="invalid",
            hint="pass `Client(url=…, key=…)`, or set `ZAREBA_URL`",
        )
    return replace(found, key=key)
