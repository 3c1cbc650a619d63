//! Content on its way: one that is sent, with its progress watched, and one that is received, with
//! its length held to what was announced.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use futures_core::Stream;
use http_body::Frame;

use crate::{
    ByteStream,
    files::{FileError, FileFailure},
};

type Failure = Arc<Mutex<Option<FileError>>>;

/// A request body that is a stream.
pub(super) struct SentBody {
    content: ByteStream,
    progress: Arc<Mutex<Instant>>,
    failure: Failure,
}

impl SentBody {
    pub(super) fn new(content: ByteStream) -> Self {
        Self {
            content,
            progress: Arc::new(Mutex::new(Instant::now())),
            failure: Failure::default(),
        }
    }

    /// When the connection last asked for more.
    pub(super) fn progress(&self) -> Arc<Mutex<Instant>> {
        Arc::clone(&self.progress)
    }

    /// Where the reason is put when the stream fails.
    pub(super) fn failure(&self) -> Failure {
        Arc::clone(&self.failure)
    }

    pub(super) fn take(failure: &Failure) -> Option<FileError> {
        failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl http_body::Body for SentBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        *this.progress.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Poll::Ready(match ready!(this.content.as_mut().poll_next(cx)) {
            None => None,
            Some(Ok(piece)) => Some(Ok(Frame::data(piece))),
            Some(Err(error)) => {
                let message = format!("the content broke off: {error}");
                let reason = FileError::new(FileFailure::BrokenOff, message);
                *this.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
                Some(Err(error))
            }
        })
    }
}

/// A stream that must be as long as was announced (G-1: the executor may say what it likes).
pub(super) struct Exactly {
    stream: ByteStream,
    left: u64,
}

impl Exactly {
    pub(super) fn new(stream: ByteStream, length: u64) -> Self {
        Self {
            stream,
            left: length,
        }
    }
}

impl Stream for Exactly {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        Poll::Ready(match ready!(this.stream.as_mut().poll_next(cx)) {
            Some(Ok(piece)) => match this.left.checked_sub(piece.len() as u64) {
                Some(left) => {
                    this.left = left;
                    Some(Ok(piece))
                }
                None => Some(Err(io::Error::other("the file is longer than announced"))),
            },
            None if this.left > 0 => {
                this.left = 0;
                Some(Err(io::ErrorKind::UnexpectedEof.into()))
            }
            end => end,
        })
    }
}
