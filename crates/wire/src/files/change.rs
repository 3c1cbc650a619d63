//! What is told of a directory that is watched.

use std::{io, pin::Pin};

use futures_core::Stream;

use super::FileKind;

/// Changes as they happen. Dropping it ends the watch; an error is its end.
pub type ChangeStream = Pin<Box<dyn Stream<Item = io::Result<FileChange>> + Send>>;

/// A change below a directory that is watched. Paths are relative to it.
///
/// What changes faster than it is told may be told once or in several parts, and a directory
/// that appears may be told of together with what is in it already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// Something is there that was not.
    Created {
        /// Where.
        path: String,
        /// What: a file, or a directory. Whatever is no directory counts as a file here.
        kind: FileKind,
    },
    /// A file was written.
    Modified {
        /// Which.
        path: String,
    },
    /// Something is gone.
    Removed {
        /// Where it was.
        path: String,
        /// What it was.
        kind: FileKind,
    },
    /// Something has another name.
    Renamed {
        /// The old one.
        path: String,
        /// The new one.
        to: String,
        /// What it is.
        kind: FileKind,
    },
    /// Changes were missed because they came faster than they were read. Whoever keeps a copy
    /// has to look again.
    Overflow,
    /// There are more directories than are watched; changes in the others are not told.
    Incomplete {
        /// How many are watched.
        directories: usize,
    },
    /// The directory itself is gone. This is the last change.
    Gone,
}
