//! What detached programs write, kept beside their sandbox for `zareba logs`.
//!
//! The record has two files, of which the older one goes when the newer one is full. Several
//! programs may write to one record at once: each appends, and looks before each write whether
//! another has begun a new file.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// What one of the two files may hold.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

const NEWER: &str = "output";
const OLDER: &str = "output.1";

/// A record that is written.
#[derive(Debug)]
pub(crate) struct OutputRecord {
    directory: PathBuf,
    file: File,
}

impl OutputRecord {
    /// The record of the sandbox with this directory, which is made when missing.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let file = open(directory)?;
        let directory = directory.to_owned();
        Ok(Self { directory, file })
    }

    /// Adds to it. What is written after the sandbox's directory is gone is lost with it.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.take_up(bytes.len() as u64) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => self.file.write_all(bytes),
        }
    }

    /// Sees to it that the open file is the newer one, and has room for so much.
    fn take_up(&mut self, more: u64) -> io::Result<()> {
        let path = newer(&self.directory);
        if !is_at(&self.file, &path)? {
            self.file = open(&self.directory)?;
        }
        let held = self.file.metadata()?.len();
        if held > 0 && held + more > FILE_BYTES_MAX {
            fs::rename(path, older(&self.directory))?;
            self.file = open(&self.directory)?;
        }
        Ok(())
    }
}

/// Where the newer part of a record is.
pub(crate) fn newer(directory: &Path) -> PathBuf {
    directory.join(NEWER)
}

/// Where the older part is, when there is one.
pub(crate) fn older(directory: &Path) -> PathBuf {
    directory.join(OLDER)
}

/// Whether this file is still the one at this path.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn open(directory: &Path) -> io::Result<File> {
    File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(newer(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(directory: &Path) -> (u64, u64) {
        let size = |path| fs::metadata(path).map_or(0, |found| found.len());
        (size(older(directory)), size(newer(directory)))
    }

    #[test]
    fn a_record_keeps_the_end_of_what_was_written_and_never_more_than_two_files() {
        let directory = tempfile::tempdir().unwrap();
        let mut one = OutputRecord::open(directory.path()).unwrap();
        let mut other = OutputRecord::open(directory.path()).unwrap();
        let half = vec![b'a'; (FILE_BYTES_MAX / 2) as usize];
        one.write(&half).unwrap();
        other.write(&half).unwrap();
        assert_eq!(held(directory.path()), (0, FILE_BYTES_MAX));
        one.write(b"b").unwrap();
        other.write(b"c").unwrap();
        assert_eq!(held(directory.path()), (FILE_BYTES_MAX, 2));
        assert_eq!(fs::read(newer(directory.path())).unwrap(), b"bc");
        for _ in 0..4 {
            other.write(&half).unwrap();
        }
        assert_eq!(held(directory.path()), (FILE_BYTES_MAX, FILE_BYTES_MAX / 2));
    }

    #[test]
    fn what_comes_after_the_sandbox_is_gone_is_lost_without_harm() {
        let directory = tempfile::tempdir().unwrap();
        let mut record = OutputRecord::open(directory.path()).unwrap();
        record.write(b"a").unwrap();
        directory.close().unwrap();
        record.write(b"b").unwrap();
    }
}
