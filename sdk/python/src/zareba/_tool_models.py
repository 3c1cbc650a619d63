"""What travels about tools; part of :mod:`zareba.models`."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from pydantic import ConfigDict, Field

from ._document import Asked, Told


class UseTool(Asked):
    """A call of a tool."""

    name: str
    arguments: Dict[str, Any] = Field(default_factory=dict)
    positional: List[Any] = Field(default_factory=list)
    unchecked: bool = False
    thought: str = ""
    security_risk: int = -1


class ToolFailure(Told):
    """Why a tool failed."""

    type: str
    class_: str = Field(alias="class")
    message: str
    traceback: Optional[str] = None


class ToolOutcome(Told):
    """What came of a call of a tool."""

    name: str
    result: Any = None
    raw: Optional[str] = None
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    error: Optional[ToolFailure] = None


class CommandParameter(Asked):
    """What a command takes."""

    name: str
    description: str = ""
    schema_: Optional[Dict[str, Any]] = Field(default=None, alias="schema")
    optional: bool = False

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class CommandTool(Asked):
    """A command that is to be a tool: either `argv` or `shell`."""

    name: str
    description: str = ""
    argv: List[str] = Field(default_factory=list)
    shell: Optional[str] = None
    parameters: List[CommandParameter] = Field(default_factory=list)
    directory: Optional[str] = None


class AddTools(Asked):
    """Tools to add."""

    entrypoints: List[str] = Field(default_factory=list)
    python: Optional[str] = None
    environment: Dict[str, str] = Field(default_factory=dict)
    directory: Optional[str] = None
    threads: Optional[int] = None
    commands: List[CommandTool] = Field(default_factory=list)


class ToolOrigin(Told):
    """Where a tool comes from."""

    kind: str
    name: Optional[str] = None


class Tool(Told):
    """A tool: its name, what it is for, and what it takes."""

    name: str
    description: str
    parameters: Dict[str, Any]
    """The schema of its arguments, as a model sees it."""
    accepts: Optional[Dict[str, Any]] = None
    """The schema that calls are held to, where that is another one."""
    origin: ToolOrigin


class ToolLoadFailure(Told):
    """An entrypoint that could not be loaded."""

    entrypoint: str
    type: str
    """The class of the exception."""
    message: str
    traceback: str


class ToolsAdded(Told):
    """What came of adding tools."""

    tools: List[Tool]
    toolkits: List[str]
    failures: List[ToolLoadFailure]


class ToolPage(Told):
    """All tools of a sandbox, in the form that was asked for."""

    tools: List[Dict[str, Any]]
    toolkits: List[str]
