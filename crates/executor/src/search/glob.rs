//! `glob`: the names of files that match a pattern.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::fs::FileType;
use zareba_protocol::{FilesFound, FindFiles, Observation, ObservationKind};

use super::{
    bounds::{Bounds, GLOB_LIMIT_DEFAULT, GLOB_LIMIT_MAX, Shortfall},
    pattern::{PathPattern, fixed_directory},
    root::{Root, StartSearch},
    walk::{Entry, Next, Scope, lock, walk},
};
use crate::files::{Reach, printable_path};

/// Finds files by name. Links are listed by their own name and not followed.
pub(crate) fn glob(action: &FindFiles, cwd: &Path, reach: &Reach) -> Observation {
    let bounds = Bounds::starting_now(action.limit, GLOB_LIMIT_DEFAULT, GLOB_LIMIT_MAX);
    glob_within(action, cwd, reach, bounds)
}

pub(super) fn glob_within(
    action: &FindFiles,
    cwd: &Path,
    reach: &Reach,
    bounds: Bounds,
) -> Observation {
    match find(action, cwd, reach, bounds) {
        Ok(observation) => observation,
        Err(error) => Observation::error(error.to_string()),
    }
}

fn find(
    action: &FindFiles,
    cwd: &Path,
    reach: &Reach,
    bounds: Bounds,
) -> Result<Observation, StartSearch> {
    let pattern = PathPattern::new(&action.pattern)?;
    let start = action
        .path
        .as_deref()
        .or_else(|| fixed_directory(&action.pattern));
    let root = Root::find(start, cwd, reach)?;
    if root.kind != FileType::Directory {
        return Err(StartSearch::NotADirectory { path: root.shown() });
    }
    let found = Mutex::new(Found::default());
    let scope = Scope::of(action.include_ignored);
    let walked = walk(&root, reach, scope, bounds, || {
        |entry: Entry<'_>| visit(entry, &root.path, &pattern, bounds, &found)
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.shortfall.add(walked);
    Ok(report(action, &root, bounds, found))
}

/// The first paths in order, one more than the limit so that a cut is noticed.
#[derive(Debug, Default)]
struct Found {
    paths: BTreeSet<PathBuf>,
    shortfall: Shortfall,
}

impl Found {
    /// Nothing at or below this path can be among the first results any more.
    fn is_beyond(&self, path: &Path, limit: usize) -> bool {
        self.paths.len() > limit && self.paths.last().is_some_and(|last| path > last.as_path())
    }
}

fn visit(
    entry: Entry<'_>,
    root: &Path,
    pattern: &PathPattern,
    bounds: Bounds,
    found: &Mutex<Found>,
) -> Next {
    let is_match = match entry.kind {
        FileType::RegularFile | FileType::Symlink => pattern.matches(root, entry.path),
        FileType::Directory => false,
        _ => return Next::Skip,
    };
    if !is_match && entry.kind != FileType::Directory {
        return Next::Skip;
    }
    let mut found = lock(found);
    if found.is_beyond(entry.path, bounds.limit) {
        return Next::Skip;
    }
    if is_match {
        found.paths.insert(entry.path.to_path_buf());
        if found.paths.len() > bounds.limit + 1 {
            found.paths.pop_last();
        }
    }
    Next::Enter
}

fn report(action: &FindFiles, root: &Root, bounds: Bounds, found: Found) -> Observation {
    let Found {
        mut paths,
        mut shortfall,
    } = found;
    while paths.len() > bounds.limit {
        shortfall.limit_hit = true;
        paths.pop_last();
    }
    let files: Vec<String> = paths.iter().map(|path| printable_path(path)).collect();
    let mut lines = files.clone();
    if lines.is_empty() {
        lines.push(format!(
            "No files match '{}' in {}.",
            action.pattern,
            root.shown()
        ));
    }
    lines.extend(shortfall.sentences(bounds.limit, "files"));
    Observation {
        content: lines.join("\n"),
        kind: ObservationKind::Glob(FilesFound {
            path: root.shown(),
            pattern: action.pattern.clone(),
            files,
            truncated: shortfall.is_truncated(),
        }),
    }
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
