//! The directory that an upload goes to, made when missing.

use std::{
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid},
    io::Errno,
};
use zareba_wire::TransferError;

use super::failure::os_error;

/// Who new files and directories belong to; without it, to the user the executor runs as.
pub(super) type Owner = Option<(u32, u32)>;

/// Mode of a directory that is made on the way.
pub(super) const DIRECTORY_MODE: u32 = 0o755;

/// An open directory. What was made for it goes away again unless the upload succeeds.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) path: PathBuf,
    pub(super) directory: OwnedFd,
    pub(super) owner: Owner,
    made: Vec<PathBuf>,
}

impl Destination {
    /// Opens an absolute path, making what is missing. Links in it are followed: the client
    /// names the place, and the place may be a link.
    ///
    /// `file_name` is only for the error text: a destination that is a file reads as the
    /// attempt to write a file below it.
    pub(super) fn open(path: &Path, file_name: &str, owner: Owner) -> Result<Self, TransferError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, "/", flags, Mode::empty())
            .map_err(|error| os_error(error, Path::new("/")))?;
        let mut destination = Self {
            path: path.to_path_buf(),
            directory: root,
            owner,
            made: Vec::new(),
        };
        let mut so_far = PathBuf::from("/");
        for component in path.components() {
            if matches!(
                component,
                Component::RootDir | Component::Prefix(_) | Component::CurDir
            ) {
                continue;
            }
            so_far.push(component);
            let next = destination.step(Path::new(component.as_os_str()), &so_far);
            destination.directory = next.map_err(|error| {
                let is_last = so_far.components().eq(path.components());
                if error == Errno::NOTDIR && is_last {
                    os_error(error, &path.join(file_name))
                } else {
                    os_error(error, &so_far)
                }
            })?;
        }
        Ok(destination)
    }

    /// The upload succeeded: the directories that were made for it stay.
    pub(super) fn keep(&mut self) {
        self.made.clear();
    }

    fn step(&mut self, name: &Path, so_far: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.directory, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        match make_directory(&self.directory, name, DIRECTORY_MODE, self.owner) {
            Ok(directory) => {
                self.made.push(so_far.to_path_buf());
                Ok(directory)
            }
            // Made by someone else in between.
            Err(Errno::EXIST) => rustix::fs::openat(&self.directory, name, flags, Mode::empty()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        for path in self.made.iter().rev() {
            // Refused when something is in it by now, which then must stay.
            let _ = rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR);
        }
    }
}

/// Makes a directory and opens it; mode and owner are set on the opened one.
pub(super) fn make_directory(
    parent: &OwnedFd,
    name: &Path,
    mode: u32,
    owner: Owner,
) -> Result<OwnedFd, Errno> {
    rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    give(&directory, owner)?;
    rustix::fs::fchmod(&directory, Mode::from_raw_mode(mode))?;
    Ok(directory)
}

/// Hands an open file to its owner. Comes before setting the mode, because it clears bits.
pub(super) fn give(file: impl std::os::fd::AsFd, owner: Owner) -> Result<(), Errno> {
    match owner {
        Some((uid, gid)) => {
            rustix::fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
        }
        None => Ok(()),
    }
}
