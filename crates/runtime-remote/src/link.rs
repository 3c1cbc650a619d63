//! The way to a sandbox on another server; one implementation per API.

use std::{io, time::Duration};

use zareba_protocol::{ActionEvent, ErrorClass, ObservationEvent};
use zareba_wire::{ArchiveFormat, BoxFuture, ByteStream, Download, TransferError, Upload};

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
            Self::Invalid { .. } => true,
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
