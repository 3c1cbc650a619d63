//! Files: what is asked about them and what is told.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What something in a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileStatus {
    /// What it is.
    pub kind: FileKind,
    /// Bytes in it.
    pub size: u64,
    /// Permissions, in octal digits.
    pub mode: String,
    /// When the content last changed.
    #[schema(value_type = String, format = DateTime)]
    pub modified: Timestamp,
    /// Another one whenever the content was changed or replaced; `If-Match` takes it.
    pub version: String,
    /// The content's SHA-256 in hexadecimal, when that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Where a link points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileEntry {
    /// Its name. One that is not UTF-8 is escaped, and means the same in a path.
    pub name: String,
    /// What it is; links are not followed.
    pub status: FileStatus,
}

/// Some entries of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FilePage {
    /// The entries, sorted by the bytes of their names.
    pub entries: Vec<FileEntry>,
    /// What to give as `after` for the next page; left out on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The directory holds more names than are looked at; some are not on any page.
    pub truncated: bool,
}

/// A directory to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDirectory {
    /// The path; a relative one is meant from the workspace.
    pub path: String,
    /// Permissions, in octal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether missing directories above it are made. Then it is no error that it is there.
    #[serde(default)]
    pub parents: bool,
}

/// Another name for something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameFile {
    /// The old one.
    pub from: String,
    /// The new one.
    pub to: String,
    /// Whether something that has the new name is replaced.
    #[serde(default)]
    pub replace: bool,
}

/// A change below a directory that is watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileChange {
    /// What happened.
    pub change: ChangeKind,
    /// Where, relative to the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The new name of something that was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What it is: a directory, or a file, which stands for everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FileKind>,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is there and was not.
    Created,
    /// It was written.
    Modified,
    /// It is gone.
    Removed,
    /// It has another name.
    Renamed,
    /// Changes were missed; whoever keeps a copy has to look again.
    Overflow,
    /// There are more directories than are watched; changes in the others are not told.
    Incomplete,
    /// The directory itself is gone. This is the last change.
    Gone,
}

/// An archive format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArchiveFormat {
    /// Tar, which keeps modes and links.
    #[default]
    Tar,
    /// Zip.
    Zip,
}

/// How a file's content is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileDigest {
    /// SHA-256.
    Sha256,
}

/// Parameters of looking at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusQuery {
    /// The path; a relative one is meant from the workspace.
    pub path: String,
    /// Whether a link at its end is followed.
    #[serde(default = "crate::session::yes")]
    pub follow: bool,
    /// Whether the content is hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<FileDigest>,
}

/// Parameters of reading a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadFileQuery {
    /// The path; a relative one is meant from the workspace.
    pub path: String,
    /// Whether the content is hashed; the tag is the hash then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<FileDigest>,
}

/// Parameters of writing a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFileQuery {
    /// The path; a relative one is meant from the workspace.
    pub path: String,
    /// Permissions, in octal digits; left out, those of a file that is there stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether missing directories above it are made.
    #[serde(default)]
    pub parents: bool,
}

/// Parameters of removing a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoveFileQuery {
    /// The path; a link goes itself.
    pub path: String,
    /// Whether a directory goes with all that is in it.
    #[serde(default)]
    pub recursive: bool,
}

/// Parameters of listing a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListFilesQuery {
    /// The directory; the workspace when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The name behind which the page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Parameters of packing and unpacking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveQuery {
    /// What is packed, or the directory that is unpacked into.
    pub path: String,
    /// The format; tar when left out.
    #[serde(default)]
    pub format: ArchiveFormat,
}

/// Parameters of watching a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchQuery {
    /// The directory; the workspace when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether directories below it are meant too.
    #[serde(default)]
    pub recursive: bool,
    /// A ticket instead of a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}
