"""What the API says about changes of a workspace; a part of :mod:`zareba.models`."""

from __future__ import annotations

from typing import List, Optional, Union

from pydantic import Field

from ._document import Told, Word


class WorkspaceChangeKind(Word):
    """How a path of a workspace changed."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"


class ChangedKind(Word):
    """What a changed path holds, or held if it is deleted."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    SPECIAL = "special"


class WorkspaceChange(Told):
    """One changed path of a workspace."""

    path: str
    """Relative to the workspace."""
    change: Union[WorkspaceChangeKind, str] = Field(union_mode="left_to_right")
    kind: Union[ChangedKind, str] = Field(union_mode="left_to_right")
    from_: Optional[str] = Field(default=None, alias="from")
    """The earlier path of a renamed file."""
    size: Optional[int] = None
    executable: bool = False
    target: Optional[str] = None
    """Where a link points."""


class UnreadPlace(Told):
    """A place that could not be compared."""

    path: str
    reason: str


class ChangeList(Told):
    """The changes of a workspace, by path."""

    changes: List[WorkspaceChange]
    unread: List[UnreadPlace]
    """Changes in these places are missing from the list."""
