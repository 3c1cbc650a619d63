//! Moves a staged tree into its destination by renaming.
//!
//! First everything is looked at and only then anything is moved, so that a conflict leaves the
//! destination as it was. Only a failure between two renames can leave it half merged; each file
//! is whole even then.

use std::{
    ffi::OsString,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FileType, OFlags},
    io::Errno,
};
use zareba_wire::TransferError;

use super::{
    destination::Destination,
    failure::{bad_archive, os_error},
};
use crate::files::{Links, entries, kind_of, open_beneath};

/// Moves all that is in `staged` into the destination. Files and links replace what has their
/// name; directories join those that are there.
pub(super) fn merge(
    staged: &OwnedFd,
    destination: &Destination,
    links: Links,
) -> Result<(), TransferError> {
    let merge = Merge {
        staged,
        destination,
        links,
    };
    let mut moves = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        moves.push(merge.plan(directory, &mut directories)?);
    }
    moves.into_iter().try_for_each(|moves| merge.perform(moves))
}

struct Merge<'a> {
    staged: &'a OwnedFd,
    destination: &'a Destination,
    links: Links,
}

/// What is moved out of one staged directory.
struct Moves {
    directory: PathBuf,
    names: Vec<OsString>,
}

impl Merge<'_> {
    /// Decides for each name of a directory that exists on both sides. Directories that exist
    /// on both sides in turn are added to the list.
    fn plan(&self, directory: PathBuf, shared: &mut Vec<PathBuf>) -> Result<Moves, TransferError> {
        let (from, to) = self.open_both(&directory)?;
        let unread = |error: Errno| os_error(error, &self.final_path(&directory));
        let mut names = Vec::new();
        for entry in entries(&from).map_err(unread)? {
            let (name, staged) = entry.map_err(unread)?;
            let path = directory.join(&name);
            let refuse = |error: Errno| Err(os_error(error, &self.final_path(&path)));
            match (staged, kind_of(&to, &name)) {
                (_, Err(Errno::NOENT)) => names.push(name),
                (_, Err(error)) => return refuse(error),
                // What a link leads to is looked at when the directory is opened, below.
                (FileType::Directory, Ok(FileType::Directory | FileType::Symlink)) => {
                    shared.push(path);
                }
                (FileType::Directory, Ok(_)) => return refuse(Errno::NOTDIR),
                (_, Ok(FileType::Directory)) => return refuse(Errno::ISDIR),
                (_, Ok(_)) => names.push(name),
            }
        }
        Ok(Moves { directory, names })
    }

    fn perform(&self, moves: Moves) -> Result<(), TransferError> {
        let (from, to) = self.open_both(&moves.directory)?;
        for name in moves.names {
            rustix::fs::renameat(&from, &name, &to, &name)
                .map_err(|error| os_error(error, &self.final_path(&moves.directory.join(&name))))?;
        }
        Ok(())
    }

    fn open_both(&self, directory: &Path) -> Result<(OwnedFd, OwnedFd), TransferError> {
        let path = self.final_path(directory);
        let reading = OFlags::RDONLY | OFlags::DIRECTORY;
        let from = open_beneath(self.staged, directory, reading, Links::Refused)
            .map_err(|error| os_error(error, &path))?;
        let passing = OFlags::PATH | OFlags::DIRECTORY;
        let to = open_beneath(&self.destination.directory, directory, passing, self.links)
            .map_err(|error| match error {
                Errno::XDEV | Errno::LOOP => bad_archive(format!(
                    "'{}' is a link in the destination, and the archive would be unpacked through it",
                    path.display()
                )),
                error => os_error(error, &path),
            })?;
        Ok((from, to))
    }

    fn final_path(&self, path: &Path) -> PathBuf {
        self.destination.path.join(path)
    }
}
