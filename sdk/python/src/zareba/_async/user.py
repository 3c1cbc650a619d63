"""Who commands and programs of a sandbox run as: its one user."""

from __future__ import annotations

from typing import Optional

from .. import _calls, _checks
from ..errors import UnsupportedError
from ..result import result_of
from .client import AsyncClient

_WHO = "id -un 2>/dev/null; id -u"
"""Tells the name, if there is one, and the number."""


async def require_user(client: AsyncClient, session: str, user: Optional[str]) -> None:
    """Refuses a user that commands cannot run as: there is no other than the sandbox's own."""
    if user is None:
        return
    _checks.text(user, "user")
    action = _calls.run(_WHO, cwd="/", whole=True)
    own = result_of(_WHO, await client.perform(session, action), 0.0).check().output.split()
    if user not in own:
        raise UnsupportedError(
            f"commands of this sandbox run as `{own[0]}`, and cannot run as `{user}`",
            code="unsupported",
            hint="the server's settings name the user of a sandbox",
        )
