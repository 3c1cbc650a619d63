//! The way to a sandbox on another server; one implementation per API.

use std::{io, time::Duration};

use serde_json::Value;
use tokio::net::TcpStream;
use zareba_protocol::{ActionEvent, ErrorClass, ObservationEvent};
use zareba_runtime::{ChangesRequest, WorkspaceChanges, WorkspacePatch};
use zareba_wire::{
    ArchiveFormat, BoxFuture, ByteStream, Download, TransferError, Upload,
    files::{
        ChangeStream, DirectoryRequest, EntryPage, FileContent, FileError, FileStatus, ListRequest,
        ReadRequest, RemoveRequest, RenameRequest, StatRequest, WatchRequest, WriteRequest,
    },
    program::{ProgramConnection, ProgramRequest, StartProgramError},
    variables::VariableChanges,
};

/// The way to one sandbox. Dropping a future gives up waiting, and nothing else.
pub(crate) trait Link: Send + Sync {
    /// Runs an action. It is sent a second time only when that cannot run it twice.
    fn execute(&self, action: ActionEvent) -> BoxFuture<'_, Result<ObservationEvent, LinkError>>;

    /// Names in a directory.
    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, LinkError>>;

    /// Stores a file, or unpacks an archive.
    fn upload(&self, upload: Upload, content: ByteStream) -> BoxFuture<'_, Result<(), LinkError>>;

    /// Packs a file or directory.
    fn download(&self, download: Download) -> BoxFuture<'_, Result<ByteStream, LinkError>>;

    /// The archives that the other side takes and gives without loss.
    fn archives(&self) -> ArchiveFormat;

    /// Waits until the sandbox answers, for as long as its options allow.
    fn ready(&self) -> BoxFuture<'_, Result<(), LinkError>>;

    /// Freezes the sandbox.
    fn pause(&self) -> BoxFuture<'_, Result<(), LinkError>>;

    /// Lets it go on, and returns once it answers.
    fn resume(&self) -> BoxFuture<'_, Result<(), LinkError>>;

    /// Ends it. One that is gone already is ended.
    fn stop(&self) -> BoxFuture<'_, Result<(), LinkError>>;

    /// Starts a program with streams of its own.
    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, LinkError>> {
        let _ = request;
        unsupported()
    }

    /// Sets and removes variables of everything inside.
    fn set_variables(&self, changes: VariableChanges) -> BoxFuture<'_, Result<(), LinkError>> {
        let _ = changes;
        unsupported()
    }

    /// Connects to a port inside.
    fn connect_port(&self, port: u16) -> BoxFuture<'_, Result<TcpStream, LinkError>> {
        let _ = port;
        unsupported()
    }

    /// What stands around it and what it uses.
    fn inspect(&self) -> BoxFuture<'_, Result<Value, LinkError>> {
        unsupported()
    }

    /// What it has changed in its workspace.
    fn changes(
        &self,
        request: ChangesRequest,
    ) -> BoxFuture<'_, Result<WorkspaceChanges, LinkError>> {
        let _ = request;
        unsupported()
    }

    /// The same as a patch.
    fn patch(&self, request: ChangesRequest) -> BoxFuture<'_, Result<WorkspacePatch, LinkError>> {
        let _ = request;
        unsupported()
    }

    /// The way to its files as bytes; `None` when the API has none.
    fn files(&self) -> Option<&dyn FileLink> {
        None
    }
}

fn unsupported<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, LinkError>> {
    Box::pin(std::future::ready(Err(LinkError::Unsupported)))
}

/// The way to the files of one sandbox, as bytes. Archives go by [`Link::upload`] and
/// [`Link::download`].
pub(crate) trait FileLink: Send + Sync {
    /// What is at a path.
    fn stat(&self, request: StatRequest) -> BoxFuture<'_, Result<FileStatus, LinkError>>;

    /// Opens a file and streams its bytes.
    fn read(&self, request: ReadRequest) -> BoxFuture<'_, Result<FileContent, LinkError>>;

    /// Puts a stream into a file.
    fn write(
        &self,
        request: WriteRequest,
        content: ByteStream,
    ) -> BoxFuture<'_, Result<FileStatus, LinkError>>;

    /// A page of a directory.
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<EntryPage, LinkError>>;

    /// Removes a file, a link or a directory.
    fn remove(&self, request: RemoveRequest) -> BoxFuture<'_, Result<(), LinkError>>;

    /// Gives something another name.
    fn rename(&self, request: RenameRequest) -> BoxFuture<'_, Result<(), LinkError>>;

    /// Makes a directory.
    fn make_directory(
        &self,
        request: DirectoryRequest,
    ) -> BoxFuture<'_, Result<FileStatus, LinkError>>;

    /// Tells of changes in a directory.
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<ChangeStream, LinkError>>;
}

/// Why a sandbox on another server did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// There was no answer in time; whether anything happened is not known.
    #[error("there was no answer within {waited:?}")]
    Timeout { waited: Duration },
    /// The other side cannot be reached, or the connection broke.
    #[error("the server at `{place}` cannot be reached")]
    Unreachable {
        place: String,
        /// Whether the request may have arrived all the same.
        sent: Sent,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The other side said no.
    #[error("the server refused with status {status}: {detail}")]
    Refused {
        status: u16,
        class: ErrorClass,
        detail: String,
    },
    /// The answer is not what the API says.
    #[error("the server's answer makes no sense: {problem}")]
    Nonsense { problem: String },
    /// A transfer failed at our end.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// It cannot be asked for.
    #[error("{problem}")]
    Invalid { problem: String },
    /// The API has no such thing.
    #[error("the server's API has no such thing")]
    Unsupported,
    /// The program cannot be started.
    #[error(transparent)]
    Program(#[from] StartProgramError),
    /// The work on a file could not be done.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Whether a request that got no answer was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Not a byte of it.
    No,
    /// It may have arrived.
    Perhaps,
}

impl LinkError {
    /// Nothing has happened on the other side.
    pub(crate) fn is_harmless(&self) -> bool {
        match self {
            Self::Unreachable { sent, .. } => *sent == Sent::No,
            Self::Refused { status, .. } => *status < 500 || *status == 503,
            Self::Invalid { .. } | Self::Unsupported | Self::Program(_) => true,
            Self::File(error) => error.class() != ErrorClass::Internal,
            Self::Timeout { .. } | Self::Nonsense { .. } | Self::Transfer(_) => false,
        }
    }

    /// What kind of failure it is.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Timeout { .. } => ErrorClass::Timeout,
            Self::Unreachable { .. } => ErrorClass::Disconnected,
            Self::Refused { class, .. } => *class,
            Self::Nonsense { .. } => ErrorClass::Internal,
            Self::Transfer(error) => class_of(error),
            Self::Invalid { .. } => ErrorClass::Invalid,
            Self::Unsupported => ErrorClass::Unsupported,
            Self::Program(error) => error.class(),
            Self::File(error) => error.class(),
        }
    }
}

/// What kind of failure a transfer ended with.
pub(crate) fn class_of(error: &TransferError) -> ErrorClass {
    match error {
        TransferError::NotFound => ErrorClass::NotFound,
        TransferError::Invalid { .. } | TransferError::BadArchive { .. } => ErrorClass::Invalid,
        TransferError::Io { source, .. } => match source.kind() {
            io::ErrorKind::NotFound => ErrorClass::NotFound,
            io::ErrorKind::PermissionDenied => ErrorClass::Permission,
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => ErrorClass::Invalid,
            _ => ErrorClass::Internal,
        },
    }
}
