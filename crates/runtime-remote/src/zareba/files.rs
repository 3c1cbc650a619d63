//! Files of a session of another server, as bytes.

use std::io;

use futures_util::StreamExt as _;
use zareba_client::{
    ChangeKind, ClientError, CreateDirectory, ErrorCode, FileCondition, FileDigest, ListFilesQuery,
    ReadFileQuery, RemoveFileQuery, RenameFile, StatusQuery, WatchQuery, WriteFileQuery,
};
use zareba_wire::{
    BoxFuture, ByteStream,
    files::{
        ByteRange, ChangeStream, Depth, Digest, DirectoryRequest, EntryPage, Existing, Expected,
        FileChange, FileContent, FileEntry, FileError, FileFailure, FileKind, FileStatus, Links,
        ListRequest, Parents, ReadRequest, RemoveRequest, RenameRequest, StatRequest, WatchRequest,
        WriteRequest,
    },
};

use super::link::ZarebaLink;
use crate::link::{FileLink, LinkError};

impl ZarebaLink {
    async fn look_at(&self, request: StatRequest) -> Result<FileStatus, LinkError> {
        let query = StatusQuery {
            path: request.path,
            follow: request.links == Links::Follow,
            digest: digest(request.digest),
        };
        let status = self.client.stat_file(&self.session, &query).await;
        told(status.map_err(explained)?)
    }

    /// The status is that of the file as it was opened, as far as the answer tells it; its mode
    /// and times are those of a moment before.
    async fn open(&self, request: ReadRequest) -> Result<FileContent, LinkError> {
        let look = StatRequest {
            path: request.path.clone(),
            links: Links::Follow,
            digest: Digest::Skip,
        };
        let mut status = self.look_at(look).await?;
        let query = ReadFileQuery {
            path: request.path,
            digest: digest(request.digest),
        };
        let range = request.range.map(words);
        let opened = self
            .client
            .open_file(&self.session, &query, range.as_deref());
        let opened = opened.await.map_err(explained)?;
        status.size = opened.size;
        if let Some(tag) = opened.tag {
            match tag.strip_prefix("sha256:") {
                Some(digits) => status.sha256 = Some(digits.to_owned()),
                None => status.version = tag,
            }
        }
        Ok(FileContent {
            status,
            start: opened.start,
            length: opened.length,
            stream: opened.stream,
        })
    }

    async fn put(
        &self,
        request: WriteRequest,
        content: ByteStream,
    ) -> Result<FileStatus, LinkError> {
        let query = WriteFileQuery {
            path: request.path,
            mode: request.mode.map(octal),
            parents: request.parents == Parents::Make,
        };
        let condition = request.expected.map(|expected| match expected {
            Expected::Absent => FileCondition::Absent,
            Expected::Version(version) => FileCondition::Tag(version),
            Expected::Sha256(digits) => FileCondition::Tag(format!("sha256:{digits}")),
        });
        let written = self
            .client
            .replace_file(&self.session, &query, condition.as_ref(), content)
            .await;
        let written = written.map_err(|error| match condition {
            // Without a condition it is the session that is not as it should be.
            Some(_) if error.code() == Some(ErrorCode::Conflict) => {
                refused(FileFailure::Conflict, &error).into()
            }
            _ => explained(error),
        });
        told(written?)
    }

    async fn page(&self, request: ListRequest) -> Result<EntryPage, LinkError> {
        let query = ListFilesQuery {
            path: Some(request.path),
            after: request.after,
            limit: Some(request.limit),
        };
        let page = self.client.list_files(&self.session, &query).await;
        let page = page.map_err(explained)?;
        let entries = page.entries.into_iter().map(|entry| {
            Ok::<_, LinkError>(FileEntry {
                name: entry.name,
                status: told(entry.status)?,
            })
        });
        Ok(EntryPage {
            entries: entries.collect::<Result<_, _>>()?,
            next: page.next,
            truncated: page.truncated,
        })
    }

    async fn changes(&self, request: WatchRequest) -> Result<ChangeStream, LinkError> {
        let query = WatchQuery {
            path: Some(request.path),
            recursive: request.depth == Depth::Tree,
            ticket: None,
        };
        let changes = self.client.watch_files(&self.session, &query).await;
        let changes = changes.map_err(explained)?;
        Ok(Box::pin(changes.map(|change| {
            change.map_err(io::Error::other).and_then(happened)
        })))
    }
}

impl FileLink for ZarebaLink {
    fn stat(&self, request: StatRequest) -> BoxFuture<'_, Result<FileStatus, LinkError>> {
        Box::pin(self.look_at(request))
    }

    fn read(&self, request: ReadRequest) -> BoxFuture<'_, Result<FileContent, LinkError>> {
        Box::pin(self.open(request))
    }

    fn write(
        &self,
        request: WriteRequest,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<FileStatus, LinkError>> {
        Box::pin(self.put(request, content))
    }

    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<EntryPage, LinkError>> {
        Box::pin(self.page(request))
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'_, Result<(), LinkError>> {
        let query = RemoveFileQuery {
            path: request.path,
            recursive: request.depth == Depth::Tree,
        };
        Box::pin(async move {
            let removed = self.client.delete_file(&self.session, &query).await;
            removed.map_err(explained)
        })
    }

    fn rename(&self, request: RenameRequest) -> BoxFuture<'_, Result<(), LinkError>> {
        let names = RenameFile {
            from: request.from,
            to: request.to,
            replace: request.existing == Existing::Replace,
        };
        Box::pin(async move {
            let renamed = self.client.rename_file(&self.session, &names).await;
            renamed.map_err(explained)
        })
    }

    fn make_directory(
        &self,
        request: DirectoryRequest,
    ) -> BoxFuture<'_, Result<FileStatus, LinkError>> {
        let new = CreateDirectory {
            path: request.path,
            mode: request.mode.map(octal),
            parents: request.parents == Parents::Make,
        };
        Box::pin(async move {
            let made = self.client.make_directory(&self.session, &new).await;
            told(made.map_err(explained)?)
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<ChangeStream, LinkError>> {
        Box::pin(self.changes(request))
    }
}

/// What a server tells of a file.
fn told(status: zareba_client::FileStatus) -> Result<FileStatus, LinkError> {
    let mode = u32::from_str_radix(&status.mode, 8);
    Ok(FileStatus {
        kind: kind(status.kind),
        size: status.size,
        mode: mode.map_err(|_| LinkError::Nonsense {
            problem: "a file's mode is no octal number".to_owned(),
        })?,
        modified: status.modified.into(),
        version: status.version,
        sha256: status.sha256,
        target: status.target,
    })
}

const fn kind(kind: zareba_client::FileKind) -> FileKind {
    match kind {
        zareba_client::FileKind::File => FileKind::File,
        zareba_client::FileKind::Directory => FileKind::Directory,
        zareba_client::FileKind::Link => FileKind::Link,
        zareba_client::FileKind::Pipe => FileKind::Pipe,
        zareba_client::FileKind::Socket => FileKind::Socket,
        zareba_client::FileKind::Device => FileKind::Device,
    }
}

fn happened(change: zareba_client::FileChange) -> io::Result<FileChange> {
    let nonsense = || io::Error::other("the server tells of a change that makes no sense");
    let place = |path: Option<String>| path.ok_or_else(nonsense);
    let about = change.kind.map(kind).unwrap_or(FileKind::File);
    Ok(match change.change {
        ChangeKind::Created => FileChange::Created {
            path: place(change.path)?,
            kind: about,
        },
        ChangeKind::Modified => FileChange::Modified {
            path: place(change.path)?,
        },
        ChangeKind::Removed => FileChange::Removed {
            path: place(change.path)?,
            kind: about,
        },
        ChangeKind::Renamed => FileChange::Renamed {
            path: place(change.path)?,
            to: place(change.to)?,
            kind: about,
        },
        ChangeKind::Overflow => FileChange::Overflow,
        // The API does not say how many.
        ChangeKind::Incomplete => FileChange::Incomplete { directories: 0 },
        ChangeKind::Gone => FileChange::Gone,
    })
}

const fn digest(digest: Digest) -> Option<FileDigest> {
    match digest {
        Digest::Skip => None,
        Digest::Sha256 => Some(FileDigest::Sha256),
    }
}

fn octal(mode: u32) -> String {
    format!("{mode:o}")
}

fn words(range: ByteRange) -> String {
    match range {
        ByteRange::From(first) => format!("{first}-"),
        ByteRange::Between(first, last) => format!("{first}-{last}"),
        ByteRange::Last(count) => format!("-{count}"),
    }
}

fn explained(error: ClientError) -> LinkError {
    match error.code().and_then(reason) {
        Some(reason) => refused(reason, &error).into(),
        None => error.into(),
    }
}

fn refused(reason: FileFailure, error: &ClientError) -> FileError {
    let message = match error {
        ClientError::Refused { message, .. } => message.clone(),
        error => error.to_string(),
    };
    FileError::new(reason, message)
}

/// Why a file could not be worked on; `None` when it is not about the file.
const fn reason(code: ErrorCode) -> Option<FileFailure> {
    Some(match code {
        ErrorCode::InvalidPath => FileFailure::InvalidPath,
        ErrorCode::InvalidRequest => FileFailure::InvalidRequest,
        ErrorCode::PathOutsideRoot => FileFailure::OutsideRoot,
        ErrorCode::NotFound => FileFailure::NotFound,
        ErrorCode::IsADirectory => FileFailure::IsDirectory,
        ErrorCode::NotADirectory => FileFailure::NotDirectory,
        ErrorCode::NotARegularFile => FileFailure::NotRegular,
        ErrorCode::Exists => FileFailure::Exists,
        ErrorCode::DirectoryNotEmpty => FileFailure::NotEmpty,
        ErrorCode::RangeNotSatisfiable => FileFailure::BadRange,
        ErrorCode::FileTooLarge => FileFailure::TooLarge,
        ErrorCode::PermissionDenied => FileFailure::Denied,
        ErrorCode::ReadOnlyFileSystem => FileFailure::ReadOnly,
        ErrorCode::DiskFull => FileFailure::NoSpace,
        ErrorCode::DiskQuotaExceeded => FileFailure::Quota,
        ErrorCode::TooManyLinks => FileFailure::LinkLoop,
        ErrorCode::NameTooLong => FileFailure::NameTooLong,
        ErrorCode::TooManyOpenFiles => FileFailure::TooManyOpen,
        ErrorCode::OtherFileSystem => FileFailure::CrossDevice,
        ErrorCode::FileBusy => FileFailure::Busy,
        _ => return None,
    })
}
