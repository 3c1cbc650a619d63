//! `glob`: the names of files that match a pattern.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use ignore::{DirEntry, WalkState};
use zareba_protocol::{FilesFound, FindFiles, Observation, ObservationKind};

use super::{
    bounds::{Bounds, GLOB_LIMIT_DEFAULT, GLOB_LIMIT_MAX, Shortfall},
    pattern::{PathPattern, fixed_directory},
    root::{Root, StartSearch},
    walk::{Scope, walk},
};

/// Finds files by name. Links are listed by their own name and not followed.
pub(crate) fn glob(action: &FindFiles, cwd: &Path) -> Observation {
    let bounds = Bounds::starting_now(action.limit, GLOB_LIMIT_DEFAULT, GLOB_LIMIT_MAX);
    glob_within(action, cwd, bounds)
}

pub(super) fn glob_within(action: &FindFiles, cwd: &Path, bounds: Bounds) -> Observation {
    match find(action, cwd, bounds) {
        Ok(observation) => observation,
        Err(error) => Observation::error(error.to_string()),
    }
}

fn find(action: &FindFiles, cwd: &Path, bounds: Bounds) -> Result<Observation, StartSearch> {
    let pattern = PathPattern::new(&action.pattern)?;
    let start = action
        .path
        .as_deref()
        .or_else(|| fixed_directory(&action.pattern));
    let root = Root::find(start, cwd)?;
    if !root.metadata.is_dir() {
        return Err(StartSearch::NotADirectory { path: root.shown() });
    }
    let found = Mutex::new(Found::default());
    walk(&root.path, Scope::of(action.include_ignored)).run(|| {
        Box::new(|entry| {
            if bounds.is_over() {
                lock(&found).shortfall.time_over = true;
                return WalkState::Quit;
            }
            match entry {
                Ok(entry) => visit(&entry, &root.path, &pattern, bounds, &found),
                Err(_) => {
                    lock(&found).shortfall.unreadable += 1;
                    WalkState::Continue
                }
            }
        })
    });
    Ok(report(
        action,
        &root,
        bounds,
        found.into_inner().unwrap_or_else(PoisonError::into_inner),
    ))
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
    entry: &DirEntry,
    root: &Path,
    pattern: &PathPattern,
    bounds: Bounds,
    found: &Mutex<Found>,
) -> WalkState {
    let Some(kind) = entry.file_type() else {
        return WalkState::Continue;
    };
    // A link at depth 0 is the root itself, which is not one of the names below it.
    let is_named = kind.is_file() || (kind.is_symlink() && entry.depth() > 0);
    let is_match = is_named && pattern.matches(root, entry.path());
    if !is_match && !kind.is_dir() {
        return WalkState::Continue;
    }
    let mut found = lock(found);
    if found.is_beyond(entry.path(), bounds.limit) {
        return WalkState::Skip;
    }
    if is_match {
        found.paths.insert(entry.path().to_path_buf());
        if found.paths.len() > bounds.limit + 1 {
            found.paths.pop_last();
        }
    }
    WalkState::Continue
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
    let files: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
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

/// A thread that panicked has left whole results behind, so they are used.
fn lock(found: &Mutex<Found>) -> std::sync::MutexGuard<'_, Found> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
