//! The directories of one sandbox outside.

use std::{
    fs, io,
    os::unix::fs::chown,
    path::{Path, PathBuf},
};

use zareba_confine::{Access, EntryKind, Identity, Lower, Ownership};

/// Everything in them belongs to the sandbox's user, who must reach it, and nothing else of ours.
#[derive(Debug)]
pub(super) struct Places {
    directory: PathBuf,
    identity: Identity,
}

impl Places {
    /// Makes them in a directory that is there and is ours. The mask must let everyone read.
    pub(super) fn make(directory: &Path, identity: Identity) -> io::Result<Self> {
        let places = Self {
            directory: directory.to_owned(),
            identity,
        };
        places.make_directory(&directory.join("layer"))?;
        Ok(places)
    }

    /// Where files are put that we make up for an image.
    pub(super) fn files(&self) -> PathBuf {
        self.directory.join("files")
    }

    /// What all sandboxes of this state directory share.
    pub(super) fn shared(&self, name: &str) -> io::Result<PathBuf> {
        let state = self.directory.ancestors().nth(2);
        Ok(state.ok_or(io::ErrorKind::InvalidInput)?.join(name))
    }

    /// A layer of the sandbox's own, to take the changes of one overlay.
    pub(super) fn layer(&self, name: &str) -> io::Result<PathBuf> {
        let layer = self.directory.join("layer").join(name);
        self.make_directory(&layer)?;
        self.make_directory(&layer.join("upper"))?;
        self.make_directory(&layer.join("work"))?;
        Ok(layer)
    }

    /// An empty directory that is the sandbox's own.
    pub(super) fn own(&self, name: &str) -> io::Result<EntryKind> {
        let source = self.directory.join("layer").join(name);
        self.make_directory(&source)?;
        Ok(EntryKind::Bind {
            source,
            access: Access::ReadWrite,
            owner: Ownership::AsItIs,
            is_direct: false,
        })
    }

    /// An empty directory.
    pub(super) fn empty(&self) -> io::Result<Lower> {
        let path = self.directory.join("empty");
        self.make_directory(&path)?;
        Ok(self.lower(path))
    }

    /// A directory of ours that is below an overlay.
    pub(super) fn lower(&self, path: PathBuf) -> Lower {
        Lower {
            path,
            owner: Ownership::AsItIs,
            is_direct: false,
        }
    }

    /// Makes a directory, if it is not there.
    pub(super) fn make_directory(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.and_then(|()| self.give(path)),
        }
    }

    /// Makes a file.
    pub(super) fn make_file(&self, path: &Path, text: &str) -> io::Result<()> {
        fs::write(path, text)?;
        self.give(path)
    }

    fn give(&self, path: &Path) -> io::Result<()> {
        let Identity {
            uid_outside,
            gid_outside,
            ..
        } = self.identity;
        chown(path, Some(uid_outside), Some(gid_outside))
    }
}
