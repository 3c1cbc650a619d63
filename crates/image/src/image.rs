//! An image in the store, and the lease that keeps it there.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use crate::{Digest, ImageName, store::hold_image};

/// An image in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The digest of its configuration, as other tools show it.
    pub id: Digest,
    /// Sorted; empty when another image took over its last name.
    pub names: Vec<ImageName>,
    /// Directories for the lower side of an overlay that is mounted with `userxattr`, the
    /// topmost first. Files belong to whoever imported them.
    pub layers: Vec<PathBuf>,
    pub config: ImageConfig,
    /// Bytes of all files, in layers that may be shared with other images.
    pub size_bytes: u64,
    /// When it was built, as the image says.
    pub created: Option<String>,
    /// Devices, pipes and sockets that were left out.
    pub skipped_entries: u64,
    pub(crate) store: PathBuf,
}

/// How programs in the image expect to be started. Written by strangers: to be shown and
/// offered, not to be obeyed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// Each `NAME=value`.
    pub env: Vec<String>,
    pub working_dir: Option<String>,
    pub user: Option<String>,
    pub entrypoint: Vec<String>,
    pub cmd: Vec<String>,
    pub labels: BTreeMap<String, String>,
}

/// Keeps an image from being removed until it is dropped, or its process ends however it does.
#[derive(Debug)]
#[must_use = "without its lease an image may be removed while it is in use"]
pub struct ImageLease {
    _lock: File,
}

impl ImageLease {
    pub(crate) fn new(lock: File) -> Self {
        Self { _lock: lock }
    }
}

impl Image {
    /// Takes a lease. Fails with `NotFound` when the image has been removed in the meantime.
    pub fn hold(&self) -> io::Result<ImageLease> {
        hold_image(&self.store, &self.id)
    }

    /// The store that it is in.
    #[must_use]
    pub fn store(&self) -> &Path {
        &self.store
    }
}
