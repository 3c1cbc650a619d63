//! Conducts: a session is a sandbox with its log, its shells and its guard, and this crate is the
//! only one that sees the whole path of an action.
//!
//! [`Sessions`] holds all sessions of a server, [`Session::run`] is the path: the action is
//! recorded, judged, run, and what came of it is recorded before anybody is told. There is one way
//! out for every action, and it is an observation. What is no action goes through one door:
//! [`Session::access`], behind which each deed is judged and recorded as well.
#![deny(missing_docs)]

mod asked;
mod deed;
mod door;
mod error;
mod guard;
mod home;
mod info;
mod options;
mod outlived;
mod own_name;
mod session;
mod sessions;

mod abandoned;
mod aside;
mod check;
mod conductor;
mod create;
mod document;
mod event;
mod lease;
mod lifecycle;
mod live;
mod mask;
mod output;
mod path;
mod pending;
mod permit;
mod recall;
mod recover;
mod setup;
mod shelf;
mod start;
mod terminals;
mod timer;
mod tools;
mod update;
mod workspace;

pub use asked::Asked;
pub use deed::{Deed, ProgramPurpose, Requester, RequesterScope, SandboxChange, Surface};
pub use door::{AdmittedSandbox, BegunDeed, DeedLog, Door, TRANSCRIPT_BYTES_MAX, Unkept};
pub use error::SessionError;
pub use event::event_json;
pub use guard::{AllowAll, DeedContext, Guard, Verdict};
pub use home::{Home, HomeError};
pub use info::{SessionInfo, SessionState};
pub use mask::{HIDDEN, Mask, StreamMask};
pub use options::{Idle, NewSession, Owner, Secret, SessionLimits, Setup};
pub use output::ActionOutput;
pub use own_name::own_id;
pub use permit::{Permissions, PermittedParts, PermittedReach, PermittedRules, RequestMaxima};
pub use session::{ActionRequest, Session};
pub use sessions::{Recovery, Runtimes, Sessions, SessionsOptions};
pub use terminals::{
    NewTerminal, TERMINALS_MAX, Terminal, TerminalEnd, TerminalError, TerminalInfo, TerminalOutput,
    Terminals, Viewer,
};
pub use tools::{HOSTS_MAX, NewTools, SessionTools, ToolSource, ToolSupply, ToolsAdded};
pub use update::{Life, SessionUpdate};
pub use zareba_eventlog::{EventLog, IdempotencyKey, Record, Subscription};
pub use zareba_protocol::SessionId;
