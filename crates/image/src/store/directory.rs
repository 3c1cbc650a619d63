//! The layout of a store and its locks.

use std::{
    fs::{DirBuilder, File},
    io,
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
};

use crate::{Digest, ImageLease, error::ImageError};

/// Nobody else has any business in a store.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

pub(super) fn images(root: &Path) -> PathBuf {
    root.join("images")
}

pub(super) fn layers(root: &Path) -> PathBuf {
    root.join("layers")
}

pub(super) fn staging(root: &Path) -> PathBuf {
    root.join("staging")
}

pub(super) fn names(root: &Path) -> PathBuf {
    root.join("names.json")
}

pub(super) fn layer(root: &Path, diff_id: &Digest) -> PathBuf {
    layers(root).join(diff_id.hex())
}

pub(super) fn record(root: &Path, id: &Digest) -> PathBuf {
    images(root).join(format!("{}.json", id.hex()))
}

fn lease(root: &Path, id: &Digest) -> PathBuf {
    images(root).join(format!("{}.lock", id.hex()))
}

/// Makes what is missing, and refuses a directory that others could write to or own.
pub(super) fn prepare(root: &Path) -> Result<(), ImageError> {
    make_directory(root)?;
    let found = root.symlink_metadata();
    let found = found.map_err(ImageError::store("look at", root))?;
    let bad = |problem| {
        Err(ImageError::BadStore {
            path: root.to_owned(),
            problem,
        })
    };
    if !found.is_dir() {
        return bad("it is not a directory");
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return bad("it belongs to another user");
    }
    if found.permissions().mode() & 0o777 != DIRECTORY_MODE {
        std::fs::set_permissions(root, std::fs::Permissions::from_mode(DIRECTORY_MODE))
            .map_err(ImageError::store("close to others", root))?;
    }
    for directory in [images(root), layers(root), staging(root)] {
        make_directory(&directory)?;
    }
    Ok(())
}

fn make_directory(path: &Path) -> Result<(), ImageError> {
    let made = DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(path);
    made.map_err(ImageError::store("make the directory", path))
}

/// Records may be read.
pub(super) fn lock_shared(root: &Path) -> Result<File, ImageError> {
    lock(&root.join("store.lock"), FlockOperation::LockShared)
}

/// Records may be changed. Held for moments only.
pub(super) fn lock_exclusive(root: &Path) -> Result<File, ImageError> {
    lock(&root.join("store.lock"), FlockOperation::LockExclusive)
}

/// An import goes on: nothing is swept.
pub(super) fn lock_imports(root: &Path) -> Result<File, ImageError> {
    lock(&root.join("imports.lock"), FlockOperation::LockShared)
}

/// No import goes on, and none begins while this is held; nothing when one does.
pub(super) fn try_lock_imports_alone(root: &Path) -> Result<Option<File>, ImageError> {
    let path = root.join("imports.lock");
    try_lock(&path).map_err(ImageError::store("lock", path))
}

/// Nobody has a lease on an image; nothing when somebody does. The caller holds the store.
pub(super) fn try_lock_lease(root: &Path, id: &Digest) -> Result<Option<File>, ImageError> {
    let path = lease(root, id);
    try_lock(&path).map_err(ImageError::store("lock", path))
}

/// Removes the file of the leases on an image that goes. The caller holds the store and the file.
pub(super) fn remove_lease(root: &Path, id: &Digest) -> Result<(), ImageError> {
    let path = lease(root, id);
    std::fs::remove_file(&path).map_err(ImageError::store("remove", path))
}

/// Takes a lease on an image. The store is held meanwhile, so the image cannot go in between.
pub(crate) fn hold_image(root: &Path, id: &Digest) -> io::Result<ImageLease> {
    let store = open_lock(&root.join("store.lock"))?;
    flock_again(&store, FlockOperation::LockShared)?;
    std::fs::metadata(record(root, id))?;
    let lock = open_lock(&lease(root, id))?;
    flock_again(&lock, FlockOperation::LockShared)?;
    Ok(ImageLease::new(lock))
}

fn lock(path: &Path, operation: FlockOperation) -> Result<File, ImageError> {
    let locked = open_lock(path).and_then(|file| {
        flock_again(&file, operation)?;
        Ok(file)
    });
    locked.map_err(ImageError::store("lock", path))
}

fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = open_lock(path)?;
    match flock_again(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A signal for somebody else is no reason to give up.
fn flock_again(file: &File, operation: FlockOperation) -> Result<(), Errno> {
    rustix::io::retry_on_intr(|| flock(file, operation))
}

fn open_lock(path: &Path) -> io::Result<File> {
    File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .custom_flags((OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed())
        .open(path)
}
