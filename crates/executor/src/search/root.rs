//! Where a search starts, and why it cannot.

use std::{
    fs::Metadata,
    io,
    path::{Component, Path, PathBuf},
};

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
}

/// The place to search: an absolute path and what is there.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    pub(super) metadata: Metadata,
}

impl Root {
    /// Resolves the path of an action against the shell's directory.
    ///
    /// A link that the agent names itself is followed; only links met on the way are not.
    pub(super) fn find(asked: Option<&str>, cwd: &Path) -> Result<Self, StartSearch> {
        let path = tidy(&cwd.join(asked.unwrap_or("")));
        let shown = || path.display().to_string();
        let metadata = std::fs::metadata(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StartSearch::Missing { path: shown() },
            _ => StartSearch::Unreadable {
                path: shown(),
                reason: error.to_string(),
            },
        })?;
        Ok(Self { path, metadata })
    }

    /// The path as the agent reads it.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

/// Drops `.` and doubled slashes; asks the file system only when there is a `..`, because a
/// lexical answer is wrong behind a link.
fn tidy(path: &Path) -> PathBuf {
    let has_parent = path
        .components()
        .any(|component| component == Component::ParentDir);
    if has_parent && let Ok(resolved) = path.canonicalize() {
        return resolved;
    }
    path.components().collect()
}
