//! The walk that both searches share: which entries are seen, and on how many threads.

use std::{path::Path, thread};

use ignore::{WalkBuilder, WalkParallel};

use super::bounds::SEARCH_THREADS_MAX;

/// Whether hidden and ignored files are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Visible,
    Everything,
}

impl Scope {
    /// The scope that an action's `include_ignored` asks for.
    pub(super) fn of(include_ignored: bool) -> Self {
        if include_ignored {
            Self::Everything
        } else {
            Self::Visible
        }
    }
}

/// A walk on several threads. Entries come in any order; the callers keep the first ones by path.
///
/// Links are not followed, so there are no loops and no way out. The user's global ignore file
/// is left out: it belongs to whoever runs the executor, not to the workspace.
pub(super) fn walk(root: &Path, scope: Scope) -> WalkParallel {
    let respected = scope == Scope::Visible;
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(SEARCH_THREADS_MAX);
    WalkBuilder::new(root)
        .standard_filters(respected)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .threads(threads)
        .build_parallel()
}
