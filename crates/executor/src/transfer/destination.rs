//! The directory that an upload goes to, made when missing.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::io::Errno;
use zareba_wire::TransferError;

use super::failure::{os_error, refused};
use crate::{
    Owner,
    files::{DirectoryMode, Made, NewDirectory, Reach},
};

/// Mode of a directory that is made on the way.
const DIRECTORY_MODE: u32 = 0o755;

/// An open directory. What was made for it goes away again unless the upload succeeds.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) path: PathBuf,
    pub(super) directory: OwnedFd,
    pub(super) owner: Owner,
    made: Made,
}

impl Destination {
    /// Opens an absolute path, making what is missing. Links in it are followed: the client
    /// names the place, and the place may be a link, as long as it may be reached.
    ///
    /// `file_name` is only for the error text: a destination that is a file reads as the
    /// attempt to write a file below it.
    pub(super) fn open(
        path: &Path,
        file_name: &str,
        owner: Owner,
        reach: &Arc<Reach>,
    ) -> Result<Self, TransferError> {
        match reach.open_or_make(path, new_directory(owner)) {
            Ok((directory, made)) => Ok(Self {
                path: path.to_owned(),
                directory,
                owner,
                made,
            }),
            Err(unmade) if unmade.errno == Errno::NOTDIR && unmade.path == path => {
                Err(os_error(Errno::NOTDIR, &path.join(file_name)))
            }
            Err(unmade) => Err(refused(reach, unmade.errno, &unmade.path)),
        }
    }

    /// The upload succeeded: the directories that were made for it stay.
    pub(super) fn keep(&mut self) {
        self.made.keep();
    }
}

/// How directories on the way come to be.
pub(super) fn new_directory(owner: Owner) -> NewDirectory {
    NewDirectory {
        owner,
        mode: DirectoryMode::Exactly(DIRECTORY_MODE),
    }
}
