//! What a sandbox has changed in its workspace, read from outside.
//!
//! The changes of a workspace that is copied on write are in the upper directory of its overlay.
//! All of it was written by the sandbox and is hostile: paths are resolved below a descriptor and
//! without links (`tree`), and every amount has a limit. An overlay marks what is deleted by a
//! *whiteout* in its place, and by an *opaque* directory that hides the one below (`walk`).
//!
//! [`Layers`] is the one reader of a layer: lists and patches are made from the same comparison.

mod patch;
mod renames;
mod tree;
mod walk;

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use zareba_runtime::{
    ChangeKind, ChangedContent, UnreadPlace, WorkspaceChange, WorkspaceChanges, WorkspacePatch,
};

use patch::shown;
use tree::{Node, Tree};
use walk::Change;

/// Where the changes of a workspace go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangesPlace {
    /// Into a layer over this directory.
    Layer {
        /// The directory that the workspace shows.
        lower: PathBuf,
    },
    /// The workspace began empty, and everything in it is a change.
    Own,
    /// Into the directory that the workspace shows, or nowhere.
    Direct,
}

/// A workspace and what a sandbox put over it.
#[derive(Debug)]
pub(crate) struct Layers {
    /// Nothing, where the workspace began empty.
    lower: Option<Tree>,
    upper: Tree,
}

impl Layers {
    /// Those of a sandbox with this directory; `None` if the changes are not kept apart.
    pub(crate) fn open(place: &ChangesPlace, directory: &Path) -> io::Result<Option<Self>> {
        let own = directory.join("layer/workspace");
        match place {
            ChangesPlace::Layer { lower } => Ok(Some(Self {
                lower: Some(Tree::open_direct(lower)?),
                upper: Tree::open(&own.join("upper"))?,
            })),
            ChangesPlace::Own => Ok(Some(Self {
                lower: None,
                upper: Tree::open(&own)?,
            })),
            ChangesPlace::Direct => Ok(None),
        }
    }

    /// What has changed below a path.
    pub(crate) fn changes(&self, below: &Path) -> WorkspaceChanges {
        let found = walk::compare(self, below);
        let unread = found.unread.into_iter();
        WorkspaceChanges {
            changes: found.changes.into_iter().filter_map(told).collect(),
            unread: unread
                .map(|(path, reason)| UnreadPlace {
                    path: shown(path),
                    reason,
                })
                .collect(),
        }
    }

    /// The same as a patch.
    pub(crate) fn patch(&self, below: &Path) -> WorkspacePatch {
        let found = walk::compare(self, below);
        WorkspacePatch {
            bytes: patch::write(self, &found),
        }
    }
}

/// The path that a request means, relative to the workspace; `None` if it leads elsewhere.
pub(crate) fn below(workspace: &Path, asked: Option<&str>) -> Option<PathBuf> {
    let asked = zareba_executor::meant_path(asked.unwrap_or_default());
    let asked = match asked.strip_prefix(workspace) {
        Ok(relative) => relative.to_owned(),
        Err(_) if asked.is_absolute() => return None,
        Err(_) => asked,
    };
    let mut below = PathBuf::new();
    for part in asked.components() {
        match part {
            Component::Normal(name) => below.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(below)
}

fn told(change: Change) -> Option<WorkspaceChange> {
    let kind = match (&change.before, &change.after, change.from) {
        (_, _, Some(from)) => ChangeKind::Renamed { from: shown(from) },
        (None, _, None) => ChangeKind::Added,
        (Some(_), None, None) => ChangeKind::Deleted,
        (Some(_), Some(_), None) => ChangeKind::Modified,
    };
    let content = match change.after.or(change.before)? {
        Node::Directory => ChangedContent::Directory,
        Node::File {
            bytes,
            is_executable,
        } => ChangedContent::File {
            bytes,
            is_executable,
        },
        Node::Link { target } => ChangedContent::Link {
            target: shown(target),
        },
        Node::Special | Node::Whiteout => ChangedContent::Special,
    };
    Some(WorkspaceChange {
        path: shown(change.path),
        kind,
        content,
    })
}

#[cfg(test)]
#[path = "changes/changes_tests.rs"]
mod changes_tests;
