"""What travels between client and server, as the API's document describes it.

Each class is named like its schema in the OpenAPI document and has its fields; a test compares
them one by one. Fields that a later server adds are passed over, and words that it adds to a list
of words arrive as plain text.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, List, Optional, Union

from pydantic import ConfigDict, Field

from ._change_models import (
    ChangedKind,
    ChangeList,
    UnreadPlace,
    WorkspaceChange,
    WorkspaceChangeKind,
)
from ._document import Asked, Told, Word
from ._tool_models import (
    AddTools,
    CommandParameter,
    CommandTool,
    Tool,
    ToolFailure,
    ToolLoadFailure,
    ToolOrigin,
    ToolOutcome,
    ToolPage,
    ToolsAdded,
    UseTool,
)

__all__ = [
    "ActionAccepted",
    "AddTools",
    "ChangeKind",
    "ChangeList",
    "ChangedKind",
    "CommandMetadata",
    "CommandOutput",
    "CommandParameter",
    "CommandTool",
    "CreateDirectory",
    "CreateSession",
    "CreateTerminal",
    "EditFile",
    "Edited",
    "Event",
    "EventKind",
    "EventPage",
    "FileChange",
    "FileEntry",
    "FileKind",
    "FilePage",
    "FileStatus",
    "Health",
    "Idle",
    "Isolation",
    "LimitHit",
    "Limits",
    "LogStatus",
    "Network",
    "PoolStatus",
    "Port",
    "PortPage",
    "ProgramTerminal",
    "RenameFile",
    "Resources",
    "RunCommand",
    "RuntimeDescription",
    "RuntimePage",
    "ServerStatus",
    "Session",
    "SessionCounts",
    "SessionLimits",
    "SessionPage",
    "SessionState",
    "SetVariables",
    "Setup",
    "SharedPort",
    "StartProgram",
    "Terminal",
    "TerminalExit",
    "TerminalNotice",
    "TerminalPage",
    "Tool",
    "ToolFailure",
    "ToolLoadFailure",
    "ToolOrigin",
    "ToolOutcome",
    "ToolPage",
    "ToolsAdded",
    "UnreadPlace",
    "UseTool",
    "UpdateSession",
    "WindowSize",
    "WorkspaceChange",
    "WorkspaceChangeKind",
]


class SessionState(Word):
    """How a sandbox is."""

    STARTING = "starting"
    READY = "ready"
    PAUSED = "paused"
    FAILED = "failed"
    LOST = "lost"
    CLOSED = "closed"


class Idle(Word):
    """What happens to an idle sandbox."""

    PAUSE = "pause"
    CLOSE = "close"
    STAY = "stay"


class Setup(Word):
    """What is run before a sandbox is ready."""

    WORKSPACE = "workspace"
    NOTHING = "nothing"


class SessionLimits(Asked):
    """When a sandbox goes to sleep and when it ends."""

    model_config = ConfigDict(extra="ignore")

    idle_timeout: Optional[float] = None
    when_idle: Optional[Idle] = None
    life_max: Optional[float] = None


class UpdateSession(Asked):
    """What shall be different about a sandbox; what is left out stays."""

    limits: SessionLimits = Field(default_factory=SessionLimits)
    ends_in: Optional[float] = None
    labels: Optional[Dict[str, str]] = None


class Network(Asked):
    """What a sandbox can reach over the network."""

    model_config = ConfigDict(extra="ignore")

    mode: Optional[str] = None
    allow: Optional[List[str]] = None
    deny: List[str] = Field(default_factory=list)


class Resources(Asked):
    """How much a sandbox may use; sizes are bytes, or a text such as `512MiB`."""

    model_config = ConfigDict(extra="ignore")

    memory: Union[int, str, None] = None
    cpus: Optional[float] = None
    pids: Optional[int] = None
    disk: Union[int, str, None] = None


class CreateSession(Asked):
    """What a sandbox shall be like."""

    id: Optional[str] = None
    runtime: Optional[str] = None
    image: Optional[str] = None
    workspace: Optional[str] = None
    environment: Dict[str, str] = Field(default_factory=dict)
    secrets: Dict[str, str] = Field(default_factory=dict, repr=False)
    labels: Dict[str, str] = Field(default_factory=dict)
    no_change_timeout: Optional[float] = None
    timeout: Optional[float] = None
    network: Optional[Network] = None
    resources: Resources = Field(default_factory=Resources)
    workspace_mode: Optional[str] = None
    user: Optional[str] = None
    mounts: List[str] = Field(default_factory=list)
    plugins: List[str] = Field(default_factory=list)
    best_effort: bool = False
    limits: SessionLimits = Field(default_factory=SessionLimits)
    setup: Setup = Setup.WORKSPACE


class Session(Told):
    """A sandbox, as the server tells of it."""

    id: str
    name: Optional[str] = None
    """What its owner calls it, for administrators, who see its unique id as `id`."""
    owner: str
    runtime: str
    image: Optional[str] = None
    state: Union[SessionState, str] = Field(union_mode="left_to_right")
    status: str
    message: str
    labels: Dict[str, str]
    workspace: str
    """The directory to work in, as programs inside see it."""
    created: datetime
    last_active: datetime
    limits: SessionLimits
    network: Optional[Network] = None
    """What it can reach, where the runtime can tell."""
    resources: Resources = Field(default_factory=Resources)
    """What bounds it, in bytes and numbers."""
    workspace_mode: Optional[str] = None
    user: Optional[str] = None
    not_held: List[str] = Field(default_factory=list)
    """What was asked for with `best_effort` and does not hold."""
    next_event: int


class SessionPage(Told):
    """Some sandboxes, by name."""

    sessions: List[Session]
    next: Optional[str] = None


class ActionAccepted(Told):
    """An action that was recorded and runs."""

    session: str
    action: int


class EventKind(Word):
    """What an event tells of."""

    ACTION = "action"
    OBSERVATION = "observation"
    STATUS = "status"
    NOTE = "note"


class Event(Told):
    """Something that happened in a sandbox."""

    sequence: int
    time: datetime
    kind: Union[EventKind, str] = Field(union_mode="left_to_right")
    cause: Optional[int] = None
    payload: Dict[str, Any]
    digest: str


class EventPage(Told):
    """Some events, in order."""

    events: List[Event]
    next: int


class RunCommand(Asked):
    """A command for a shell."""

    command: str
    is_input: bool = False
    thought: str = ""
    blocking: bool = False
    is_static: bool = False
    cwd: Optional[str] = None
    hidden: bool = False
    confirmation_state: str = "confirmed"
    security_risk: int = -1


class EditFile(Asked):
    """A change of a text file."""

    path: str
    command: str = ""
    file_text: Optional[str] = None
    old_str: Optional[str] = None
    new_str: Optional[str] = None
    insert_line: Union[float, str, None] = None
    content: str = ""
    start: int = 1
    end: int = -1
    thought: str = ""
    security_risk: int = -1
    impl_source: str = "oh_aci"


class LimitHit(Told):
    """A limit that was met while a command ran."""

    kind: str
    message: str


class CommandMetadata(Told):
    """What the shell said when a command ended."""

    exit_code: int = -1
    pid: int = -1
    username: Optional[str] = None
    hostname: Optional[str] = None
    working_dir: Optional[str] = None
    py_interpreter_path: Optional[str] = None
    prefix: str = ""
    suffix: str = ""
    output_bytes: Optional[int] = None
    output_file: Optional[str] = None
    output_dropped: Optional[int] = None
    signal: Optional[str] = None
    shell_restarted: bool = False
    limits: List[LimitHit] = Field(default_factory=list)


class CommandOutput(Told):
    """What is told of a command beside its output."""

    command: str
    metadata: CommandMetadata
    hidden: bool


class Edited(Told):
    """What is told of a change beside its text."""

    path: str = ""
    prev_exist: bool = False
    old_content: Optional[str] = None
    new_content: Optional[str] = None
    impl_source: str = "llm_based_edit"
    diff: Optional[str] = None


class FileKind(Word):
    """What something in a directory is."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    PIPE = "pipe"
    SOCKET = "socket"
    DEVICE = "device"


class FileStatus(Told):
    """What is at a path."""

    kind: Union[FileKind, str] = Field(union_mode="left_to_right")
    size: int
    mode: str
    """Permissions, in octal digits."""
    modified: datetime
    version: str
    """Another one whenever the content was changed or replaced."""
    sha256: Optional[str] = None
    target: Optional[str] = None


class FileEntry(Told):
    """One entry of a directory."""

    name: str
    status: FileStatus


class FilePage(Told):
    """Some entries of a directory."""

    entries: List[FileEntry]
    next: Optional[str] = None
    truncated: bool


class CreateDirectory(Asked):
    """A directory to make."""

    path: str
    mode: Optional[str] = None
    parents: bool = False


class RenameFile(Asked):
    """Another name for something."""

    from_: str = Field(alias="from")
    to: str
    replace: bool = False

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class SetVariables(Asked):
    """Variables to set and to remove."""

    set: Dict[str, str] = Field(default_factory=dict)
    unset: List[str] = Field(default_factory=list)


class ChangeKind(Word):
    """What happened to a file."""

    CREATED = "created"
    MODIFIED = "modified"
    REMOVED = "removed"
    RENAMED = "renamed"
    OVERFLOW = "overflow"
    INCOMPLETE = "incomplete"
    GONE = "gone"


class FileChange(Told):
    """A change below a directory that is watched."""

    change: Union[ChangeKind, str] = Field(union_mode="left_to_right")
    path: Optional[str] = None
    to: Optional[str] = None
    kind: Union[FileKind, str, None] = Field(default=None, union_mode="left_to_right")


class WindowSize(Asked):
    """The size of a terminal in characters."""

    columns: int
    rows: int


class CreateTerminal(Asked):
    """A terminal to open."""

    name: Optional[str] = None
    argv: Optional[List[str]] = None
    command: Optional[str] = None
    directory: Optional[str] = None
    environment: Dict[str, str] = Field(default_factory=dict)
    size: WindowSize = Field(default_factory=lambda: WindowSize(columns=80, rows=24))


class TerminalExit(Told):
    """How a terminal ended: one of these is there."""

    code: Optional[int] = None
    signal: Optional[int] = None
    reason: Optional[str] = None


class Terminal(Told):
    """A terminal."""

    name: str
    created: datetime
    size: WindowSize
    output_bytes: int
    """Bytes that it has shown so far."""
    exit: Optional[TerminalExit] = None


class TerminalPage(Told):
    """Terminals of a sandbox."""

    terminals: List[Terminal]


class TerminalNotice(Told):
    """What is said on a terminal's socket beside the bytes that it shows."""

    cursor: Optional[int] = None
    exit: Optional[TerminalExit] = None
    error: Optional[str] = None


class ProgramTerminal(Asked):
    """The size of a program's terminal in characters."""

    rows: int
    cols: int


class StartProgram(Asked):
    """A program to start, with streams of its own."""

    argv: Optional[List[str]] = None
    command: Optional[str] = None
    cwd: Optional[str] = None
    env: Dict[str, str] = Field(default_factory=dict)
    terminal: Optional[ProgramTerminal] = None
    stdin: bool = False


class SharedPort(Told):
    """Where a port is shared."""

    port: int
    path: str
    url: str


class Port(Told):
    """A port of a sandbox."""

    port: int
    listening: Optional[bool] = None
    share: Optional[SharedPort] = None


class PortPage(Told):
    """Ports of a sandbox."""

    ports: List[Port]


class Health(Told):
    """The server answers."""

    status: str


class SessionCounts(Told):
    """How many sandboxes are in each state."""

    starting: int
    ready: int
    paused: int
    failed: int
    lost: int
    closed: int


class LogStatus(Told):
    """How the event log is."""

    durable: bool
    reason: Optional[str] = None
    waiting: int


class PoolStatus(Told):
    """What sandboxes that are started ahead were good for."""

    ready: int
    hits: int
    misses: int
    lost: int


class ServerStatus(Told):
    """How the server is."""

    version: str
    uptime: float
    sessions: SessionCounts
    log: LogStatus
    default_runtime: str
    pools: Dict[str, PoolStatus]
    extensions: List[str]


class Isolation(Word):
    """What stands between the workload and the machine."""

    NONE = "none"
    NAMESPACES = "namespaces"
    CONTAINER = "container"
    REMOTE = "remote"


class RuntimeDescription(Told):
    """What a runtime can promise on the server's machine."""

    name: str
    is_default: bool
    isolation: Union[Isolation, str] = Field(union_mode="left_to_right")
    pause: bool
    checkpoint: bool
    attach: bool
    changes: bool = False


class RuntimePage(Told):
    """All runtimes."""

    runtimes: List[RuntimeDescription]


class Limits(Told):
    """What may be asked for at most."""

    json_bytes: int
    action_bytes: int
    json_depth: int
    uri_bytes: int
    page_items: int
    wait: float
    connections: int
    peer_connections: int
    sessions: int
    owner_sessions: int
    idle_timeout: float
    timeout: float
    no_change_timeout: float
    ticket_life: float
