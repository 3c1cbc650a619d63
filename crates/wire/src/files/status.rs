//! What is told of files.

use std::{fmt, time::SystemTime};

use crate::ByteStream;

/// What something in a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl FileKind {
    const ALL: [Self; 6] = [
        Self::File,
        Self::Directory,
        Self::Link,
        Self::Pipe,
        Self::Socket,
        Self::Device,
    ];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Link => "link",
            Self::Pipe => "pipe",
            Self::Socket => "socket",
            Self::Device => "device",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// What it is.
    pub kind: FileKind,
    /// Bytes in it.
    pub size: u64,
    /// Permissions, the lower twelve bits.
    pub mode: u32,
    /// When the content last changed.
    pub modified: SystemTime,
    /// Another one whenever the file was replaced, or written with its times telling so.
    pub version: String,
    /// The content's SHA-256 in hexadecimal digits, when that was asked for.
    pub sha256: Option<String>,
    /// Where a link points.
    pub target: Option<String>,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// What it is; links are not followed.
    pub status: FileStatus,
}

/// Some entries of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryPage {
    /// The entries, sorted by the bytes of their names.
    pub entries: Vec<FileEntry>,
    /// Where the next page begins; `None` when this is the last one.
    pub next: Option<String>,
    /// The directory holds more names than are looked at; some are not on any page.
    pub truncated: bool,
}

/// A file, or a part of it, on its way.
pub struct FileContent {
    /// The whole file as it was when it was opened.
    pub status: FileStatus,
    /// Where the bytes begin.
    pub start: u64,
    /// How many there are. The stream fails when the file turns out to be shorter.
    pub length: u64,
    /// The bytes.
    pub stream: ByteStream,
}

impl fmt::Debug for FileContent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FileContent")
            .field("status", &self.status)
            .field("start", &self.start)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}
