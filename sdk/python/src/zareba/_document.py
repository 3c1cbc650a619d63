"""What all documents that travel between client and server have in common."""

from __future__ import annotations

from enum import Enum

from pydantic import BaseModel, ConfigDict


class Told(BaseModel):
    """What the server tells: it may know more than we do."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Asked(BaseModel):
    """What the server is asked: nothing that it does not know."""

    model_config = ConfigDict(extra="forbid")


class Word(str, Enum):
    """One of a list of words; it prints as the word."""

    def __str__(self) -> str:
        return str(self.value)
