//! From a blocking thread that writes to a stream that is read: a bounded channel.

use std::{
    cell::Cell,
    io::{self, Write},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use tokio::sync::mpsc;

/// Bytes that travel together.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that may wait for the reader; with the one being filled, what a download can hold.
pub(super) const CHUNKS_MAX: usize = 8;

/// Both ends of a download: the sender goes to the packing thread, the stream to the client.
pub(super) fn channel() -> (mpsc::Sender<io::Result<Bytes>>, Chunks) {
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    (sender, Chunks { receiver })
}

/// The chunks of a download, as a stream. Dropping it ends the packing thread.
#[derive(Debug)]
pub(super) struct Chunks {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
}

impl Stream for Chunks {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context)
    }
}

/// A writer into the channel. Waits when the reader is slow, fails when the reader is gone.
///
/// Archive writers finish their archive when they are dropped, also after a failure. So the
/// outlet can be closed for good: what comes then is swallowed, and no client takes a part of an
/// archive for the whole.
#[derive(Debug)]
pub(super) struct Outlet<'a> {
    sender: &'a mpsc::Sender<io::Result<Bytes>>,
    closed: &'a Cell<bool>,
    buffer: Vec<u8>,
}

impl<'a> Outlet<'a> {
    /// A writer that swallows everything once the cell says so.
    pub(super) fn new(sender: &'a mpsc::Sender<io::Result<Bytes>>, closed: &'a Cell<bool>) -> Self {
        Self {
            sender,
            closed,
            buffer: Vec::with_capacity(CHUNK_BYTES),
        }
    }
}

impl Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed.get() {
            return Ok(bytes.len());
        }
        let taken = bytes.len().min(CHUNK_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == CHUNK_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed.get() || self.buffer.is_empty() {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK_BYTES));
        self.sender.blocking_send(Ok(full.into())).map_err(|_| {
            self.closed.set(true);
            io::ErrorKind::BrokenPipe.into()
        })
    }
}
