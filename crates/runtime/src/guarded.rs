//! Names in a read-write workspace that other programs of this machine act on.
//!
//! A workspace whose changes reach the machine is more than files: git runs hooks and what its
//! configuration names, editors run tasks, shells load `.envrc`. Guarded names can be neither changed nor
//! made inside (NS-6): a backend mounts each of them over itself, read-only, and what is missing is stood in
//! for by an empty directory (`stand_in`). In a repository the same holds for `.git/hooks` and `.git/config`,
//! which are made, empty, where a `.git` lacks them. An agent can still make a repository in a directory
//! that was none, with hooks in it, unless `.git` is one of the names; a repository further below; and in
//! a repository the file `.git/commondir`, which points git to another configuration. An operator who wants
//! none of that chooses to copy on write, where a person looks at changes before they reach the machine.
//!
//! Everything starts from one descriptor of the workspace, which is opened without following links: another
//! sandbox may be at work in the same directory, or above it.

mod stand_in;

use std::{
    fs::File,
    io,
    os::{fd::AsFd, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, mkdirat, openat,
        openat2, statat,
    },
    io::Errno,
};

pub use stand_in::remove;

/// Names in a repository that git acts on; those of its submodules are as powerful as its own.
const ACTED_ON_BY_GIT: [&str; 3] = ["config", "hooks", "modules"];

/// What is to be guarded, and for which sandbox.
#[derive(Clone, Copy, Debug)]
pub struct Guarding<'a> {
    /// A directory of this machine whose changes reach it, by its real path.
    pub workspace: &'a Path,
    /// Names directly in it, beside those that git acts on.
    pub names: &'a [String],
    /// The sandbox's private directory, where it is noted what has to be removed.
    pub private: &'a Path,
    /// What an operator can do where a name cannot be guarded.
    pub remedy: &'a str,
}

/// What has to be mounted over itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedPath {
    /// Where it is, from the workspace on.
    pub below: PathBuf,
    /// What may be done with it.
    pub access: GuardedAccess,
}

/// What may be done with a guarded path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardedAccess {
    /// Reading.
    ReadOnly,
    /// Changing what is in it, but not moving it away with what is mounted in it.
    ReadWrite,
}

/// What is guarded.
#[derive(Debug)]
pub struct Guarded {
    /// In the order in which they are mounted.
    pub paths: Vec<GuardedPath>,
    /// As long as one of a workspace is open, no stand-in in it is removed. `None` where there is no
    /// stand-in, and on file systems without locks.
    pub lock: Option<File>,
}

/// Makes what is missing, and says what has to be mounted read-only.
///
/// # Errors
/// When a name is neither a file nor a directory, when it can be neither made nor left out, and when a
/// program keeps the workspace locked.
pub fn guard(guarding: &Guarding<'_>) -> io::Result<Guarded> {
    let directory = stand_in::open_workspace(guarding.workspace)?;
    let is_locked =
        !guarding.names.is_empty() && stand_in::lock_shared(&directory, guarding.workspace)?;
    if !guarding.names.is_empty() {
        stand_in::make(&directory, guarding)?;
    }
    let paths = paths(&directory, guarding)?;
    Ok(Guarded {
        paths,
        lock: is_locked.then_some(directory),
    })
}

/// The same for a sandbox that starts again, with the mounts that it was made with. `None` where nothing
/// was guarded.
///
/// # Errors
/// As [`guard`].
pub fn guard_again(private: &Path, remedy: &str) -> io::Result<Option<Guarded>> {
    let Some(note) = stand_in::noted(private) else {
        return Ok(None);
    };
    let guarding = Guarding {
        workspace: &note.workspace,
        names: &note.names,
        private,
        remedy,
    };
    guard(&guarding).map(Some)
}

/// Keeps stand-ins in a directory as long as the file is open. `None` on file systems without locks.
///
/// # Errors
/// When it cannot be opened, or a program keeps it locked.
pub fn hold(directory: &Path) -> io::Result<Option<File>> {
    // Not by the call that follows no links: inside a sandbox it is not there.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let file: File = openat(CWD, directory, flags, Mode::empty())?.into();
    let is_locked = stand_in::lock_shared(&file, directory)?;
    Ok(is_locked.then_some(file))
}

fn paths(directory: &File, guarding: &Guarding<'_>) -> io::Result<Vec<GuardedPath>> {
    let mut paths = Vec::new();
    let mut add = |below: PathBuf, access| paths.push(GuardedPath { below, access });
    for name in guarding.names {
        if is_there(directory, name, guarding)?.is_some() {
            add(name.into(), GuardedAccess::ReadOnly);
        }
    }
    if guarding.names.iter().any(|name| name == ".git") {
        return Ok(paths);
    }
    match is_there(directory, ".git", guarding)? {
        None => {}
        // The place of a repository that is somewhere else, as in a second working tree.
        Some(Kind::File) => add(".git".into(), GuardedAccess::ReadOnly),
        Some(Kind::Directory) => {
            let git = open_repository(directory)?;
            complete_repository(&git)?;
            // Without a mount of its own it could be moved away, with all that is mounted in it.
            add(".git".into(), GuardedAccess::ReadWrite);
            for name in ACTED_ON_BY_GIT {
                if is_there(&git, name, guarding)?.is_some() {
                    add(Path::new(".git").join(name), GuardedAccess::ReadOnly);
                }
            }
        }
    }
    Ok(paths)
}

enum Kind {
    File,
    Directory,
}

/// What has a name that shall be mounted on, which cannot be a link: a program that can change the
/// directory could point it elsewhere.
fn is_there(directory: &File, name: &str, guarding: &Guarding<'_>) -> io::Result<Option<Kind>> {
    let found = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        found => found?,
    };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => Ok(Some(Kind::Directory)),
        FileType::RegularFile => Ok(Some(Kind::File)),
        _ => Err(io::Error::other(format!(
            "`{name}` in `{}` is neither a file nor a directory, and so cannot be kept from being \
             changed: remove it; or {}",
            guarding.workspace.display(),
            guarding.remedy
        ))),
    }
}

fn open_repository(directory: &File) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    Ok(openat2(directory, ".git", flags, Mode::empty(), resolve)?.into())
}

/// Makes what git would look for, so that there is something to guard.
fn complete_repository(git: &File) -> io::Result<()> {
    let owner = git.metadata()?;
    let git = git.as_fd();
    let give = |name: &str| {
        let (uid, gid) = (Uid::from_raw(owner.uid()), Gid::from_raw(owner.gid()));
        chownat(git, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
    };
    match mkdirat(git, "hooks", Mode::from_raw_mode(0o755)) {
        Ok(()) => give("hooks")?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(git, "config", flags, Mode::from_raw_mode(0o644)) {
        Ok(_) => give("config")?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

#[cfg(test)]
#[path = "guarded_tests.rs"]
mod tests;
