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
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, statat},
    io::Errno,
};

use super::{
    Failure, FilePath,
    scope::{Beneath, LINKS_MAX, read_link},
};
use crate::owner::Owner;

/// How much of the file system file actions may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All that the process may; the walls are somebody else's.
    WholeFilesystem,
    /// Only this directory: links, `..` and absolute paths that lead out are refused.
    Beneath(PathBuf),
}

/// What a [`Workspace`] is made from.
#[derive(Clone, Debug)]
pub struct WorkspaceSettings {
    /// The directory that the sandbox was started for, which is not the shell's directory.
    pub working_dir: PathBuf,
    /// What may be reached.
    pub scope: Scope,
    /// Whom new files and directories belong to.
    pub owner: Owner,
}

/// Why a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace root `{}`", root.display())]
pub struct OpenWorkspaceError {
    root: PathBuf,
    source: std::io::Error,
}

/// The files that actions may reach, and the locks that keep writers of one file apart.
#[derive(Debug)]
pub struct Workspace {
    working_dir: PathBuf,
    beneath: Option<Beneath>,
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
    /// Opens the root when there is one to stay beneath.
    pub fn new(settings: WorkspaceSettings) -> Result<Self, OpenWorkspaceError> {
        let beneath = match settings.scope {
            Scope::WholeFilesystem => None,
            Scope::Beneath(root) => Some(
                Beneath::open_root(&root)
                    .map_err(|errno| OpenWorkspaceError { root, source: errno.into() })?,
            ),
        };
        Ok(Self {
            working_dir: settings.working_dir,
            beneath,
            owner: settings.owner,
            locks: [const { Mutex::new(()) }; LOCKS],
            hasher: RandomState::new(),
        })
    }

    /// The directory that the sandbox was started for.
    pub fn working_dir(&self) -> &Path {
        &self.working_dir
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Opens a file or directory for reading. Anything else is refused, never waited for.
    pub(crate) fn open(&self, path: &FilePath) -> Result<Opened, Failure> {
        let handle = self.open_raw(path.as_path(), path.shown(), reading())?;
        judge(handle, path.shown())
    }

    /// What is at a path, links followed; `None` when nothing is.
    pub(crate) fn stat(&self, path: &FilePath) -> Result<Option<Stat>, Failure> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = self
            .open_raw(path.as_path(), path.shown(), flags)
            .and_then(|handle| fstat(handle).map_err(|errno| Failure::os(errno, path.shown())));
        match found {
            Ok(stat) => Ok(Some(stat)),
            Err(failure) => match failure.errno() {
                Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
                _ => Err(failure),
            },
        }
    }

    /// What an entry of a directory leads to, links followed.
    pub(crate) fn stat_entry(&self, directory: &FilePath, name: &OsStr) -> Result<Stat, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let handle = self
            .open_raw(&directory.as_path().join(name), directory.shown(), flags)
            .map_err(|failure| failure.errno().unwrap_or(Errno::XDEV))?;
        fstat(handle)
    }

    /// The place that a path names, after following links at its end.
    pub(crate) fn slot(&self, path: &FilePath) -> Result<Slot, Failure> {
        let mut place = path.as_path().to_owned();
        for _ in 0..LINKS_MAX {
            let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
                return Err(Failure::os(Errno::ISDIR, path.shown()));
            };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = self.open_raw(parent, path.shown(), flags)?;
            match read_link(&directory, name) {
                Ok(Some(target)) => place = parent.join(target),
                Ok(None) | Err(Errno::NOENT) => {
                    return Ok(Slot {
                        directory,
                        name: name.to_owned(),
                        shown: path.shown().to_owned(),
                        refuse_hard_links: self.beneath.is_some(),
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
        Ok(self.locks[index].lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn make_parents(&self, path: &FilePath) -> Result<(), Failure> {
        let Some(parent) = path.as_path().parent() else { return Ok(()) };
        let mut missing = Vec::new();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut above = None;
        for directory in parent.ancestors() {
            match self.open_raw(directory, path.shown(), flags) {
                Ok(handle) => {
                    above = Some(handle);
                    break;
                }
                Err(failure) if failure.errno() == Some(Errno::NOENT) => missing.push(directory),
                Err(failure) => return Err(failure),
            }
        }
        let Some(mut above) = above else {
            return Err(Failure::os(Errno::NOENT, path.shown()));
        };
        for directory in missing.into_iter().rev() {
            if let Some(name) = directory.file_name() {
                self.make_directory(above.as_fd(), name, path.shown())?;
            }
            above = self.open_raw(directory, path.shown(), flags)?;
        }
        Ok(())
    }

    fn make_directory(
        &self,
        above: BorrowedFd<'_>,
        name: &OsStr,
        shown: &str,
    ) -> Result<(), Failure> {
        // The process's umask narrows this, as it does for every other program's directories.
        match mkdirat(above, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(()),
            Err(errno) => return Err(Failure::os(errno, shown)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(above, name, flags, Mode::empty())
            .map_err(|errno| Failure::os(errno, shown))?;
        self.owner.give(made).map_err(|error| Failure::io(&error, shown))
    }

    fn open_raw(&self, path: &Path, shown: &str, flags: OFlags) -> Result<OwnedFd, Failure> {
        let Some(beneath) = &self.beneath else {
            return rustix::fs::open(path, flags, Mode::empty())
                .map_err(|errno| refusal(errno, shown));
        };
        beneath.open(path, flags).map_err(|errno| match errno {
            Errno::XDEV => Failure::Outside {
                path: shown.to_owned(),
                root: beneath.root.to_string_lossy().into_owned(),
            },
            other => refusal(other, shown),
        })
    }
}

impl OpenFile {
    /// All of the file, unless it is or becomes larger than `limit`.
    pub(crate) fn read(self, limit: u64) -> Result<Vec<u8>, Failure> {
        let size = u64::try_from(self.stat.st_size).unwrap_or_default();
        let too_large = || Failure::TooLarge { path: self.shown.clone(), limit };
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
        let flags = reading() | OFlags::NOFOLLOW;
        match openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(handle) => judge(handle, &self.shown).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(refusal(errno, &self.shown)),
        }
    }

    /// What is in this place now, links not followed.
    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// A FIFO must not block the open, a terminal must not become ours, a child must not inherit.
fn reading() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

fn judge(handle: OwnedFd, shown: &str) -> Result<Opened, Failure> {
    let stat = fstat(&handle).map_err(|errno| Failure::os(errno, shown))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            Ok(Opened::File(OpenFile { handle, stat, shown: shown.to_owned() }))
        }
        FileType::Directory => Ok(Opened::Directory(handle)),
        FileType::Fifo => Err(special(shown, "named pipe")),
        FileType::CharacterDevice | FileType::BlockDevice => Err(special(shown, "device")),
        FileType::Socket | FileType::Symlink | FileType::Unknown => {
            Err(special(shown, "special file"))
        }
    }
}

/// A socket cannot be opened at all; the kernel's words for that would not help.
fn refusal(errno: Errno, shown: &str) -> Failure {
    match errno {
        Errno::NXIO => special(shown, "socket"),
        other => Failure::os(other, shown),
    }
}

fn special(shown: &str, kind: &'static str) -> Failure {
    Failure::Special { path: shown.to_owned(), kind }
}
