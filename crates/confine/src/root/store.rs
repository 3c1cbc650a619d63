//! What a sandbox has in memory.
//!
//! All of it is one file system, and each part that is seen somewhere is a directory of it with a
//! mount of its own. To make a file system takes the kernel longer than to show a directory of one
//! that is there, and each has to be taken apart in the end.

use std::{
    cell::Cell,
    io,
    path::{Path, PathBuf},
};

use crate::{
    mounts::{Changes, Detached, NewRoot, handle_path, open_direct},
    policy::{Layer, MemoryCap, Overlay, OwnFile},
};

/// It lies below the new root and goes with the old one, apart from what is shown of it. Until then
/// it is also where trees that have no name are shown to overlayfs, which takes its directories by
/// path: taking off each of them by itself would cost more than mounting it.
pub(super) struct Store {
    place: NewRoot,
    /// How many directories it has.
    count: Cell<usize>,
}

impl Store {
    /// Covers a directory with an empty one.
    pub(super) fn open(stage: &Path, cap: MemoryCap) -> io::Result<Self> {
        Ok(Self {
            place: NewRoot::cover(stage, &Detached::memory(cap, 0o755)?)?,
            count: Cell::new(0),
        })
    }

    /// An empty directory in memory.
    pub(super) fn make(&self, mode: u32) -> io::Result<Detached> {
        self.place.part(&self.make_directory(mode)?)
    }

    /// The same, which stays empty.
    pub(super) fn make_empty(&self) -> io::Result<Detached> {
        let empty = self.make(0o555)?;
        empty.seal()?;
        Ok(empty)
    }

    /// Makes an overlay from its directories, or from what was prepared of them.
    pub(super) fn merge(&self, overlay: &Overlay, prepared: &[Detached]) -> io::Result<Detached> {
        if overlay.lower.is_empty() || overlay.lower.len() > Overlay::LOWER_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut lower = Vec::new();
        if overlay.layer.is_none() && !overlay.own.is_empty() {
            let own = self.place.outside(&self.make_directory(0o755)?);
            write_own(&own, &overlay.own)?;
            lower.push(own);
        }
        for tree in prepared {
            lower.push(self.show(tree)?);
        }
        // Held open until the overlay has them.
        let mut opened = Vec::new();
        for below in overlay.lower.iter().filter(|_| prepared.is_empty()) {
            lower.push(match below.is_direct {
                true => {
                    opened.push(open_direct(&below.path)?);
                    opened.last().map(handle_path).unwrap_or_default()
                }
                false => below.path.clone(),
            });
        }
        let changes = match &overlay.layer {
            None => None,
            Some(Layer::Memory) => Some(Changes::InMemory(self.make_layer(&overlay.own)?)),
            Some(Layer::Directory(_)) if !overlay.own.is_empty() => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            Some(Layer::Directory(path)) if prepared.is_empty() => {
                Some(Changes::OnDisk(path.clone()))
            }
            // Prepared behind what is below.
            Some(Layer::Directory(_)) => lower.pop().map(Changes::OnDisk),
        };
        Detached::overlay(&lower, changes.as_ref())
    }

    fn make_directory(&self, mode: u32) -> io::Result<PathBuf> {
        let path = self.next();
        self.place.make_directory(&path, mode)?;
        Ok(path)
    }

    /// A path to a tree that has none.
    fn show(&self, tree: &Detached) -> io::Result<PathBuf> {
        let path = self.next();
        self.place.mount(&path, tree)?;
        Ok(self.place.outside(&path))
    }

    fn make_layer(&self, own: &[OwnFile]) -> io::Result<PathBuf> {
        let layer = self.make_directory(0o755)?;
        for name in ["upper", "work"] {
            self.place.make_directory(&layer.join(name), 0o755)?;
        }
        let layer = self.place.outside(&layer);
        write_own(&layer.join("upper"), own)?;
        Ok(layer)
    }

    fn next(&self) -> PathBuf {
        let number = self.count.get();
        self.count.set(number + 1);
        PathBuf::from(format!("/{number}"))
    }
}

/// Under the mask that a root is put together with, everyone inside can read them. A directory that one is
/// in becomes one with that of the same name below.
fn write_own(directory: &Path, files: &[OwnFile]) -> io::Result<()> {
    for OwnFile { name, text } in files {
        let path = directory.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}
