//! Changes of a session's workspace, as the other server tells them.

use zareba_client::{ChangeList, ChangedKind, WorkspaceChangeKind};
use zareba_runtime::{
    CHANGES_MAX, ChangeKind, ChangedContent, UnreadPlace, WorkspaceChange, WorkspaceChanges,
};

/// The same in the words of the runtime.
pub(super) fn changes(list: ChangeList) -> WorkspaceChanges {
    let unread = list.unread.into_iter().map(|place| UnreadPlace {
        path: place.path,
        reason: place.reason,
    });
    WorkspaceChanges {
        changes: list
            .changes
            .into_iter()
            .take(CHANGES_MAX)
            .map(change)
            .collect(),
        unread: unread.collect(),
    }
}

fn change(change: zareba_client::WorkspaceChange) -> WorkspaceChange {
    WorkspaceChange {
        path: change.path,
        kind: match change.change {
            WorkspaceChangeKind::Added => ChangeKind::Added,
            WorkspaceChangeKind::Modified => ChangeKind::Modified,
            WorkspaceChangeKind::Deleted => ChangeKind::Deleted,
            WorkspaceChangeKind::Renamed => ChangeKind::Renamed {
                from: change.from.unwrap_or_default(),
            },
        },
        content: match change.kind {
            ChangedKind::Directory => ChangedContent::Directory,
            ChangedKind::File => ChangedContent::File {
                bytes: change.size.unwrap_or_default(),
                is_executable: change.executable,
            },
            ChangedKind::Link => ChangedContent::Link {
                target: change.target.unwrap_or_default(),
            },
            ChangedKind::Special => ChangedContent::Special,
        },
    }
}
