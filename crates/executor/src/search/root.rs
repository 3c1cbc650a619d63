//! Where a search starts, and why it cannot.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{FileType, Stat, fstat, stat},
    io::Errno,
};

use crate::files::{Failure, FilePath, READING, Reach, printable_path};

/// Why a search was not begun. The texts are read by the agent, so they name what is wrong.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartSearch {
    #[error("The pattern must not be empty.")]
    EmptyPattern,
    #[error("Invalid glob pattern '{pattern}': {reason}.")]
    Glob { pattern: String, reason: String },
    #[error("Invalid regular expression '{pattern}': {reason}.")]
    Regex { pattern: String, reason: String },
    #[error("Path does not exist: '{path}'.")]
    Missing { path: String },
    #[error("Path is not a directory: '{path}'.")]
    NotADirectory { path: String },
    #[error("Path is neither a regular file nor a directory: '{path}'.")]
    Special { path: String },
    #[error("Cannot search '{path}': {reason}.")]
    Unreadable { path: String, reason: String },
    /// The path leads out of what may be reached.
    #[error(transparent)]
    Outside(Failure),
}

/// The place to search: what was opened, and its name.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    /// The same place without links, by which the directories above it are found; `None` when
    /// it is not there any more under any name.
    pub(super) real: Option<PathBuf>,
    pub(super) opened: OwnedFd,
    pub(super) kind: FileType,
}

impl Root {
    /// Opens the path of an action, which is meant from the shell's directory.
    ///
    /// A link that the agent names itself is followed, as far as may be reached; only links met
    /// on the way are not.
    pub(super) fn find(
        asked: Option<&str>,
        cwd: &Path,
        reach: &Reach,
    ) -> Result<Self, StartSearch> {
        let asked = asked.filter(|asked| !asked.is_empty()).unwrap_or(".");
        let located = FilePath::locate(asked, cwd).map_err(|failure| StartSearch::Unreadable {
            path: asked.escape_debug().to_string(),
            reason: failure.to_string(),
        })?;
        let path = located.as_path();
        let opened = reach
            .open(path, READING)
            .map_err(|errno| refused(errno, &located, reach))?;
        let stat = fstat(&opened).map_err(|errno| refused(errno, &located, reach))?;
        let real = real_name(path, &stat);
        // A lexical answer to `..` is wrong behind a link, so the file system is asked.
        let climbs = path
            .components()
            .any(|component| component == Component::ParentDir);
        let path = match &real {
            Some(real) if climbs => real.clone(),
            _ => path.to_owned(),
        };
        Ok(Self {
            path,
            real,
            opened,
            kind: FileType::from_raw_mode(stat.st_mode),
        })
    }

    /// The path as the agent reads it.
    pub(super) fn shown(&self) -> String {
        printable_path(&self.path)
    }
}

/// The name without links of what was opened, unless that name means something else by now.
fn real_name(path: &Path, opened: &Stat) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let there = stat(&real).ok()?;
    let is_same = (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino);
    is_same.then_some(real)
}

fn refused(errno: Errno, path: &FilePath, reach: &Reach) -> StartSearch {
    let shown = path.shown().to_owned();
    match (errno, reach.failure(errno, &shown)) {
        (_, failure @ Failure::Outside { .. }) => StartSearch::Outside(failure),
        (_, Failure::Special { .. }) => StartSearch::Special { path: shown },
        (Errno::NOENT, _) => StartSearch::Missing { path: shown },
        (errno, _) => StartSearch::Unreadable {
            path: shown,
            reason: io::Error::from(errno).to_string(),
        },
    }
}
