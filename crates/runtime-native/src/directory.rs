//! The private directory of one sandbox, and what becomes of it when its owner is killed.
//!
//! Each sandbox has `STATE/KIND/ID/`, which only its user can enter. Its owner holds a lock on a
//! file inside, which the kernel releases however the owner ends; a directory whose lock is free
//! therefore has no owner, whatever process numbers say. Directories are made and looked through
//! under a lock of `STATE/KIND/` itself, so that one that is just being made is not taken for
//! abandoned.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, IFlags, flock, ioctl_getflags, ioctl_setflags},
    io::Errno,
};
use zareba_runtime::SandboxId;

use crate::{members, native, trees::remove_tree};

/// The lock files: one per kind of sandbox and one in each directory.
const LOCK: &str = ".lock";

/// Why there is no place for a sandbox.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DirectoryError {
    /// The system refused.
    #[error("cannot prepare the directory `{path}`", path = path.display())]
    Prepare {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is one of that name.
    #[error("there is a sandbox of that name already")]
    Exists,
    /// Somebody else could put things into it, or look at what is in it.
    #[error(
        "the directory `{path}` belongs to another user or is open to others; remove it or choose another",
        path = path.display()
    )]
    NotPrivate {
        /// Which.
        path: PathBuf,
    },
}

/// A sandbox's directory. Dropping it ends what is left of the sandbox's processes and removes
/// it, unless it was said that it stays.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    /// Held as long as the directory is ours; none when it is another process's.
    _lock: Option<File>,
    fate: Fate,
}

/// What becomes of a directory whose owner lets go of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Removed,
    Left,
}

impl RunDirectory {
    /// Makes the directory of a new sandbox.
    pub(crate) fn create(kind: &Path, id: &SandboxId) -> Result<Self, DirectoryError> {
        let _making = prepare(kind)?;
        let path = kind.join(id.as_str());
        let failed = |source| DirectoryError::Prepare {
            path: path.clone(),
            source,
        };
        match private().create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(DirectoryError::Exists);
            }
            made => made.map_err(failed)?,
        }
        let lock = open_lock(&path).and_then(|lock| {
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            Ok(lock)
        });
        match lock {
            Ok(lock) => Ok(Self {
                path,
                _lock: Some(lock),
                fate: Fate::Removed,
            }),
            Err(source) => {
                let _ = fs::remove_dir_all(&path);
                Err(failed(source))
            }
        }
    }

    /// The directory of a sandbox that is found again, which may have an owner elsewhere.
    pub(crate) fn of_another(kind: &Path, id: &SandboxId) -> Self {
        Self {
            path: kind.join(id.as_str()),
            _lock: None,
            fate: Fate::Left,
        }
    }

    /// Takes over all directories without an owner.
    pub(crate) fn abandoned(kind: &Path) -> Result<Vec<Self>, DirectoryError> {
        let _making = prepare(kind)?;
        let failed = |source| DirectoryError::Prepare {
            path: kind.to_owned(),
            source,
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(kind).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_directory = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
            let Some(lock) = is_directory.then(|| open_lock(&path).ok()).flatten() else {
                continue;
            };
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => found.push(Self {
                    path,
                    _lock: Some(lock),
                    fate: Fate::Removed,
                }),
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        Ok(found)
    }

    /// The directories of all sandboxes, whoever owns them.
    pub(crate) fn all(kind: &Path) -> Result<Vec<(SandboxId, PathBuf)>, DirectoryError> {
        let failed = |source| DirectoryError::Prepare {
            path: kind.to_owned(),
            source,
        };
        let entries = match fs::read_dir(kind) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name().to_str().and_then(SandboxId::new);
            found.extend(
                name.filter(|_| is_directory)
                    .map(|name| (name, entry.path())),
            );
        }
        Ok(found)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The sandbox that it belongs to.
    pub(crate) fn sandbox(&self) -> Option<SandboxId> {
        SandboxId::new(self.path.file_name()?.to_str()?)
    }

    /// Makes a directory inside and returns its path, with links on the way resolved, as a shell
    /// will report it.
    pub(crate) fn make(&self, name: &str) -> Result<PathBuf, DirectoryError> {
        let path = self.path.join(name);
        private()
            .create(&path)
            .and_then(|()| fs::canonicalize(&path))
            .map_err(|source| DirectoryError::Prepare { path, source })
    }

    /// From now on only [`Self::remove`] removes it: it is needed by a process that outlives us.
    pub(crate) fn outlive(&mut self) {
        self.fate = Fate::Left;
    }

    /// Gives it up and leaves it where it is.
    pub(crate) fn leave(mut self) {
        self.outlive();
    }

    /// Removes it, with the sandbox's last processes, on a thread that may block.
    pub(crate) async fn remove(mut self) {
        self.fate = Fate::Removed;
        // Without a runtime the closure is dropped, and with it the directory.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if self.fate == Fate::Left {
            return;
        }
        // What is behind walls has ended with them.
        let walled = self.path.parent().and_then(Path::file_name) == Some(native::NAME.as_ref());
        match self.sandbox() {
            Some(_) if walled => native::forget_group(&self.path),
            Some(sandbox) => members::kill(&sandbox),
            None => {}
        }
        if let Err(error) = remove_tree(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove a sandbox's directory");
        }
    }
}

/// Makes the directory of a kind of sandbox, checks that it is private and locks it.
fn prepare(kind: &Path) -> Result<File, DirectoryError> {
    let failed = |source| DirectoryError::Prepare {
        path: kind.to_owned(),
        source,
    };
    let is_new = fs::symlink_metadata(kind).is_err();
    private().recursive(true).create(kind).map_err(failed)?;
    if is_new {
        spread(kind);
    }
    // Whoever can write to the directory above could put another one in place of this.
    if let Some(above) = kind.parent() {
        let metadata = fs::metadata(above).map_err(failed)?;
        require(above, is_ours(&metadata) && metadata.mode() & 0o022 == 0)?;
    }
    let metadata = fs::symlink_metadata(kind).map_err(failed)?;
    let is_private = metadata.is_dir() && metadata.mode() & 0o077 == 0;
    require(kind, is_ours(&metadata) && is_private)?;
    let lock = open_lock(kind).map_err(failed)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
    Ok(lock)
}

/// Tells the file system that the directories in this one have nothing to do with each other. ext4
/// would put them all into one group of the disk, and whoever makes a file there would look past
/// everything that sandboxes before it have left. Others do not know the mark, and need it not.
fn spread(kind: &Path) {
    let marked = File::open(kind).map_err(drop).and_then(|directory| {
        let marks = ioctl_getflags(&directory).map_err(drop)?;
        ioctl_setflags(&directory, marks | IFlags::TOPDIR).map_err(drop)
    });
    if marked.is_err() {
        tracing::debug!(path = %kind.display(), "sandboxes are not spread over the disk");
    }
}

fn is_ours(metadata: &fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

fn require(path: &Path, holds: bool) -> Result<(), DirectoryError> {
    let path = path.to_owned();
    holds
        .then_some(())
        .ok_or(DirectoryError::NotPrivate { path })
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

fn open_lock(directory: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(directory.join(LOCK))
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
