"""Which server is meant when none is named."""

from __future__ import annotations

import os

from . import _place, _private


def find() -> _place.Place:
    """The one of the environment, this user's that runs already, or one that is started now."""
    environment = os.environ
    found = _place.named(environment) or _place.running(environment)
    return found or _private.server(environment)
