//! What a sandbox has changed in its workspace.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a path of a workspace changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceChangeKind {
    /// It did not exist.
    Added,
    /// Its content, its kind or its execute permission differs.
    Modified,
    /// It no longer exists.
    Deleted,
    /// A file with equal content had another path, which no longer exists.
    Renamed,
}

/// What a changed path holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangedKind {
    /// A regular file.
    File,
    /// An empty directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Special,
}

/// One changed path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceChange {
    /// The path, relative to the workspace. A name that is not UTF-8 is escaped.
    pub path: String,
    /// How it changed.
    pub change: WorkspaceChangeKind,
    /// What it is, or what it was if it is deleted.
    pub kind: ChangedKind,
    /// The earlier path of a renamed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Bytes in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Whether its owner may execute a file.
    #[serde(default)]
    pub executable: bool,
    /// Where a link points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// A place that could not be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnreadPlace {
    /// The path, relative to the workspace; empty for the workspace itself.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// The changes of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeList {
    /// The changes, by path.
    pub changes: Vec<WorkspaceChange>,
    /// Places that could not be compared; changes in them are missing from the list.
    pub unread: Vec<UnreadPlace>,
}

/// How changes are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangesFormat {
    /// As a list.
    #[default]
    List,
    /// As a patch.
    Patch,
}

/// Parameters of asking for changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangesQuery {
    /// A file or a directory of the workspace; all of it when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The format; a list when left out.
    #[serde(default)]
    pub format: ChangesFormat,
}
