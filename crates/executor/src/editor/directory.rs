//! The view of a directory: two levels, hidden entries left out.

use std::os::{fd::OwnedFd, unix::ffi::OsStrExt};

use super::listing::{DIRECTORY_CLIPPED, clip};
use crate::files::{self, EntryKind, FilePath, Opened, Workspace};

/// Far more than are shown; past it no further directory is opened.
const COLLECTED_MAX: usize = 100_000;

/// The sentence, the sorted paths, and how many hidden entries there are.
pub(super) fn listing(workspace: &Workspace, path: &FilePath, handle: OwnedFd) -> String {
    let mut found = vec![(path.shown().to_owned(), EntryKind::Directory)];
    let mut hidden = 0;
    for (name, kind) in files::listing(workspace, path, handle) {
        if name.as_bytes().starts_with(b".") {
            hidden += 1;
            continue;
        }
        let child = path.child(&name);
        found.push((child.shown().to_owned(), kind));
        if kind == EntryKind::Directory && found.len() < COLLECTED_MAX {
            collect(workspace, &child, &mut found);
        }
    }
    found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let lines: Vec<String> = found.into_iter().map(marked).collect();
    let mut out = format!(
        "Here's the files and directories up to 2 levels deep in {}, excluding hidden items:\n{}",
        path.shown(),
        clip(&lines.join("\n"), DIRECTORY_CLIPPED)
    );
    if hidden > 0 {
        out.push_str(&format!(
            "\n\n{hidden} hidden files/directories in this directory are excluded. You can use 'ls -la {}' to see them.",
            path.shown()
        ));
    }
    out
}

fn collect(workspace: &Workspace, path: &FilePath, found: &mut Vec<(String, EntryKind)>) {
    // A directory that may not be opened is listed and not descended into, as `find` does it.
    let Ok(Opened::Directory(handle)) = workspace.open(path) else {
        return;
    };
    for (name, kind) in files::listing(workspace, path, handle) {
        if !name.as_bytes().starts_with(b".") {
            found.push((path.child(&name).shown().to_owned(), kind));
        }
    }
}

fn marked((path, kind): (String, EntryKind)) -> String {
    match kind {
        EntryKind::Directory if !path.ends_with('/') => format!("{path}/"),
        EntryKind::Directory | EntryKind::File | EntryKind::Dangling => path,
    }
}
