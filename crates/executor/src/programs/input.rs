//! What a program reads.

use std::{io, sync::Arc};

use bytes::{Buf as _, Bytes};
use tokio::{net::unix::pipe::Sender, sync::mpsc};
use zareba_terminal::Pty;
use zareba_wire::program::StdinPiece;

/// The key that ends input at a terminal that reads lines: Ctrl-D.
const END_KEY: &[u8] = b"\x04";

/// The way to a program's standard input.
#[derive(Debug)]
pub(super) struct Input {
    to: Destination,
    /// What the program has not taken yet.
    pending: Bytes,
    /// Nothing more will come.
    is_over: bool,
}

#[derive(Debug)]
enum Destination {
    Terminal(Arc<Pty>),
    Pipe(Sender),
    /// Nobody reads it.
    Nowhere,
}

impl Input {
    pub(super) fn terminal(pty: &Arc<Pty>) -> Self {
        Self::to(Destination::Terminal(Arc::clone(pty)))
    }

    pub(super) fn pipe(pipe: Sender) -> Self {
        Self::to(Destination::Pipe(pipe))
    }

    /// Whatever is sent is lost.
    pub(super) fn nowhere() -> Self {
        Self::to(Destination::Nowhere)
    }

    fn to(to: Destination) -> Self {
        Self {
            to,
            pending: Bytes::new(),
            is_over: false,
        }
    }

    /// Passes something on, or takes the next piece to pass on; waits for ever when there is
    /// nothing more. May be dropped and called again.
    pub(super) async fn step(&mut self, stdin: &mut mpsc::Receiver<StdinPiece>) {
        if !self.pending.is_empty() {
            match self.to.write(&self.pending).await {
                Ok(length) => self.pending.advance(length),
                // The program reads no more. What comes is taken all the same, so that nobody
                // waits for it.
                Err(_) => {
                    self.pending.clear();
                    self.to = Destination::Nowhere;
                }
            }
            return;
        }
        if self.is_over {
            return std::future::pending().await;
        }
        match stdin.recv().await {
            Some(StdinPiece::Bytes(bytes)) => match self.to {
                Destination::Nowhere => {}
                Destination::Terminal(_) | Destination::Pipe(_) => self.pending = bytes,
            },
            Some(StdinPiece::End) | None => self.end(),
        }
    }

    fn end(&mut self) {
        self.is_over = true;
        match self.to {
            Destination::Terminal(_) => self.pending = Bytes::from_static(END_KEY),
            Destination::Pipe(_) => self.to = Destination::Nowhere,
            Destination::Nowhere => {}
        }
    }
}

impl Destination {
    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Terminal(pty) => {
                pty.writable().await?;
                pty.write(bytes)
            }
            Self::Pipe(pipe) => {
                pipe.writable().await?;
                match pipe.try_write(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                    result => result,
                }
            }
            Self::Nowhere => Ok(bytes.len()),
        }
    }
}
