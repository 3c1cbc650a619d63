//! The contract of a place to run: [`Runtime`] makes sandboxes, [`Sandbox`] is one.
//!
//! A backend finds a place and starts the executor there; it never interprets an action, which
//! is why there is no method per action kind. What a backend cannot do it says by
//! [`Capabilities`] and, when it is asked all the same, by an error of class `unsupported`.
//! The conformance suite in `zareba-testkit` holds every backend to its lifecycle, shells, text files,
//! copies and variables; tests of each backend hold it to the rest.
#![deny(missing_docs)]

mod changes;
pub mod directory;
mod error;
mod files;
pub mod guarded;
pub mod life;
pub mod limits;
pub mod notes;
mod place;
pub mod request;
mod sandbox;
mod spec;
mod status;
mod turns;
mod variables;

pub use changes::{
    CHANGES_MAX, ChangeKind, ChangedContent, ChangesRequest, LEFT_OUT, PATCH_BYTES_MAX,
    UnreadPlace, WorkspaceChange, WorkspaceChanges, WorkspacePatch,
};
pub use error::RuntimeError;
pub use files::SandboxFiles;
pub use place::SandboxPlace;
pub use request::{
    Grant, NetworkGrant, NetworkRequest, RequestField, SandboxRequest, Strictness, WorkspaceMode,
};
pub use sandbox::{Activity, CheckpointId, Forwarded, Runtime, Sandbox};
pub use spec::{
    Capabilities, Isolation, PoolCounts, SandboxId, SandboxSpec, SandboxState, SandboxSummary,
    Support,
};
pub use status::{StatusCallback, StatusUpdate, Statuses};
pub use turns::{Turn, Turns, is_input};
pub use variables::Variables;
