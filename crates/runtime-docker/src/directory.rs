//! The private directory of one sandbox, and what becomes of it when its owner is killed.
//!
//! Each sandbox has `STATE/docker/ID/`, which only its user can enter. Its owner holds a lock on a
//! file inside, which the kernel releases however the owner ends; a directory whose lock is free
//! therefore has no owner. Directories are made and looked through under a lock of `STATE/docker/`
//! itself, so that one that is just being made is not taken for abandoned.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use zareba_runtime::SandboxId;

/// The lock files: one for all, and one in each directory.
const LOCK: &str = ".lock";

/// Names that are no sandbox.
const INSTANCE: &str = ".instance";
pub(crate) const PORTS: &str = ".ports";

/// Why there is no place for a sandbox.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DirectoryError {
    #[error("cannot prepare the directory `{path}`", path = path.display())]
    Prepare { path: PathBuf, source: io::Error },
    #[error("there is a sandbox of that name already")]
    Exists,
    #[error(
        "the directory `{path}` belongs to another user or is open to others; remove it or choose another",
        path = path.display()
    )]
    NotPrivate { path: PathBuf },
}

/// A sandbox's directory, and the right to it.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    /// Held as long as the directory is ours; none when it is another process's.
    _lock: Option<File>,
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
        for (_, path) in Self::all(kind)? {
            let Ok(lock) = open_lock(&path) else {
                continue;
            };
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => found.push(Self {
                    path,
                    _lock: Some(lock),
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
            let name = name.filter(|_| is_directory);
            found.extend(name.map(|name| (name, entry.path())));
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

    /// Removes it, on a thread that may block.
    pub(crate) async fn remove(self) {
        let removing = tokio::task::spawn_blocking(move || {
            if let Err(error) = remove_tree(&self.path) {
                tracing::warn!(path = %self.path.display(), %error, "cannot remove a sandbox's directory");
            }
        });
        // Fails only with the whole async runtime.
        let _ = removing.await;
    }
}

/// The name of this installation: made once, and on every container of it (DK-6).
pub(crate) fn instance(kind: &Path) -> Result<String, DirectoryError> {
    let _making = prepare(kind)?;
    let path = kind.join(INSTANCE);
    let known = fs::read_to_string(&path).unwrap_or_default();
    let is_name = known.len() == 32 && known.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_name {
        return Ok(known);
    }
    let new = format!("{:032x}", rand::random::<u128>());
    fs::write(&path, &new).map_err(|source| DirectoryError::Prepare { path, source })?;
    Ok(new)
}

/// Makes the directory of all sandboxes, checks that it is private and locks it.
fn prepare(kind: &Path) -> Result<File, DirectoryError> {
    let failed = |source| DirectoryError::Prepare {
        path: kind.to_owned(),
        source,
    };
    private().recursive(true).create(kind).map_err(failed)?;
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
        .open(directory.join(LOCK))
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

/// Removes a tree that a sandbox could write to, when nobody writes to it any more. Directories
/// are moved up before they are emptied, so that no depth of them exhausts anything, and opened
/// to their owner. Nothing is followed.
pub(crate) fn remove_tree(root: &Path) -> io::Result<()> {
    let mut number: u64 = 0;
    loop {
        let mut is_empty = true;
        for entry in fs::read_dir(root)? {
            is_empty = false;
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            fs::set_permissions(entry.path(), Permissions::from_mode(0o700))?;
            for inner in fs::read_dir(entry.path())? {
                let inner = inner?;
                if inner.file_type()?.is_dir() {
                    number += 1;
                    fs::rename(inner.path(), root.join(format!(".removed-{number}")))?;
                } else {
                    fs::remove_file(inner.path())?;
                }
            }
            fs::remove_dir(entry.path())?;
        }
        if is_empty {
            return fs::remove_dir(root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_an_owner_is_not_abandoned() {
        let state = tempfile::tempdir().unwrap();
        let kind = state.path().join("docker");
        let id = SandboxId::new("one").unwrap();
        let owned = RunDirectory::create(&kind, &id).unwrap();
        assert!(matches!(
            RunDirectory::create(&kind, &id),
            Err(DirectoryError::Exists)
        ));
        assert!(RunDirectory::abandoned(&kind).unwrap().is_empty());
        drop(owned);
        let abandoned = RunDirectory::abandoned(&kind).unwrap();
        assert_eq!(abandoned.len(), 1);
        assert_eq!(abandoned[0].sandbox(), Some(id));
    }

    #[test]
    fn an_installation_keeps_its_name() {
        let state = tempfile::tempdir().unwrap();
        let kind = state.path().join("docker");
        let name = instance(&kind).unwrap();
        assert_eq!(instance(&kind).unwrap(), name);
        assert!(RunDirectory::all(&kind).unwrap().is_empty());
    }

    #[test]
    fn trees_of_any_depth_and_mode_are_removed_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let kept = place.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        let root = place.path().join("root");
        fs::create_dir(&root).unwrap();
        std::os::unix::fs::symlink(&kept, root.join("link")).unwrap();
        let mut deep = File::open(&root).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&deep, "d", 0o700.into()).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY;
            let next = rustix::fs::openat(&deep, "d", flags, 0.into()).unwrap();
            deep = File::from(next);
        }
        fs::create_dir(root.join("shut")).unwrap();
        fs::write(root.join("shut/file"), "").unwrap();
        fs::set_permissions(root.join("shut"), Permissions::from_mode(0o000)).unwrap();
        remove_tree(&root).unwrap();
        assert!(!root.exists());
        assert!(kept.join("file").exists());
    }
}
