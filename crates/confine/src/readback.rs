//! What the kernel says about a confined process, as opposed to what it was told.
//!
//! Everything is read through one descriptor of the process's directory in `/proc`, so that all of
//! it is about the same process: once that has ended, the descriptor answers with an error, also
//! when its number has been given to another (G-6). The parser takes what the kernel writes and
//! nothing else, because a report that guesses is worse than none.

mod error;
mod identity;
mod limits;
mod mount_table;
mod mounts;
mod process;
mod status;

pub use error::{MountFault, ReadBackError};
pub use identity::{IdMap, IdRange, NamespaceId, NamespaceKind, Namespaces};
pub use limits::ProcessLimit;
pub use mount_table::{MountFlags, MountLine, parse_mounts};
pub(crate) use mounts::look_ahead;
pub use mounts::{MountInForce, MountReport, check_mounts};
pub use process::{ProcessDirectory, ProcessFacts};
pub use status::{Capabilities, Ids, SeccompMode, Status};

#[cfg(test)]
mod mounts_tests;
#[cfg(test)]
mod readback_tests;
