//! What is at a path, as it is told.

use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, Stat, fstat, statat};
use zareba_wire::files::{Digest, FileError, FileKind, FileStatus, Links, StatRequest};

use super::{
    Place, Shared, digest,
    failure::{is_directory, os, refused},
};
use crate::files::{OpenFile, Opened, printable_path, read_link};

impl Shared {
    pub(super) fn stat(&self, request: &StatRequest) -> Result<FileStatus, FileError> {
        let path = self.locate(&request.path)?;
        match (request.digest, request.links) {
            (Digest::Sha256, _) => match self.workspace.open(&path).map_err(refused)? {
                Opened::File(file) => hashed(file, path.shown()),
                Opened::Directory(_) => Err(is_directory(path.shown())),
            },
            // A path without a name at its end is no link.
            (Digest::Skip, Links::Keep) if path.as_path().file_name().is_some() => {
                self.place(&path)?.status()
            }
            (Digest::Skip, _) => {
                let stat = self.reach.stat(path.as_path());
                let stat =
                    stat.map_err(|errno| refused(self.reach.failure(errno, path.shown())))?;
                Ok(status_of(&stat))
            }
        }
    }
}

impl Place {
    /// What is in this place, links not followed.
    pub(super) fn status(&self) -> Result<FileStatus, FileError> {
        let stat = statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| os(errno, &self.shown))?;
        let mut status = status_of(&stat);
        if status.kind == FileKind::Link {
            let target = read_link(&self.directory, &self.name);
            // It may have been replaced in between; then it has no target.
            let target = target.map_err(|errno| os(errno, &self.shown))?;
            status.target = target.map(|target| printable_path(&target));
        }
        Ok(status)
    }
}

/// The status of an open file, with its content's hash.
pub(super) fn hashed(file: OpenFile, shown: &str) -> Result<FileStatus, FileError> {
    let stat = file.stat;
    let mut file = file.into_file();
    let digits = digest::sha256(&mut file, status_of(&stat).size, shown)?;
    let now = fstat(&file).map_err(|errno| os(errno, shown))?;
    let mut status = status_of(&now);
    // A file that was written meanwhile has had more than one content.
    status.sha256 = (status.version == version(&stat)).then_some(digits);
    Ok(status)
}

pub(super) fn status_of(stat: &Stat) -> FileStatus {
    FileStatus {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        mode: stat.st_mode & 0o7777,
        modified: modified(stat),
        version: version(stat),
        sha256: None,
        target: None,
    }
}

pub(super) fn kind_of(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        FileType::Fifo => FileKind::Pipe,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => FileKind::Device,
    }
}

/// What tells one state of a file from another without reading it (FA-6).
pub(super) fn version(stat: &Stat) -> String {
    format!(
        "{:x}-{:x}-{:x}-{:x}",
        stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec
    )
}

fn modified(stat: &Stat) -> SystemTime {
    let seconds = Duration::from_secs(stat.st_mtime.unsigned_abs());
    let whole = if stat.st_mtime < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(seconds)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(seconds)
    };
    let nanoseconds = u32::try_from(stat.st_mtime_nsec).unwrap_or_default();
    whole
        .and_then(|whole| whole.checked_add(Duration::from_nanos(nanoseconds.into())))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}
