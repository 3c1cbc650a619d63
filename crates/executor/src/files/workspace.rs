//! Where paths become open files.
//!
//! A path is resolved once, to a descriptor, and the descriptor is what is checked and used.
//! For a write that is the directory and a name in it ([`Slot`]), because a file is replaced by
//! renaming another one over it.

use std::{
    ffi::{OsStr, OsString},
    hash::{BuildHasher, RandomState},
    io::Read,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat},
    io::Errno,
};

use super::{
    Failure, FilePath,
    beneath::{LINKS_MAX, read_link},
    entries::{DirectoryMode, NewDirectory, READING},
    reach::Reach,
};
use crate::owner::Owner;

/// What a [`Workspace`] is made from.
#[derive(Clone, Debug)]
pub(crate) struct WorkspaceSettings {
    /// The directory that the sandbox was started for, which is not the shell's directory.
    pub(crate) working_dir: PathBuf,
    /// What may be reached.
    pub(crate) reach: Arc<Reach>,
    /// Whom new files and directories belong to.
    pub(crate) owner: Owner,
}

/// The files that actions may reach, and the locks that keep writers of one file apart.
#[derive(Debug)]
pub(crate) struct Workspace {
    working_dir: PathBuf,
    reach: Arc<Reach>,
    owner: Owner,
    /// Striped by file, so that the number of locks does not follow the number of files.
    locks: [Mutex<()>; LOCKS],
    hasher: RandomState,
}

const LOCKS: usize = 64;

/// A file or directory that was opened and then looked at.
#[derive(Debug)]
pub(crate) enum Opened {
    File(OpenFile),
    Directory(OwnedFd),
}

/// A regular file, open for reading.
#[derive(Debug)]
pub(crate) struct OpenFile {
    handle: OwnedFd,
    pub(crate) stat: Stat,
    shown: String,
}

/// A name in an open directory: the place of a file that is there or may be put there.
#[derive(Debug)]
pub(crate) struct Slot {
    directory: OwnedFd,
    name: OsString,
    shown: String,
    /// A write in place must not reach a second name of the file.
    pub(crate) refuse_hard_links: bool,
}

impl Workspace {
    /// Works on what may be reached.
    pub(crate) fn new(settings: WorkspaceSettings) -> Self {
        Self {
            working_dir: settings.working_dir,
            reach: settings.reach,
            owner: settings.owner,
            locks: [const { Mutex::new(()) }; LOCKS],
            hasher: RandomState::new(),
        }
    }

    /// The directory that the sandbox was started for.
    pub(crate) fn working_dir(&self) -> &Path {
        &self.working_dir
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Opens a file or directory for reading. Anything else is refused, never waited for.
    pub(crate) fn open(&self, path: &FilePath) -> Result<Opened, Failure> {
        let handle = self
            .reach
            .open(path.as_path(), READING)
            .map_err(|errno| self.reach.failure(errno, path.shown()))?;
        judge(handle, path.shown())
    }

    /// What is at a path, links followed; `None` when nothing is.
    pub(crate) fn stat(&self, path: &FilePath) -> Result<Option<Stat>, Failure> {
        match self.reach.stat(path.as_path()) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(self.reach.failure(errno, path.shown())),
        }
    }

    /// What an entry of a directory leads to, links followed.
    pub(crate) fn stat_entry(&self, directory: &FilePath, name: &OsStr) -> Result<Stat, Errno> {
        self.reach.stat(&directory.as_path().join(name))
    }

    /// The place that a path names, after following links at its end.
    pub(crate) fn slot(&self, path: &FilePath) -> Result<Slot, Failure> {
        let mut place = path.as_path().to_owned();
        for _ in 0..LINKS_MAX {
            let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
                return Err(Failure::os(Errno::ISDIR, path.shown()));
            };
            let directory = self
                .reach
                .open_directory(parent)
                .map_err(|errno| self.reach.failure(errno, path.shown()))?;
            match read_link(&directory, name) {
                Ok(Some(target)) => place = parent.join(target),
                Ok(None) | Err(Errno::NOENT) => {
                    return Ok(Slot {
                        directory,
                        name: name.to_owned(),
                        shown: path.shown().to_owned(),
                        refuse_hard_links: matches!(*self.reach, Reach::Beneath(_)),
                    });
                }
                Err(errno) => return Err(Failure::os(errno, path.shown())),
            }
        }
        Err(Failure::os(Errno::LOOP, path.shown()))
    }

    /// Like [`Workspace::slot`], with the directories above it made when they are missing.
    pub(crate) fn slot_with_parents(&self, path: &FilePath) -> Result<Slot, Failure> {
        match self.slot(path) {
            Err(failure) if failure.errno() == Some(Errno::NOENT) => {
                self.make_parents(path)?;
                self.slot(path)
            }
            answer => answer,
        }
    }

    /// Waits until nobody else writes this file.
    pub(crate) fn lock(&self, slot: &Slot) -> Result<MutexGuard<'_, ()>, Failure> {
        let stat = fstat(&slot.directory).map_err(|errno| Failure::os(errno, &slot.shown))?;
        let hash = self.hasher.hash_one((stat.st_dev, stat.st_ino, &slot.name));
        let index = usize::try_from(hash % LOCKS as u64).unwrap_or_default();
        Ok(self.locks[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner))
    }

    fn make_parents(&self, path: &FilePath) -> Result<(), Failure> {
        let Some(parent) = path.as_path().parent() else {
            return Ok(());
        };
        let new = NewDirectory {
            owner: self.owner,
            mode: DirectoryMode::ByUmask,
        };
        match self.reach.open_or_make(parent, new) {
            Ok((_, mut made)) => {
                made.keep();
                Ok(())
            }
            Err(unmade) => Err(self.reach.failure(unmade.errno, path.shown())),
        }
    }
}

impl OpenFile {
    /// All of the file, unless it is or becomes larger than `limit`.
    pub(crate) fn read(self, limit: u64) -> Result<Vec<u8>, Failure> {
        let size = u64::try_from(self.stat.st_size).unwrap_or_default();
        let too_large = || Failure::TooLarge {
            path: self.shown.clone(),
            limit,
        };
        if size > limit {
            return Err(too_large());
        }
        // One byte more than the size, so that the end is seen without growing the buffer.
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
        std::fs::File::from(self.handle)
            .take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::io(&error, &self.shown))?;
        if bytes.len() as u64 > limit {
            return Err(too_large());
        }
        Ok(bytes)
    }

    /// The first bytes of the file.
    pub(crate) fn start(self, length: usize) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::with_capacity(length);
        std::fs::File::from(self.handle)
            .take(length as u64)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::io(&error, &self.shown))?;
        Ok(bytes)
    }

    /// The open file, for those who read it piece by piece.
    pub(crate) fn into_file(self) -> std::fs::File {
        self.handle.into()
    }

    pub(crate) fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or_default()
    }
}

impl Slot {
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Opens what is in this place; `None` when nothing is.
    pub(crate) fn open(&self) -> Result<Option<Opened>, Failure> {
        let flags = READING | OFlags::NOFOLLOW;
        match openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(handle) => judge(handle, &self.shown).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NXIO) => Err(Failure::special(&self.shown, "socket")),
            Err(errno) => Err(Failure::os(errno, &self.shown)),
        }
    }

    /// What is in this place now, links not followed.
    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }
}

fn judge(handle: OwnedFd, shown: &str) -> Result<Opened, Failure> {
    let stat = fstat(&handle).map_err(|errno| Failure::os(errno, shown))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Opened::File(OpenFile {
            handle,
            stat,
            shown: shown.to_owned(),
        })),
        FileType::Directory => Ok(Opened::Directory(handle)),
        FileType::Fifo => Err(Failure::special(shown, "named pipe")),
        FileType::CharacterDevice | FileType::BlockDevice => Err(Failure::special(shown, "device")),
        FileType::Socket | FileType::Symlink | FileType::Unknown => {
            Err(Failure::special(shown, "special file"))
        }
    }
}
