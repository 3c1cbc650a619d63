//! Directories that stand in for guarded names that a workspace lacks.
//!
//! A mount keeps a name from coming into being, and needs something to lie on. So each missing name becomes
//! an empty directory for as long as a sandbox runs, also where a program would look for a file: Git does
//! not record empty directories, and removing one can never remove content. Two facts tell a directory of
//! ours from a user's: nothing is in it, and it was last changed at a moment long before this program.
//!
//! Removing a directory takes away the mounts that other sandboxes have on it, and with them the guard. So a
//! process of every sandbox holds a shared lock on the workspace as long as the sandbox runs (the supervisor
//! of a native one, the executor of a container), and only the last one to end leaves a workspace that can be
//! locked alone. Then the directories are removed, by the supervisor or by the owner of the sandbox's private
//! directory, for which a note lies there. A program inside can lock the workspace too: until it ends, other sandboxes in
//! this workspace do not start, and the directories stay.
//!
//! Rejected: an overlay or FUSE over the whole workspace, whose changes would not reach the machine, or not
//! fast; permission events of fanotify, which do not exist for creation and renaming.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, FlockOperation, Gid, Mode, OFlags, ResolveFlags, Timespec,
        Timestamps, Uid, chownat, flock, mkdirat, openat2, statat, unlinkat, utimensat,
    },
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::Guarding;
use crate::notes;

/// When a directory of ours was last changed, to go by what it says of itself: in 1989. Even, and whole
/// seconds, because some file systems keep no more.
const MARK: i64 = 612_207_266;

/// A lock that is held alone is let go of at once. The kernel tells nobody, so it is asked this often.
const ATTEMPTS_MAX: usize = 100;
const ATTEMPT_AGAIN: Duration = Duration::from_millis(10);

const NOTE: &str = "guarded.json";

/// Where directories may have been made, for the program that removes them after a crash.
#[derive(Deserialize, Serialize)]
pub(super) struct Note {
    pub(super) workspace: PathBuf,
    pub(super) names: Vec<String>,
}

/// What is noted of the sandbox with this private directory.
pub(super) fn noted(private: &Path) -> Option<Note> {
    notes::read(private, NOTE)
}

/// Makes a directory for each name that is missing. They stay as long as `directory`, the workspace,
/// is locked (`lock_shared`).
pub(super) fn make(directory: &File, guarding: &Guarding<'_>) -> io::Result<()> {
    let Guarding {
        workspace,
        names,
        private,
        remedy,
    } = *guarding;
    let note = Note {
        workspace: workspace.to_owned(),
        names: names.to_vec(),
    };
    notes::write(private, NOTE, &note)?;
    let owner = directory.metadata()?;
    for name in names {
        match make_one(directory, name, &owner) {
            // Then nothing inside can make it either: without root it has our rights.
            Err(Errno::ROFS) => break,
            Err(Errno::ACCESS | Errno::PERM) if !rustix::process::geteuid().is_root() => break,
            Err(error) => {
                return Err(io::Error::other(format!(
                    "cannot guard `{name}` in `{}`: {error}; {remedy}",
                    workspace.display()
                )));
            }
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Removes what `make` has made for the sandbox of this private directory, unless another sandbox
/// runs in the same workspace: the last one removes it.
pub fn remove(private: &Path) {
    let Some(note) = noted(private) else {
        return;
    };
    let Ok(directory) = open_workspace(&note.workspace) else {
        return;
    };
    if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    for name in note.names {
        if is_ours(&directory, &name) {
            // Fails where something was put into it meanwhile.
            let _ = unlinkat(&directory, &name, AtFlags::REMOVEDIR);
        }
    }
}

pub(super) fn open_workspace(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // It had no links when it was chosen. One that is there now could lead anywhere.
    let resolve = ResolveFlags::NO_SYMLINKS;
    Ok(openat2(CWD, path, flags, Mode::empty(), resolve)?.into())
}

/// False where the file system has no locks.
pub(super) fn lock_shared(directory: &File, path: &Path) -> io::Result<bool> {
    for _ in 0..ATTEMPTS_MAX {
        match flock(directory, FlockOperation::NonBlockingLockShared) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => thread::sleep(ATTEMPT_AGAIN),
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other(format!(
        "a program keeps the directory `{}` locked: end it, or choose another workspace",
        path.display()
    )))
}

fn make_one(directory: &File, name: &str, owner: &Metadata) -> rustix::io::Result<()> {
    match mkdirat(directory, name, Mode::from_raw_mode(0o755)) {
        Err(Errno::EXIST) => return Ok(()),
        made => made?,
    }
    let (uid, gid) = (Uid::from_raw(owner.uid()), Gid::from_raw(owner.gid()));
    match chownat(
        directory,
        name,
        Some(uid),
        Some(gid),
        AtFlags::SYMLINK_NOFOLLOW,
    ) {
        // An ordinary user in another's directory.
        Err(Errno::PERM) | Ok(()) => {}
        Err(error) => return Err(error),
    }
    let moment = Timespec {
        tv_sec: MARK,
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: moment,
        last_modification: moment,
    };
    utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}

fn is_ours(directory: &File, name: &str) -> bool {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| {
        FileType::from_raw_mode(found.st_mode) == FileType::Directory && found.st_mtime == MARK
    })
}
