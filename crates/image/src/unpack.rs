//! From the archive of a layer to a directory that an overlay can be mounted on.
//!
//! `archive` reads entries, `entry_path` judges their names, `tree` writes them beneath one open
//! directory, and `layer` and `copy` drive the others: for an archive and for a directory.

mod archive;
mod copy;
mod entry_path;
mod failure;
mod layer;
mod tree;

#[cfg(test)]
mod unpack_tests;

pub(crate) use archive::{Archive, EntryKind, Source};
pub(crate) use copy::copy_directory;
pub use failure::{Refusal, UnpackError};
pub(crate) use layer::{Unpacked, unpack_layer};
pub(crate) use tree::{Contents, is_opaque_root};
