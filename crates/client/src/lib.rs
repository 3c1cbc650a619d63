//! Typed Rust client of the HTTP API.
//!
//! [`Client`] has a method per operation, named as in `zareba-api`, whose table also says the
//! paths. Whatever changes something carries a name, so that a lost answer is asked for again and
//! nothing is done twice; only what may be repeated is. What comes back is written by strangers:
//! answers have limits, redirects are not followed, the key goes to one origin only.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use zareba_client::{Address, ApiKey, Client, CreateSession};
//! use zareba_protocol::{Action, RunCommand};
//!
//! let key = ApiKey::new("zrb_…").ok_or("no key")?;
//! let client = Client::new(Address::parse("https://agents.example")?, key)?;
//! let session = client.create_session(CreateSession::default()).await?;
//! let action = Action::Run(RunCommand::new("make test"));
//! let observation = client.run(&session.id, action.into()).await?;
//! client.delete_session(&session.id).await?;
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]

mod actions;
mod ask;
mod blobs;
mod client;
mod error;
mod events;
mod file_options;
mod files;
mod keys;
mod programs;
mod sessions;
mod terminals;
mod tools;
mod tries;

pub mod transport;

pub use client::Client;
pub use error::{ClientError, Sent};
pub use events::EventStream;
pub use file_options::{FileChanges, FileCondition, FileContent};
pub use files::ByteStream;
pub use programs::Connection;
pub use terminals::{TerminalEvent, TerminalView};
pub use transport::{Address, ApiKey, InvalidAddress};
pub use tries::BackOff;
pub use zareba_api::{
    ActionAccepted, AddTools, ArchiveFormat, Bytes, ChangeKind, ChangeList, ChangedKind,
    CommandParameter, CommandTool, Cpus, CreateDirectory, CreateKey, CreateSession,
    CreateSessionKey, CreateTerminal, CreatedKey, ErrorCode, Event, EventKind, EventPage,
    FileChange, FileDigest, FileEntry, FileKind, FilePage, FileStatus, Idle, Key, KeyPage,
    KeyQuota, KeyScope, Limits, ListFilesQuery, Network, PageQuery, ProgramTerminal, ReadFileQuery,
    Readiness, RemoveFileQuery, RenameFile, Resources, RuntimeDescription, RuntimePage, Seconds,
    SecretText, ServerStatus, Session, SessionLimits, SessionPage, SessionState, SetVariables,
    Setup, StartProgram, StatusQuery, Terminal, TerminalExit, TerminalNotice, TerminalPage, Ticket,
    Tool, ToolFormat, ToolLoadFailure, ToolOrigin, ToolPage, ToolsAdded, UnreadPlace,
    UpdateSession, WatchQuery, WindowSize, WorkspaceChange, WorkspaceChangeKind, WorkspaceMode,
    WriteFileQuery,
};
