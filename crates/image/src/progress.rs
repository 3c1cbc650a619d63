//! What an import or a pull says while it works.

use crate::Digest;

/// One step of the way, told as often as it changes and never asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    pub stage: Stage,
    /// The layer or blob that is worked on; none for what concerns the whole image.
    pub digest: Option<Digest>,
    /// Bytes done so far: received, or read from the archive.
    pub done_bytes: u64,
    /// Bytes that there will be, when somebody has said so.
    pub total_bytes: Option<u64>,
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A manifest, an index or a configuration is being fetched or read.
    Resolving,
    /// A blob comes from a registry.
    Downloading,
    /// A layer is checked and written into the store.
    Unpacking,
    /// A layer was in the store already.
    Shared,
    /// Everything is in place.
    Finished,
}
