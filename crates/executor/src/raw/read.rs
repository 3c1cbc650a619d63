//! Reading: a file is opened once, and its bytes are read when somebody wants them.

use std::{
    fs::File,
    future::Future as _,
    io::{self, Read as _, Seek as _, SeekFrom},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use tokio::task::{JoinHandle, spawn_blocking};
use zareba_protocol::python_repr::of_str as quoted;
use zareba_wire::files::{Digest, FileContent, FileError, FileFailure, ReadRequest};

use super::{
    Shared, digest,
    failure::{io as io_failure, is_directory, refused},
    status::status_of,
};
use crate::files::Opened;

/// Bytes that are read at a time. A stream holds that many and, while nobody reads it, no thread.
const PIECE_BYTES: u64 = 256 * 1024;

impl Shared {
    pub(super) fn read(&self, request: &ReadRequest) -> Result<FileContent, FileError> {
        let path = self.locate(&request.path)?;
        let opened = match self.workspace.open(&path).map_err(refused)? {
            Opened::File(file) => file,
            Opened::Directory(_) => return Err(is_directory(path.shown())),
        };
        let mut status = status_of(&opened.stat);
        let mut file = opened.into_file();
        let (start, length) = match request.range {
            None => (0, status.size),
            Some(range) => range.within(status.size).ok_or_else(|| {
                let message = format!(
                    "{} has {} bytes, and none of them is in the range",
                    quoted(path.shown()),
                    status.size
                );
                FileError::new(FileFailure::BadRange, message).with_current(status.clone())
            })?,
        };
        if request.digest == Digest::Sha256 {
            status.sha256 = Some(digest::sha256(&mut file, status.size, path.shown())?);
        }
        file.seek(SeekFrom::Start(start))
            .map_err(|error| io_failure(&error, path.shown()))?;
        let mut left = length;
        // The first piece now, so that a small file needs one thread once.
        let first =
            read_piece(&mut file, &mut left).map_err(|error| io_failure(&error, path.shown()))?;
        Ok(FileContent {
            status,
            start,
            length,
            stream: Box::pin(Pieces {
                first: Some(first).filter(|first| !first.is_empty()),
                state: State::Idle(file, left),
            }),
        })
    }
}

/// The bytes of a file. Each piece is read when it is asked for.
struct Pieces {
    first: Option<Bytes>,
    state: State,
}

enum State {
    /// The file, and how many bytes are left.
    Idle(File, u64),
    Reading(JoinHandle<(io::Result<Bytes>, File, u64)>),
    Done,
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Done | State::Idle(_, 0) => return Poll::Ready(None),
                State::Idle(mut file, mut left) => {
                    self.state = State::Reading(spawn_blocking(move || {
                        let piece = read_piece(&mut file, &mut left);
                        (piece, file, left)
                    }));
                }
                State::Reading(mut task) => {
                    let Poll::Ready(read) = Pin::new(&mut task).poll(cx) else {
                        self.state = State::Reading(task);
                        return Poll::Pending;
                    };
                    let (piece, file, left) = match read {
                        Ok(read) => read,
                        Err(error) => return Poll::Ready(Some(Err(io::Error::other(error)))),
                    };
                    if piece.is_ok() {
                        self.state = State::Idle(file, left);
                    }
                    return Poll::Ready(Some(piece));
                }
            }
        }
    }
}

/// Reads the next piece of what is left. A file that became shorter is an error, since its length
/// was told already (FA-4); what was added to it is not read.
fn read_piece(file: &mut File, left: &mut u64) -> io::Result<Bytes> {
    let wanted = (*left).min(PIECE_BYTES);
    let mut piece = Vec::with_capacity(usize::try_from(wanted).unwrap_or_default());
    file.take(wanted).read_to_end(&mut piece)?;
    if (piece.len() as u64) < wanted {
        let text = "the file became shorter while it was read";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
    }
    *left -= wanted;
    Ok(piece.into())
}
