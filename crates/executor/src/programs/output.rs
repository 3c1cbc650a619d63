//! What a program writes.

use std::{io, sync::Arc};

use bytes::Bytes;
use tokio::net::unix::pipe::Receiver;
use zareba_terminal::Pty;
use zareba_wire::program::ProgramEvent;

/// What is read at once; far below what one frame carries.
const CHUNK_BYTES: usize = 32 * 1024;

/// Where a program writes to.
#[derive(Debug)]
pub(super) enum Output {
    /// A terminal. It does not end before the program does.
    Terminal(Arc<Pty>),
    /// Two pipes; `None` once all have closed theirs.
    Pipes {
        stdout: Option<Receiver>,
        stderr: Option<Receiver>,
    },
}

/// A pipe that everybody has closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Stdout,
    Stderr,
}

impl Output {
    pub(super) fn terminal(pty: Pty) -> Self {
        Self::Terminal(Arc::new(pty))
    }

    pub(super) fn pipes(stdout: Receiver, stderr: Receiver) -> Self {
        Self::Pipes {
            stdout: Some(stdout),
            stderr: Some(stderr),
        }
    }

    /// Waits for the next piece, or the end of one of two pipes; for ever, when there can be none. May be dropped and called
    /// again.
    pub(super) async fn next(&self) -> Result<ProgramEvent, Ended> {
        match self {
            Self::Terminal(pty) => from_terminal(pty).await,
            Self::Pipes { stdout, stderr } => tokio::select! {
                piece = from_pipe(stdout.as_ref()) => {
                    piece.map(ProgramEvent::Stdout).ok_or(Ended::Stdout)
                }
                piece = from_pipe(stderr.as_ref()) => {
                    piece.map(ProgramEvent::Stderr).ok_or(Ended::Stderr)
                }
            },
        }
    }

    /// What is there without waiting, whether or not the runtime has noticed it.
    pub(super) fn now(&self) -> Option<ProgramEvent> {
        let mut chunk = vec![0; CHUNK_BYTES];
        match self {
            Self::Terminal(pty) => match pty.read(&mut chunk) {
                Ok(Some(length @ 1..)) => Some(ProgramEvent::Stdout(cut(chunk, length))),
                _ => None,
            },
            Self::Pipes { stdout, stderr } => {
                let mut read =
                    |pipe: &Option<Receiver>| match rustix::io::read(pipe.as_ref()?, &mut chunk) {
                        Ok(length @ 1..) => Some(Bytes::copy_from_slice(&chunk[..length])),
                        _ => None,
                    };
                read(stdout)
                    .map(ProgramEvent::Stdout)
                    .or_else(|| read(stderr).map(ProgramEvent::Stderr))
            }
        }
    }

    /// It is not looked at any more.
    pub(super) fn end(&mut self, ended: Ended) {
        match (self, ended) {
            (Self::Pipes { stdout, .. }, Ended::Stdout) => *stdout = None,
            (Self::Pipes { stderr, .. }, Ended::Stderr) => *stderr = None,
            (Self::Terminal(_), _) => {}
        }
    }
}

async fn from_terminal(pty: &Pty) -> Result<ProgramEvent, Ended> {
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        match pty.read(&mut chunk) {
            Ok(Some(length @ 1..)) => return Ok(ProgramEvent::Stdout(cut(chunk, length))),
            Ok(None) => {}
            // Then only the end of the program tells.
            Ok(Some(_)) | Err(_) => return std::future::pending().await,
        }
        drop(chunk);
        if pty.readable().await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// The next piece of a pipe, `None` at its end.
async fn from_pipe(pipe: Option<&Receiver>) -> Option<Bytes> {
    let Some(pipe) = pipe else {
        return std::future::pending().await;
    };
    loop {
        pipe.readable().await.ok()?;
        let mut chunk = vec![0; CHUNK_BYTES];
        match pipe.try_read(&mut chunk) {
            Ok(0) => return None,
            Ok(length) => return Some(cut(chunk, length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

/// A piece holds no more memory than it has bytes.
fn cut(mut chunk: Vec<u8>, length: usize) -> Bytes {
    chunk.truncate(length);
    chunk.shrink_to_fit();
    chunk.into()
}
