//! Images on disk, for several processes at once.
//!
//! ```text
//! store.lock             held while records are read (shared) or changed (exclusive)
//! imports.lock           shared by imports for as long as they last; who gets it alone may sweep
//! names.json             from names to the ids of images
//! images/<id>.json       one record for each image
//! images/<id>.lock       shared by the leases on that image
//! layers/<diff id>/      layer.json, and tree/ with the files of one layer
//! staging/               what is being made, and garbage
//! ```
//!
//! Everything is made in `staging` and comes to its place by a rename, layers before the record
//! that names them. So a process that is killed leaves garbage and nothing half done: directories
//! in `staging`, and layers that no record names. Both are swept by the next one who finds no
//! import going on. Locks are the kernel's and go with their process.
//!
//! `directory` is the layout and its locks, `records` the files in it, `import`, `lookup` and
//! `remove` what can be done with a store.

mod directory;
mod import;
mod lookup;
mod records;
mod remove;

#[cfg(test)]
mod store_tests;

use std::path::{Path, PathBuf};

pub(crate) use directory::hold_image;
pub use remove::Removed;

use crate::{error::ImageError, limits::Limits};

/// A store of images. Opening one is cheap, and any number of processes may have it open.
#[derive(Clone, Debug)]
pub struct ImageStore {
    root: PathBuf,
    limits: Limits,
}

impl ImageStore {
    /// Opens a store, which is made when missing. It must belong to the caller, because the files
    /// in it do.
    pub fn open(root: &Path) -> Result<Self, ImageError> {
        directory::prepare(root)?;
        let root = std::path::absolute(root).map_err(ImageError::store("find", root))?;
        let store = Self {
            root,
            limits: Limits::STANDARD,
        };
        store.sweep()?;
        Ok(store)
    }

    /// The same store with other limits for what is imported.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// A directory on the store's file system for what is on its way into it. It is removed when
    /// dropped, and swept when its process is killed.
    pub fn scratch(&self) -> Result<Scratch, ImageError> {
        self.sweep()?;
        Scratch::new(&self.root)
    }
}

/// A directory for something that is being made. While one exists, nothing is swept.
#[derive(Debug)]
pub struct Scratch {
    // In this order: the directory goes before the lock that protects it.
    directory: tempfile::TempDir,
    _importing: std::fs::File,
}

impl Scratch {
    fn new(root: &Path) -> Result<Self, ImageError> {
        let importing = directory::lock_imports(root)?;
        let staging = directory::staging(root);
        let directory = tempfile::TempDir::with_prefix_in("work-", &staging)
            .map_err(ImageError::store("make a directory in", staging))?;
        Ok(Self {
            directory,
            _importing: importing,
        })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}
