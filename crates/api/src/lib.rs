//! The HTTP contract of the control plane: operations, the data that they take and give, their
//! errors, and the OpenAPI document that says all of it. There are no handlers here.
//!
//! [`operations`] is the table: every operation with its path, who may use it and what it
//! answers. The server mounts handlers on its rows and has no other way to add a route, and
//! [`openapi`] is written from the same rows, so the document cannot differ from the server.
//!
//! Bodies are JSON objects. A field that nobody knows is refused, durations are numbers of
//! seconds, times are RFC 3339, and actions and observations are the envelopes of
//! `zareba-protocol` as they are.
#![deny(missing_docs)]

mod change;
mod error;
mod event;
mod file;
mod key;
mod openapi;
pub mod operation;
mod program;
mod request;
mod seconds;
mod secret;
mod service;
mod session;
mod terminal;
mod tool;
mod variables;

pub mod operations;

pub use change::{
    ChangeList, ChangedKind, ChangesFormat, ChangesQuery, UnreadPlace, WorkspaceChange,
    WorkspaceChangeKind,
};
pub use error::{ErrorBody, ErrorCode, ErrorDetail};
pub use event::{
    ActionAccepted, AnswerQuery, BlobQuery, Event, EventKind, EventPage, EventsQuery, OutputQuery,
    RunQuery, StopMeans, StopQuery,
};
pub use file::{
    ArchiveFormat, ArchiveQuery, ChangeKind, CreateDirectory, FileChange, FileDigest, FileEntry,
    FileKind, FilePage, FileStatus, ListFilesQuery, ReadFileQuery, RemoveFileQuery, RenameFile,
    StatusQuery, WatchQuery, WriteFileQuery,
};
pub use key::{CreateKey, CreateSessionKey, CreatedKey, Key, KeyPage, KeyQuota, KeyScope, Ticket};
pub use openapi::openapi;
pub use operation::{
    Access, Answer, Content, Deadline, Method, Operation, Parameter, ParameterPlace, ParameterType,
    Payload,
};
pub use program::{ProgramTerminal, StartProgram};
pub use request::{Bytes, Cpus, InvalidCpus, Network, Resources, WorkspaceMode};
pub use seconds::{InvalidSeconds, Seconds};
pub use secret::SecretText;
pub use service::{
    Health, Isolation, Limits, LogStatus, PoolStatus, Readiness, RuntimeDescription, RuntimePage,
    ServerStatus, SessionCounts,
};
pub use session::{
    CreateQuery, CreateSession, DeleteQuery, Idle, PageQuery, Session, SessionLimits, SessionPage,
    SessionState, Setup, UpdateSession,
};
pub use terminal::{
    CreateTerminal, Port, PortPage, SharedPort, Terminal, TerminalCommand, TerminalExit,
    TerminalNotice, TerminalPage, TerminalQuery, WindowSize,
};
pub use tool::{
    AddTools, CallTool, CommandParameter, CommandTool, Tool, ToolFormat, ToolLoadFailure,
    ToolOrigin, ToolPage, ToolsAdded, ToolsQuery,
};
pub use variables::SetVariables;

/// The header that names an action, so that a repeated request is not a second action.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The header in which a client says through what it is used. `mcp` is known, for clients of the
/// Model Context Protocol; logs of sessions name it as the `surface`, on the client's word.
pub const SURFACE: &str = "zareba-surface";
/// The header that names a request: taken from the client when it has one, and always answered.
pub const REQUEST_ID: &str = "x-request-id";
/// The header that says where a stream of events broke off: the number of the last event seen.
pub const LAST_EVENT_ID: &str = "last-event-id";
