"""What came of a command or an edit."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from . import errors
from .models import CommandMetadata, Edited, ToolOutcome

__all__ = ["Edit", "ProgramOutput", "ProgramResult", "Result", "ToolResult"]

_SHOWN_MAX = 2000
"""Characters of output in the text of an error."""


@dataclass(frozen=True)
class Result:
    """What came of a command. One that failed is a result like any other: see :meth:`check`."""

    command: str
    """The command as it was asked for."""
    output: str
    """What the command wrote, as a person at its terminal would have seen it."""
    exit_code: int
    """The exit status; -1 while the command still runs."""
    duration: float
    """Seconds from asking to knowing."""
    timed_out: bool
    """The time was up. The command goes on, see :class:`zareba.Shell` for what to do then; one that
    had a shell of its own was ended at its timeout."""
    action_id: int
    """The number of the action in the sandbox's log."""
    event_id: int
    """The number of the observation in the sandbox's log."""
    metadata: CommandMetadata = field(repr=False)
    """What the shell said: its directory, a signal, limits that were met."""
    raw: Dict[str, Any] = field(repr=False)
    """The observation as the server sent it."""
    stderr: Optional[str] = None
    """What it wrote as errors, if that was asked for apart; otherwise that is in `output`."""

    @property
    def stdout(self) -> str:
        """The same as `output`: a terminal has one stream, and errors are in it unless they were
        asked for apart."""
        return self.output

    @property
    def ok(self) -> bool:
        """Whether the command has ended with exit status 0."""
        return self.exit_code == 0

    @property
    def truncated(self) -> bool:
        """Whether the command wrote more than is in `output`; `output_file` has all of it."""
        return self.metadata.output_bytes is not None

    @property
    def output_file(self) -> Optional[str]:
        """The file inside the sandbox that holds the whole output of one that is truncated."""
        return self.metadata.output_file

    def check(self) -> Result:
        """Returns the result itself, or raises :class:`zareba.CommandError` unless it is ok."""
        if self.ok:
            return self
        end = "did not end in time" if self.timed_out else f"exited with {self.exit_code}"
        shown = self.output[-_SHOWN_MAX:]
        raise errors.CommandError(f"the command `{self.command}` {end}: {shown}", self)


@dataclass(frozen=True)
class Edit:
    """What came of an edit."""

    path: str
    diff: str
    """The change as a unified diff without context."""
    text: str
    """What an agent is told: the changed lines with their numbers, or what a linter says."""
    action_id: int
    event_id: int
    raw: Dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class ProgramOutput:
    """Some bytes that a program has written."""

    stream: str
    """`stdout` or `stderr`; a program on a terminal writes all of it to the first."""
    content: bytes


@dataclass(frozen=True)
class ProgramResult:
    """What came of a program that was waited for."""

    exit_code: int
    """The exit status, or 128 and the signal that ended it."""
    stdout: bytes
    stderr: bytes
    truncated: bool
    """Whether it wrote more than was kept."""


@dataclass(frozen=True)
class ToolResult:
    """What a tool returned."""

    name: str
    """The tool."""
    value: Any
    """What it returned, as JSON has it: a tuple is a list, for instance."""
    stdout: str
    """What it printed during this call."""
    stderr: str
    """What it printed as errors during this call."""
    truncated: bool
    """Whether it printed more than is kept."""
    action_id: int
    event_id: int
    raw: Dict[str, Any] = field(repr=False)


def result_of(command: str, observation: Dict[str, Any], duration: float) -> Result:
    """Reads the observation of a command."""
    if observation.get("observation") != "run":
        raise errors.of_observation(_error_id(observation), str(observation.get("content", "")))
    metadata = CommandMetadata.model_validate(observation["extras"]["metadata"])
    return Result(
        command=command,
        output=str(observation.get("content", "")),
        exit_code=metadata.exit_code,
        duration=duration,
        timed_out=any(limit.kind == "timed_out" for limit in metadata.limits),
        action_id=_number(observation, "cause"),
        event_id=_number(observation, "id"),
        metadata=metadata,
        raw=observation,
    )


def edit_of(observation: Dict[str, Any]) -> Edit:
    """Reads the observation of an edit; one that changed nothing is an error."""
    text = str(observation.get("content", ""))
    if observation.get("observation") != "edit" or text.startswith("ERROR:"):
        raise errors.of_observation(_error_id(observation), text)
    extras = Edited.model_validate(observation["extras"])
    return Edit(
        path=extras.path,
        diff=extras.diff or "",
        text=text,
        action_id=_number(observation, "cause"),
        event_id=_number(observation, "id"),
        raw=observation,
    )


def tool_result_of(observation: Dict[str, Any]) -> ToolResult:
    """Reads the observation of a tool's call; a call that failed is an error."""
    text = str(observation.get("content", ""))
    if observation.get("observation") != "tool":
        raise errors.of_observation(_error_id(observation), text)
    outcome = ToolOutcome.model_validate(observation["extras"])
    if outcome.error is not None:
        raise errors.of_tool(outcome)
    value = outcome.result
    if outcome.raw is not None:
        # Python's own words for numbers that JSON does not have.
        value = json.loads(outcome.raw)
    return ToolResult(
        name=outcome.name,
        value=value,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        truncated=outcome.truncated,
        action_id=_number(observation, "cause"),
        event_id=_number(observation, "id"),
        raw=observation,
    )


def _error_id(observation: Dict[str, Any]) -> str:
    extras = observation.get("extras")
    return str(extras.get("error_id", "")) if isinstance(extras, dict) else ""


def _number(observation: Dict[str, Any], key: str) -> int:
    number = observation.get(key)
    return number if isinstance(number, int) else -1
