//! The way to an executor: a call, or a request.

mod files;

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use zareba_executor::Executor;
use zareba_protocol::{ActionEvent, ErrorClass, ObservationEvent};
use zareba_wire::{
    ActionService as _, ByteStream, Download, TransferError, Upload,
    client::{ClientError, ExecutorClient},
    files::FileError,
    output::{OutputPiece, OutputRequest, OutputState, StopRequest},
    program::{ProgramConnection, ProgramRequest, StartProgramError},
    variables::{InvalidVariable, VariableChanges},
};

/// How an executor is reached.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    /// In this process. Weak, because the sandbox's task owns it and ends it.
    Call(Weak<Executor>),
    /// In another one.
    Request(ExecutorClient),
}

/// Why an executor did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// It was ended.
    #[error("the executor was ended")]
    Ended,
    /// The request failed.
    #[error(transparent)]
    Request(#[from] ClientError),
    /// The transfer failed.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The program could not be started.
    #[error(transparent)]
    Program(#[from] StartProgramError),
    /// The work on a file could not be done.
    #[error(transparent)]
    File(#[from] FileError),
    /// The variables cannot be set.
    #[error(transparent)]
    Variable(#[from] InvalidVariable),
}

impl LinkError {
    /// What kind of failure it is.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Ended => ErrorClass::Disconnected,
            Self::Request(error) => error.class(),
            Self::Transfer(error) => class_of(error),
            Self::Program(error) => error.class(),
            Self::File(error) => error.class(),
            Self::Variable(_) => ErrorClass::Invalid,
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

impl Link {
    /// Does ahead what the next request would have to do first.
    pub(crate) async fn connect_ahead(&self) {
        if let Self::Request(client) = self {
            client.connect_ahead().await;
        }
    }

    pub(crate) async fn execute(&self, action: ActionEvent) -> Result<ObservationEvent, LinkError> {
        match self {
            Self::Call(executor) => Ok(upgrade(executor)?.execute(action).await),
            Self::Request(client) => Ok(client.execute(action).await?),
        }
    }

    pub(crate) async fn list_files(&self, path: Option<String>) -> Result<Vec<String>, LinkError> {
        match self {
            Self::Call(executor) => Ok(upgrade(executor)?.list_files(path).await),
            Self::Request(client) => Ok(client
                .list_files(path.as_deref().map(AsRef::as_ref))
                .await?),
        }
    }

    pub(crate) async fn start_program(
        &self,
        request: ProgramRequest,
    ) -> Result<ProgramConnection, LinkError> {
        match self {
            Self::Call(executor) => Ok(upgrade(executor)?.start_program(request).await?),
            Self::Request(client) => match client.start_program(&request).await {
                Err(ClientError::Program(error)) => Err(error.into()),
                result => Ok(result?),
            },
        }
    }

    pub(crate) async fn read_output(&self, asked: OutputRequest) -> Result<OutputPiece, LinkError> {
        match self {
            Self::Call(executor) => {
                let from = asked.from;
                let read = upgrade(executor)?.read_output(asked).await;
                Ok(read.unwrap_or_else(|| OutputPiece::empty(from, OutputState::Unknown)))
            }
            Self::Request(client) => Ok(client.read_output(&asked).await?),
        }
    }

    pub(crate) async fn stop_action(&self, asked: StopRequest) -> Result<bool, LinkError> {
        match self {
            Self::Call(executor) => {
                let stopped = upgrade(executor)?.stop_action(asked).await;
                Ok(stopped.unwrap_or(false))
            }
            Self::Request(client) => Ok(client.stop_action(&asked).await?),
        }
    }

    pub(crate) async fn set_variables(&self, changes: VariableChanges) -> Result<(), LinkError> {
        match self {
            Self::Call(executor) => {
                let set = upgrade(executor)?.set_variables(changes).await;
                Ok(set.unwrap_or(Ok(()))?)
            }
            Self::Request(client) => Ok(client.set_variables(&changes).await?),
        }
    }

    pub(crate) async fn upload(
        &self,
        upload: Upload,
        content: ByteStream,
    ) -> Result<(), LinkError> {
        let client = match self {
            Self::Call(executor) => return Ok(upgrade(executor)?.upload(upload, content).await?),
            Self::Request(client) => client,
        };
        let failure = Arc::default();
        let source = StreamReader {
            stream: content,
            piece: Bytes::new(),
            failure: Arc::clone(&failure),
        };
        let sent = client.upload(&upload, source).await;
        // The request only knows that it broke; the reason is on our side.
        let failure = failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match failure {
            Some(source) => Err(TransferError::Io {
                message: "the upload broke off".to_owned(),
                source,
            }
            .into()),
            None => Ok(sent?),
        }
    }

    pub(crate) async fn download(&self, download: Download) -> Result<ByteStream, LinkError> {
        match self {
            Self::Call(executor) => Ok(upgrade(executor)?.download(download).await?),
            Self::Request(client) => Ok(client.download(&download).await?),
        }
    }
}

fn upgrade(executor: &Weak<Executor>) -> Result<Arc<Executor>, LinkError> {
    executor.upgrade().ok_or(LinkError::Ended)
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
