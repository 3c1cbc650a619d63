//! The walk that both searches share: which entries are seen, and on how many threads.
//!
//! Directories are opened beneath the root's own descriptor and through no link, and what is in
//! them is reached through theirs. So there are no loops and no way out, also when somebody
//! exchanges a directory for a link while it is being searched.

use std::{
    ffi::OsStr,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use rustix::{
    fs::{FileType, OFlags},
    io::Errno,
};

use super::{
    bounds::{Bounds, SEARCH_THREADS_MAX},
    ignored::Rules,
    root::Root,
};
use crate::files::{Links, READING, Reach, entries, open_beneath};

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

/// One entry of a directory that is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) name: &'a OsStr,
    /// The whole path, by the name that the root was asked for.
    pub(super) path: &'a Path,
    /// Links are links.
    pub(super) kind: FileType,
}

/// What to do with an entry that is a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Enter,
    Skip,
}

/// How a walk went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    pub(super) time_over: bool,
    /// Directories that could not be read.
    pub(super) unreadable: u64,
}

/// Walks a directory on several threads, each with a visitor of its own. Entries come in any
/// order; the callers keep the first ones by path.
pub(super) fn walk<V>(
    root: &Root,
    reach: &Reach,
    scope: Scope,
    bounds: Bounds,
    visitor: impl Fn() -> V + Sync,
) -> Walked
where
    V: FnMut(Entry<'_>) -> Next,
{
    let rules = match (scope, &root.real) {
        (Scope::Everything, _) => None,
        (Scope::Visible, None) => Some(Rules::default()),
        (Scope::Visible, Some(real)) => Some(Rules::above(real, reach)),
    };
    let walk = Walk {
        root,
        bounds,
        state: Mutex::new(State {
            pending: vec![Pending {
                path: PathBuf::new(),
                rules,
            }],
            ..State::default()
        }),
        changed: Condvar::new(),
    };
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(SEARCH_THREADS_MAX);
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| walk.work(visitor()));
        }
        walk.work(visitor());
    });
    lock(&walk.state).walked
}

/// What the threads share may be used after one panicked: it left whole results behind.
pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Walk<'a> {
    root: &'a Root,
    bounds: Bounds,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    pending: Vec<Pending>,
    /// Directories being read, from which more may come.
    busy: usize,
    walked: Walked,
}

/// A directory that waits to be read, by its path below the root.
struct Pending {
    path: PathBuf,
    rules: Option<Rules>,
}

impl Walk<'_> {
    fn work(&self, mut visit: impl FnMut(Entry<'_>) -> Next) {
        while let Some(directory) = self.take() {
            let mut found = Found {
                walk: self,
                directories: Vec::new(),
            };
            match self.read(&directory, &mut visit, &mut found.directories) {
                // Gone or replaced since it was listed: as good as never seen.
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) => lock(&self.state).walked.unreadable += 1,
            }
        }
    }

    /// The next directory; waits while others may still find some.
    fn take(&self) -> Option<Pending> {
        let mut state = lock(&self.state);
        loop {
            if self.bounds.is_over() && !state.pending.is_empty() {
                state.walked.time_over = true;
            }
            if state.walked.time_over {
                return None;
            }
            if let Some(next) = state.pending.pop() {
                state.busy += 1;
                return Some(next);
            }
            if state.busy == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn read(
        &self,
        pending: &Pending,
        visit: &mut impl FnMut(Entry<'_>) -> Next,
        found: &mut Vec<Pending>,
    ) -> Result<(), Errno> {
        let flags = READING | OFlags::DIRECTORY;
        let directory = open_beneath(&self.root.opened, &pending.path, flags, Links::Refused)?;
        let real = self.root.real.as_ref().unwrap_or(&self.root.path);
        let real = real.join(&pending.path);
        let rules = pending
            .rules
            .as_ref()
            .map(|rules| rules.entering(&directory, &real));
        let shown = self.root.path.join(&pending.path);
        for entry in entries(&directory)? {
            if self.bounds.is_over() {
                lock(&self.state).walked.time_over = true;
                return Ok(());
            }
            let (name, kind) = entry?;
            let is_directory = kind == FileType::Directory;
            let is_left_out = |rules: &Rules| rules.leave_out(&real.join(&name), is_directory);
            if rules.as_ref().is_some_and(is_left_out) {
                continue;
            }
            let entry = Entry {
                directory: directory.as_fd(),
                name: &name,
                path: &shown.join(&name),
                kind,
            };
            if visit(entry) == Next::Enter && is_directory {
                found.push(Pending {
                    path: pending.path.join(&name),
                    rules: rules.clone(),
                });
            }
        }
        Ok(())
    }
}

/// What was found in one directory. Handed over when that has been read, also when reading it
/// panicked, for the others wait for it.
struct Found<'a> {
    walk: &'a Walk<'a>,
    directories: Vec<Pending>,
}

impl Drop for Found<'_> {
    fn drop(&mut self) {
        // The list is taken from its end, and early results spare the search of late ones.
        self.directories
            .sort_unstable_by(|a, b| b.path.cmp(&a.path));
        let mut state = lock(&self.walk.state);
        state.pending.append(&mut self.directories);
        state.busy -= 1;
        drop(state);
        self.walk.changed.notify_all();
    }
}
