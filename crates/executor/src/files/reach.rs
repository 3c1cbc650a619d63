//! How much of the file system may be reached, and the directories that are made on the way.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, Stat, fstat, stat, unlinkat},
    io::Errno,
};

use super::{
    Failure,
    beneath::Beneath,
    entries::{NewDirectory, make_directory},
    name::printable_path,
};

/// What of the file system may be reached: by file actions, searches and transfers alike.
#[derive(Debug)]
pub(crate) enum Reach {
    /// All that the process may; the walls are somebody else's.
    WholeFilesystem,
    /// Only this directory: links, `..` and absolute paths that lead out are refused.
    Beneath(Beneath),
}

/// Why a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace root `{}`", root.display())]
pub struct OpenWorkspaceError {
    root: PathBuf,
    source: std::io::Error,
}

/// Why a directory could not be made, and which of those on the way is to blame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unmade {
    pub(crate) errno: Errno,
    pub(crate) path: PathBuf,
}

/// Directories that were made; they go away again unless they are kept.
#[derive(Debug)]
pub(crate) struct Made {
    reach: Arc<Reach>,
    paths: Vec<PathBuf>,
}

/// Enough of a directory to work in it.
const PASSING: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Reach {
    /// Opens the directory to stay beneath.
    pub(crate) fn beneath(root: &Path) -> Result<Self, OpenWorkspaceError> {
        match Beneath::open_root(root) {
            Ok(beneath) => Ok(Self::Beneath(beneath)),
            Err(errno) => Err(OpenWorkspaceError {
                root: root.to_owned(),
                source: errno.into(),
            }),
        }
    }

    /// Opens an absolute path; `EXDEV` says that it leads out, and nothing else does.
    pub(crate) fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        match self {
            Self::WholeFilesystem => rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()),
            Self::Beneath(beneath) => beneath.open(path, flags),
        }
    }

    /// What is at an absolute path, links followed; `EXDEV` says that it leads out.
    pub(crate) fn stat(&self, path: &Path) -> Result<Stat, Errno> {
        match self {
            Self::WholeFilesystem => stat(path),
            Self::Beneath(beneath) => fstat(beneath.open(path, OFlags::PATH)?),
        }
    }

    /// Opens a directory to work in.
    pub(crate) fn open_directory(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.open(path, PASSING)
    }

    /// What a refusal to open means, in words that name the path and what is allowed.
    pub(crate) fn failure(&self, errno: Errno, shown: &str) -> Failure {
        match (errno, self) {
            (Errno::XDEV, Self::Beneath(beneath)) => Failure::Outside {
                path: shown.to_owned(),
                root: printable_path(beneath.root()),
            },
            // A socket cannot be opened at all; the kernel's words for that would not help.
            (Errno::NXIO, _) => Failure::special(shown, "socket"),
            (errno, _) => Failure::os(errno, shown),
        }
    }

    /// Opens an absolute path to a directory, making what is missing.
    pub(crate) fn open_or_make(
        self: &Arc<Self>,
        path: &Path,
        new: NewDirectory,
    ) -> Result<(OwnedFd, Made), Unmade> {
        let mut made = Made {
            reach: Arc::clone(self),
            paths: Vec::new(),
        };
        let unmade = |errno, path: &Path| Unmade {
            errno,
            path: path.to_owned(),
        };
        let mut missing = Vec::new();
        let mut blocked = None;
        let mut above = None;
        for directory in path.ancestors() {
            match self.open_directory(directory) {
                Ok(handle) => {
                    above = Some(handle);
                    break;
                }
                Err(Errno::NOENT) => missing.push(directory),
                Err(Errno::XDEV) => return Err(unmade(Errno::XDEV, path)),
                // What stands in the way also hides all that is below it.
                Err(errno) => blocked = Some(unmade(errno, directory)),
            }
        }
        if let Some(blocked) = blocked {
            return Err(blocked);
        }
        let mut above = above.ok_or_else(|| unmade(Errno::NOENT, path))?;
        for directory in missing.into_iter().rev() {
            // `..` is never missing once what it stands in is there.
            if let Some(name) = directory.file_name() {
                match make_directory(&above, name, new) {
                    Ok(_) => made.paths.push(directory.to_owned()),
                    // Made by someone else in between.
                    Err(Errno::EXIST) => {}
                    Err(errno) => return Err(unmade(errno, directory)),
                }
            }
            above = match self.open_directory(directory) {
                Ok(handle) => handle,
                Err(Errno::XDEV) => return Err(unmade(Errno::XDEV, path)),
                Err(errno) => return Err(unmade(errno, directory)),
            };
        }
        Ok((above, made))
    }
}

impl Made {
    /// What they were made for succeeded: they stay.
    pub(crate) fn keep(&mut self) {
        self.paths.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in self.paths.iter().rev() {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                continue;
            };
            if let Ok(directory) = self.reach.open_directory(parent) {
                // Refused when something is in it by now, which then must stay.
                let _ = unlinkat(directory, name, AtFlags::REMOVEDIR);
            }
        }
    }
}
