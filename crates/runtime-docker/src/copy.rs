//! Copying in and out: an archive is packed at one end and unpacked at the other while it is
//! being made, so that its size does not matter.
//!
//! It goes through the executor and never through the Engine, whose own copying follows links
//! that programs inside can change meanwhile (DK-5). Both ends are the executor's own transfers,
//! so that what comes out meets the same checks on this side as what goes in does on the other.

use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use zareba_executor::{Owner, Transfers};
use zareba_protocol::ErrorClass;
use zareba_runtime::RuntimeError;
use zareba_wire::{
    ArchiveFormat, ByteStream, Download, TransferError, Upload, UploadTreatment,
    client::ExecutorClient,
};

/// Any name will do that says what it is.
const ARCHIVE: &str = "copy.tar";

/// Copies a file or directory of this machine into a directory inside.
pub(crate) async fn copy_in(
    client: &ExecutorClient,
    from: &Path,
    to: PathBuf,
) -> Result<(), RuntimeError> {
    let (from, to) = tokio::task::spawn_blocking({
        let (from, to) = (from.to_owned(), to.clone());
        move || source(&from, to)
    })
    .await
    .map_err(|error| failed(from, ErrorClass::Internal, error))??;
    let packed = here().download(archive_of(from.clone())).await;
    let packed = packed.map_err(|error| failed(&from, class_of(&error), error))?;
    send(client, &archive_to(to), packed, &from).await
}

/// Sends a stream to the executor. Errors name `what`.
pub(crate) async fn send(
    client: &ExecutorClient,
    upload: &Upload,
    content: ByteStream,
    what: &Path,
) -> Result<(), RuntimeError> {
    let failure = Arc::default();
    let reader = StreamReader {
        stream: content,
        piece: Bytes::new(),
        failure: Arc::clone(&failure),
    };
    let sent = client.upload(upload, reader).await;
    // The request only knows that it broke; the reason is on our side.
    let failure = failure
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(error) = failure {
        return Err(failed(what, class_of_io(&error), error));
    }
    sent.map_err(|error| failed(what, error.class(), error))
}

/// Copies what a directory inside holds, or one file, into a directory of this machine.
pub(crate) async fn copy_out(
    client: &ExecutorClient,
    from: PathBuf,
    to: &Path,
) -> Result<(), RuntimeError> {
    let to = std::path::absolute(to).map_err(|error| failed(to, ErrorClass::Invalid, error))?;
    let packed = client.download(&archive_of(from.clone())).await;
    let packed = packed.map_err(|error| failed(&from, error.class(), error))?;
    let stored = here().upload(archive_to(to), packed).await;
    stored.map_err(|error| failed(&from, class_of(&error), error))
}

/// This machine's end: new files are ours.
fn here() -> Transfers {
    Transfers::new(Owner::Ourselves)
}

/// What is copied, by its real name, and where to: a directory keeps its name.
fn source(from: &Path, to: PathBuf) -> Result<(PathBuf, PathBuf), RuntimeError> {
    let real =
        std::fs::canonicalize(from).map_err(|error| failed(from, class_of_io(&error), error))?;
    if !real.is_dir() {
        // By the name that was given: a link to a file is copied under the link's name.
        let named = std::path::absolute(from);
        let named = named.map_err(|error| failed(from, ErrorClass::Invalid, error))?;
        return Ok((named, to));
    }
    let to = match real.file_name() {
        Some(name) => to.join(name),
        None => to,
    };
    Ok((real, to))
}

fn archive_of(path: PathBuf) -> Download {
    Download {
        path,
        format: ArchiveFormat::Tar,
    }
}

fn archive_to(destination: PathBuf) -> Upload {
    Upload {
        file_name: ARCHIVE.to_owned(),
        destination,
        treatment: UploadTreatment::Unpack,
        room: None,
    }
}

fn class_of(error: &TransferError) -> ErrorClass {
    match error {
        TransferError::NotFound => ErrorClass::NotFound,
        TransferError::Invalid { .. } | TransferError::BadArchive { .. } => ErrorClass::Invalid,
        TransferError::Io { source, .. } => class_of_io(source),
    }
}

fn class_of_io(error: &io::Error) -> ErrorClass {
    match error.kind() {
        io::ErrorKind::NotFound => ErrorClass::NotFound,
        io::ErrorKind::PermissionDenied => ErrorClass::Permission,
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => ErrorClass::Invalid,
        _ => ErrorClass::Internal,
    }
}

pub(crate) fn failed(
    path: &Path,
    class: ErrorClass,
    source: impl std::error::Error + Send + Sync + 'static,
) -> RuntimeError {
    RuntimeError::Copy {
        path: path.display().to_string(),
        class,
        source: Box::new(source),
    }
}

/// Reads a stream of pieces as bytes, and keeps the error that ended it.
struct StreamReader {
    stream: ByteStream,
    piece: Bytes,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl AsyncRead for StreamReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.piece.is_empty() {
            match ready!(this.stream.as_mut().poll_next(context)) {
                None => return Poll::Ready(Ok(())),
                Some(Ok(piece)) => this.piece = piece,
                Some(Err(error)) => {
                    let kind = error.kind();
                    *this.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return Poll::Ready(Err(kind.into()));
                }
            }
        }
        let length = this.piece.len().min(buffer.remaining());
        buffer.put_slice(&this.piece.split_to(length));
        Poll::Ready(Ok(()))
    }
}
