//! Writes a form with one file part, from a reader of unknown length.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use tokio::io::{AsyncRead, ReadBuf};

use super::disposition::quoted;

/// How much is read from the source at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// A request body that is a form with the part `file`.
pub(crate) struct FileForm<R> {
    stage: Stage,
    opening: Bytes,
    closing: Bytes,
    source: R,
    last_progress: Arc<Mutex<Instant>>,
}

enum Stage {
    Opening,
    Data,
    Done,
}

impl<R: AsyncRead + Unpin> FileForm<R> {
    /// Prepares the form and returns it with its `Content-Type`, or nothing when no header can
    /// carry the file's name.
    pub(crate) fn new(file_name: &str, source: R) -> Option<(Self, String)> {
        let file_name = quoted(file_name)?;
        // Not to be guessed by whoever wrote the file, whose content must not end the part.
        let boundary = format!("zareba-{:032x}", rand::random::<u128>());
        let opening = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename={file_name}\r\n\
             content-type: application/octet-stream\r\n\r\n"
        );
        let form = Self {
            stage: Stage::Opening,
            opening: opening.into(),
            closing: format!("\r\n--{boundary}--\r\n").into(),
            source,
            last_progress: Arc::new(Mutex::new(Instant::now())),
        };
        Some((form, format!("multipart/form-data; boundary={boundary}")))
    }

    /// When the connection last asked for more, for a watch over stalled transfers.
    pub(crate) fn progress(&self) -> Arc<Mutex<Instant>> {
        Arc::clone(&self.last_progress)
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let mut piece = BytesMut::zeroed(PIECE_BYTES);
        let mut space = ReadBuf::new(&mut piece);
        ready!(Pin::new(&mut self.source).poll_read(cx, &mut space))?;
        let filled = space.filled().len();
        piece.truncate(filled);
        Poll::Ready(Ok(piece.freeze()))
    }
}

impl<R: AsyncRead + Unpin> Body for FileForm<R> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        *this
            .last_progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let piece = match this.stage {
            Stage::Opening => {
                this.stage = Stage::Data;
                std::mem::take(&mut this.opening)
            }
            Stage::Data => match ready!(this.poll_piece(cx)) {
                Ok(piece) if piece.is_empty() => {
                    this.stage = Stage::Done;
                    std::mem::take(&mut this.closing)
                }
                Ok(piece) => piece,
                Err(error) => {
                    this.stage = Stage::Done;
                    return Poll::Ready(Some(Err(error)));
                }
            },
            Stage::Done => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}
