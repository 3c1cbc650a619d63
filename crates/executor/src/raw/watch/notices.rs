//! The kernel's notices, read and turned into changes.

use std::{
    ffi::OsStr,
    io,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::PathBuf,
    sync::Arc,
};

use rustix::{
    fs::inotify::{ReadFlags, Reader},
    io::Errno,
};
use zareba_wire::files::{FileChange, FileKind};

use super::tree::{CHANGES_MAX, Tree};
use crate::files::printable_path;

/// Bytes of notices that are read at a time.
const BUFFER_BYTES: usize = 16 * 1024;

/// Turns notices into changes.
#[derive(Debug)]
pub(super) struct Notices {
    tree: Tree,
    /// Something that left, and may have arrived elsewhere.
    leaving: Option<Leaving>,
    is_gone: bool,
}

#[derive(Debug)]
struct Leaving {
    cookie: u32,
    path: PathBuf,
    kind: FileKind,
}

/// One notice, apart from the buffer that it was read into.
struct Notice {
    number: i32,
    flags: ReadFlags,
    cookie: u32,
    path: Option<PathBuf>,
}

impl Notices {
    pub(super) fn new(tree: Tree) -> Self {
        Self {
            tree,
            leaving: None,
            is_gone: false,
        }
    }

    pub(super) fn handle(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.tree.inotify)
    }

    /// The directory itself is gone, and there will be no more changes.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The second half of a rename is missing.
    pub(super) fn is_half_renamed(&self) -> bool {
        self.leaving.is_some()
    }

    /// Reads what there is.
    pub(super) fn read(&mut self) -> io::Result<Vec<FileChange>> {
        let mut changes = Vec::new();
        let handle = self.handle();
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(&*handle, &mut buffer);
        while !self.is_gone && (changes.len() < CHANGES_MAX || !reader.is_buffer_empty()) {
            let notice = match reader.next() {
                Ok(event) => {
                    let name = event
                        .file_name()
                        .map(|name| OsStr::from_bytes(name.to_bytes()));
                    Notice {
                        number: event.wd(),
                        flags: event.events(),
                        cookie: event.cookie(),
                        path: name.and_then(|name| self.tree.path(event.wd(), name)),
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            self.take(notice, &mut changes);
        }
        Ok(changes)
    }

    fn take(&mut self, notice: Notice, changes: &mut Vec<FileChange>) {
        let flags = notice.flags;
        let arrives = flags.contains(ReadFlags::MOVED_TO);
        if !arrives || self.leaving.as_ref().map(|half| half.cookie) != Some(notice.cookie) {
            changes.extend(self.give_up_waiting());
        }
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            changes.push(FileChange::Overflow);
            // Directories may have come that nobody told of.
            changes.extend(self.tree.look());
            return;
        }
        let ended = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
        if self.tree.is_root(notice.number) && flags.intersects(ended | ReadFlags::IGNORED) {
            changes.push(FileChange::Gone);
            self.is_gone = true;
            return;
        }
        if flags.contains(ReadFlags::IGNORED) {
            self.tree.forget(notice.number);
        }
        if let Some(path) = notice.path {
            self.tell(flags, notice.cookie, path, changes);
        }
    }

    fn tell(
        &mut self,
        flags: ReadFlags,
        cookie: u32,
        path: PathBuf,
        changes: &mut Vec<FileChange>,
    ) {
        let kind = match flags.contains(ReadFlags::ISDIR) {
            true => FileKind::Directory,
            false => FileKind::File,
        };
        let shown = printable_path(&path);
        if flags.contains(ReadFlags::MOVED_FROM) {
            self.leaving = Some(Leaving { cookie, path, kind });
        } else if flags.contains(ReadFlags::MOVED_TO)
            && let Some(left) = self.leaving.take()
        {
            changes.push(FileChange::Renamed {
                path: printable_path(&left.path),
                to: shown,
                kind,
            });
            self.tree.renamed(&left.path, &path);
        } else if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            changes.push(FileChange::Created { path: shown, kind });
            if kind == FileKind::Directory {
                self.tree.adopt(&path, changes);
            }
        } else if flags.contains(ReadFlags::DELETE) {
            changes.push(FileChange::Removed { path: shown, kind });
        } else if flags.intersects(ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE) {
            let change = FileChange::Modified { path: shown };
            // A program that writes in small pieces makes one change.
            if changes.last() != Some(&change) {
                changes.push(change);
            }
        }
    }

    /// What left did not arrive where it could be seen.
    pub(super) fn give_up_waiting(&mut self) -> Vec<FileChange> {
        let Some(left) = self.leaving.take() else {
            return Vec::new();
        };
        self.tree.abandon(&left.path);
        vec![FileChange::Removed {
            path: printable_path(&left.path),
            kind: left.kind,
        }]
    }
}
