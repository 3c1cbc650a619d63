//! The `read` and `write` actions and the listing of directories.
//!
//! Everything that touches a file goes through [`Workspace`], which turns a path into an open
//! file and decides whether it may be reached at all; `editor` stands on the same functions.
//! All of it is synchronous: the caller keeps it off the threads that serve requests.

mod binary;
mod failure;
mod lines;
mod list;
mod path;
mod read;
mod replace;
mod scope;
mod text;
mod workspace;
mod write;

pub use read::Files;
pub use workspace::{OpenWorkspaceError, Scope, Workspace, WorkspaceSettings};

pub(crate) use binary::{SAMPLE_BYTES, detect_legacy, is_binary};
pub(crate) use failure::Failure;
pub(crate) use list::{EntryKind, entries};
pub(crate) use path::{FilePath, printable, tidy};
pub(crate) use read::BINARY_FILE;
pub(crate) use replace::{Ownership, Target};
pub(crate) use text::{python_space, undecodable, universal_newlines};
pub(crate) use workspace::{OpenFile, Opened, Slot};

#[cfg(test)]
pub(crate) mod fixture;

#[cfg(test)]
mod files_tests;
#[cfg(test)]
mod scope_tests;
