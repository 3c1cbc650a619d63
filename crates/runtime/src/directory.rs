//! The private directory of one sandbox, and how it is told whether its owner was killed.
//!
//! Each sandbox has `STATE/KIND/ID/`, which only its user can enter. Its owner holds a lock on a
//! file inside, which the kernel releases however the owner ends; a directory whose lock is free
//! therefore has no owner, whatever process numbers say. Directories are made and looked through
//! under a lock of `STATE/KIND/` itself, so that one that is just being made is not taken for
//! abandoned.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, IFlags, flock, ioctl_getflags, ioctl_setflags},
    io::Errno,
};

use crate::SandboxId;

/// The lock files: one per kind of sandbox and one in each directory.
const LOCK: &str = ".lock";

/// Why there is no place for a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The system refused.
    #[error(
        "cannot prepare the directory `{path}`: set `state.directory` to a directory that can be written to",
        path = path.display()
    )]
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

/// A sandbox's directory, and the right to it. What becomes of it is its owner's business.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// Held as long as the directory is ours; none when it is another process's.
    _lock: Option<File>,
}

impl Claim {
    /// Makes the directory of a new sandbox.
    ///
    /// # Errors
    /// When there is one already, or the system refuses.
    pub fn create(kind: &Path, id: &SandboxId) -> Result<Self, DirectoryError> {
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
            }),
            Err(source) => {
                let _ = fs::remove_dir_all(&path);
                Err(failed(source))
            }
        }
    }

    /// The directory of a sandbox that is found again, which may have an owner elsewhere.
    pub fn of_another(kind: &Path, id: &SandboxId) -> Self {
        Self {
            path: kind.join(id.as_str()),
            _lock: None,
        }
    }

    /// Takes over all directories without an owner.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn abandoned(kind: &Path) -> Result<Vec<Self>, DirectoryError> {
        let _making = prepare(kind)?;
        let mut found = Vec::new();
        for (_, path) in all(kind)? {
            let Ok(lock) = open_lock(&path) else {
                continue;
            };
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => found.push(Self {
                    path,
                    _lock: Some(lock),
                }),
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => {
                    let source = error.into();
                    return Err(DirectoryError::Prepare { path, source });
                }
            }
        }
        Ok(found)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The sandbox that it belongs to.
    pub fn sandbox(&self) -> Option<SandboxId> {
        SandboxId::new(self.path.file_name()?.to_str()?)
    }

    /// Makes a directory inside and returns its path, with links on the way resolved, as a shell
    /// will report it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn make(&self, name: &str) -> Result<PathBuf, DirectoryError> {
        let path = self.path.join(name);
        private()
            .create(&path)
            .and_then(|()| fs::canonicalize(&path))
            .map_err(|source| DirectoryError::Prepare { path, source })
    }
}

/// The directories of all sandboxes of a kind, whoever owns them.
///
/// # Errors
/// When the system refuses.
pub fn all(kind: &Path) -> Result<Vec<(SandboxId, PathBuf)>, DirectoryError> {
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
        let name = name.filter(|_| is_directory);
        found.extend(name.map(|name| (name, entry.path())));
    }
    Ok(found)
}

/// Makes the directory of a kind of sandbox, checks that it is private and locks it, for as long
/// as what is returned is kept.
///
/// # Errors
/// When the system refuses, or the directory is open to others.
pub fn prepare(kind: &Path) -> Result<File, DirectoryError> {
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
    let Ok(directory) = File::open(kind) else {
        return;
    };
    if let Ok(marks) = ioctl_getflags(&directory) {
        let _ = ioctl_setflags(&directory, marks | IFlags::TOPDIR);
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
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(directory.join(LOCK))
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn id(name: &str) -> SandboxId {
        SandboxId::new(name).unwrap()
    }

    #[test]
    fn a_directory_with_an_owner_is_not_abandoned() {
        let state = tempfile::tempdir().unwrap();
        let kind = state.path().join("kind");
        let owned = Claim::create(&kind, &id("one")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&kind), mode(owned.path())), (0o700, 0o700));
        assert!(matches!(
            Claim::create(&kind, &id("one")),
            Err(DirectoryError::Exists)
        ));
        assert!(Claim::abandoned(&kind).unwrap().is_empty());
        drop(owned);
        let abandoned = Claim::abandoned(&kind).unwrap();
        assert_eq!(abandoned.len(), 1);
        assert_eq!(abandoned[0].sandbox(), Some(id("one")));
        assert_eq!(all(&kind).unwrap().len(), 1);
    }

    #[test]
    fn a_place_that_others_can_enter_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let kind = state.path().join("kind");
        fs::create_dir(&kind).unwrap();
        fs::set_permissions(&kind, Permissions::from_mode(0o755)).unwrap();
        let error = Claim::create(&kind, &id("a")).unwrap_err();
        assert!(matches!(error, DirectoryError::NotPrivate { path } if path == kind));
    }

    #[test]
    fn what_is_no_sandbox_is_left_alone() {
        let state = tempfile::tempdir().unwrap();
        let kind = state.path().join("kind");
        drop(Claim::create(&kind, &id("one")).unwrap());
        fs::create_dir(kind.join(".other")).unwrap();
        fs::write(kind.join("file"), "").unwrap();
        assert_eq!(all(&kind).unwrap(), [(id("one"), kind.join("one"))]);
        assert_eq!(Claim::abandoned(&kind).unwrap().len(), 1);
        assert!(!kind.join(".other/.lock").exists());
    }
}
