//! The `read` and `write` actions and the listing of directories.
//!
//! A path becomes an open file in one place: [`Reach`] decides whether it may be reached at all,
//! and `beneath` holds the lookups that cannot leave a directory. [`Workspace`] adds what reading
//! and replacing files needs. `editor`, `search` and `transfer` stand on the same functions.
//! All of it is synchronous: the caller keeps it off the threads that serve requests.

mod name;
mod path;

mod beneath;
mod entries;
mod failure;
mod reach;
mod workspace;

mod list;
mod read;
mod replace;
mod write;

mod binary;
mod lines;
mod text;

pub use reach::OpenWorkspaceError;

pub(crate) use beneath::{Beneath, Links, open_beneath, read_link};
pub(crate) use binary::{SAMPLE_BYTES, detect_legacy, is_binary};
pub(crate) use entries::{
    DirectoryMode, NewDirectory, READING, entries, is_mount_point, kind_of, make_directory,
    remove_tree,
};
pub(crate) use failure::Failure;
pub(crate) use list::{EntryKind, listing};
pub(crate) use name::printable;
pub use name::{meant_path, printable_path};
pub(crate) use path::{FilePath, tidy};
pub(crate) use reach::{Made, Reach};
pub(crate) use read::{BINARY_FILE, Files};
pub(crate) use replace::{Draft, NEW_FILE_MODE, Ownership, Target};
pub(crate) use text::{python_space, undecodable, universal_newlines};
pub(crate) use workspace::{OpenFile, Opened, Slot, Workspace, WorkspaceSettings};

#[cfg(test)]
pub(crate) mod fixture;

#[cfg(test)]
mod files_tests;
#[cfg(test)]
mod name_tests;
#[cfg(test)]
mod scope_tests;
