//! Archives that are packed on a thread that may block, and sent while they are packed.

use std::io::{self, Write};

use bytes::Bytes;
use futures_util::stream;
use tokio::{sync::mpsc, task::JoinHandle};
use zareba_runtime::RuntimeError;

use crate::{engine::Engine, make::cannot_start};

/// Pieces of an archive that wait to be sent, and their size.
const PIECES_MAX: usize = 8;
const PIECE_BYTES: usize = 256 * 1024;

/// An archive that is being packed.
#[derive(Debug)]
pub(crate) struct Packing {
    pieces: mpsc::Receiver<Bytes>,
    packing: JoinHandle<io::Result<()>>,
}

impl Packing {
    /// Begins to pack; nothing more is packed than waits to be sent.
    pub(crate) fn begin(pack: impl FnOnce(Pieces) -> io::Result<()> + Send + 'static) -> Self {
        let (send, pieces) = mpsc::channel(PIECES_MAX);
        let packing = tokio::task::spawn_blocking(move || pack(Pieces::new(send)));
        Self { pieces, packing }
    }

    /// Unpacks it below a directory of a container that was never started.
    pub(crate) async fn unpack_into(
        self,
        engine: &Engine,
        container: &str,
        directory: &str,
    ) -> Result<(), RuntimeError> {
        let pieces = stream::unfold(self.pieces, |mut pieces| async move {
            let piece: Bytes = pieces.recv().await?;
            Some((Ok::<_, io::Error>(piece), pieces))
        });
        let unpacked = engine.unpack_into_new(container, directory, pieces).await;
        // Ends in any case: nobody takes its pieces any more.
        let packed = self.packing.await.map_err(cannot_start)?;
        match packed {
            // The Engine stopped reading, and says why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                unpacked.map_err(cannot_start)?;
                Err(cannot_start(error))
            }
            Err(error) => Err(cannot_start(error)),
            Ok(()) => unpacked.map_err(cannot_start),
        }
    }
}

/// Sends what is written, in pieces.
#[derive(Debug)]
pub(crate) struct Pieces {
    send: mpsc::Sender<Bytes>,
    piece: Vec<u8>,
}

impl Pieces {
    fn new(send: mpsc::Sender<Bytes>) -> Self {
        Self {
            send,
            piece: Vec::with_capacity(PIECE_BYTES),
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        let sent = self.send.blocking_send(piece);
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
