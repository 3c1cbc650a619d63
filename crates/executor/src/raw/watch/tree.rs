//! The directories that are watched, by the numbers that the kernel gives them.

use std::{
    collections::HashMap,
    ffi::OsStr,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{
        FileType, OFlags, fstat,
        inotify::{self, CreateFlags, WatchFlags},
    },
    io::Errno,
};
use zareba_wire::files::{Depth, FileChange, FileError, FileKind, WatchRequest};

use super::super::{
    Shared,
    failure::{os, refused},
};
use crate::files::{FilePath, Links, Opened, READING, entries, open_beneath, printable_path};

/// Directories of one watch. Each costs the kernel about a kilobyte, which counts against the
/// user's own limit.
const DIRECTORIES_MAX: usize = 4096;

/// Changes that are gathered before they are told.
pub(super) const CHANGES_MAX: usize = 16 * 1024;

const WATCHED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The directories that are watched. Paths are relative to the first one.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) inotify: Arc<OwnedFd>,
    shared: Arc<Shared>,
    /// The name of the first one. It is not held open, because the kernel does not tell the end
    /// of a directory that somebody holds.
    root: FilePath,
    /// Which one it is, whatever has the name.
    identity: (u64, u64),
    root_number: i32,
    depth: Depth,
    directories: HashMap<i32, PathBuf>,
    /// It was told that some are not watched.
    incomplete_told: bool,
}

/// Whether what is found in a directory is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Findings {
    Told,
    Known,
}

impl Tree {
    /// Watches the directory itself.
    pub(super) fn open(shared: Arc<Shared>, request: &WatchRequest) -> Result<Self, FileError> {
        let path = shared.locate(&request.path)?;
        let directory = match shared.workspace.open(&path).map_err(refused)? {
            Opened::Directory(directory) => directory,
            Opened::File(_) => return Err(os(Errno::NOTDIR, path.shown())),
        };
        let refuse = |errno| os(errno, path.shown());
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
        let inotify = inotify.map_err(refuse)?;
        let root_number = add(&inotify, &directory).map_err(refuse)?;
        let identity = identity(&directory).map_err(refuse)?;
        Ok(Self {
            inotify: Arc::new(inotify),
            shared,
            root: path,
            identity,
            root_number,
            depth: request.depth,
            directories: HashMap::from([(root_number, PathBuf::new())]),
            incomplete_told: false,
        })
    }

    /// Watches what is below the directory, as far as that was asked for.
    pub(super) fn look(&mut self) -> Vec<FileChange> {
        let mut changes = Vec::new();
        if self.depth == Depth::Tree {
            self.walk(PathBuf::new(), Findings::Known, &mut changes);
        }
        changes
    }

    /// Watches a directory that has just appeared, and tells what is in it already.
    pub(super) fn adopt(&mut self, path: &Path, changes: &mut Vec<FileChange>) {
        if self.depth == Depth::Tree {
            self.walk(path.to_owned(), Findings::Told, changes);
        }
    }

    /// Forgets a directory that has left, with all below it.
    pub(super) fn abandon(&mut self, path: &Path) {
        let inotify = Arc::clone(&self.inotify);
        self.directories.retain(|number, directory| {
            let is_below = directory.starts_with(path);
            if is_below {
                // Refused when the kernel has forgotten it already.
                let _ = inotify::remove_watch(&inotify, *number);
            }
            !is_below
        });
    }

    /// A directory has another name.
    pub(super) fn renamed(&mut self, from: &Path, to: &Path) {
        for directory in self.directories.values_mut() {
            if let Ok(rest) = directory.strip_prefix(from) {
                *directory = match rest.as_os_str().is_empty() {
                    true => to.to_owned(),
                    false => to.join(rest),
                };
            }
        }
    }

    /// The kernel no longer tells of a directory.
    pub(super) fn forget(&mut self, number: i32) {
        self.directories.remove(&number);
    }

    pub(super) fn is_root(&self, number: i32) -> bool {
        number == self.root_number
    }

    /// The path of a name in a directory.
    pub(super) fn path(&self, number: i32, name: &OsStr) -> Option<PathBuf> {
        Some(self.directories.get(&number)?.join(name))
    }

    fn walk(&mut self, from: PathBuf, findings: Findings, changes: &mut Vec<FileChange>) {
        let mut waiting = vec![from];
        let mut complete = true;
        let root = self.root();
        while let Some(path) = waiting.pop() {
            let visited = match &root {
                Ok(root) => self.visit(root, &path, findings, &mut waiting, changes),
                Err(errno) => Err(*errno),
            };
            match visited {
                Ok(()) => {}
                // Gone or replaced by now, and told as such.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) => complete = false,
            }
        }
        if !complete && !self.incomplete_told {
            self.incomplete_told = true;
            let directories = self.directories.len();
            changes.push(FileChange::Incomplete { directories });
        }
    }

    /// The first directory, unless its name means another one by now.
    fn root(&self) -> Result<OwnedFd, Errno> {
        let root = self.shared.reach.open_directory(self.root.as_path())?;
        match identity(&root)? == self.identity {
            true => Ok(root),
            false => Err(Errno::STALE),
        }
    }

    /// Watches one directory, and only then looks at what is in it, so that nothing is missed.
    fn visit(
        &mut self,
        root: &OwnedFd,
        path: &Path,
        findings: Findings,
        waiting: &mut Vec<PathBuf>,
        changes: &mut Vec<FileChange>,
    ) -> Result<(), Errno> {
        if self.directories.len() + waiting.len() >= DIRECTORIES_MAX {
            return Err(Errno::NOSPC);
        }
        let flags = READING | OFlags::DIRECTORY;
        let directory = open_beneath(root, path, flags, Links::Refused)?;
        let number = add(&self.inotify, &directory)?;
        self.directories.insert(number, path.to_owned());
        for entry in entries(&directory)? {
            let (name, kind) = entry?;
            let path = path.join(name);
            if findings == Findings::Told {
                told(&path, kind, changes);
            }
            if kind != FileType::Directory {
                continue;
            }
            if self.directories.len() + waiting.len() >= DIRECTORIES_MAX {
                return Err(Errno::NOSPC);
            }
            waiting.push(path);
        }
        Ok(())
    }
}

fn identity(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    let stat = fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn told(path: &Path, kind: FileType, changes: &mut Vec<FileChange>) {
    if changes.len() >= CHANGES_MAX {
        if changes.last() != Some(&FileChange::Overflow) {
            changes.push(FileChange::Overflow);
        }
        return;
    }
    changes.push(FileChange::Created {
        path: printable_path(path),
        kind: match kind {
            FileType::Directory => FileKind::Directory,
            _ => FileKind::File,
        },
    });
}

/// Watches an open directory. The call wants a name, and this one is the directory that was
/// opened, whatever has happened to its other names.
fn add(inotify: &OwnedFd, directory: &OwnedFd) -> Result<i32, Errno> {
    let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
    inotify::add_watch(inotify, name, WATCHED)
}
