//! The frames of a connection that was upgraded: one byte for the kind, four for the length of
//! what follows, big end first.
//!
//! What one end sends is hostile input to the other (G-1): a frame that is too long, unknown or
//! malformed ends the connection. Nothing is set aside for bytes that were only announced.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::{ProgramExit, ProgramSignal, TerminalSize};

/// What a frame carries at most.
pub const FRAME_BYTES_MAX: usize = 64 * 1024;

/// Standard input that a client may have sent and not been told of that it was taken. It lets
/// the server read on, and so notice signals and the end of the client, when a program does not
/// read its input.
pub const STDIN_WINDOW_BYTES: usize = 256 * 1024;

const HEAD_BYTES: usize = 5;

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFrame {
    /// Kind 0: more to read.
    Stdin(Bytes),
    /// Kind 1: there is nothing more to read.
    EndOfStdin,
    /// Kind 2: the terminal has another size; rows and columns, two bytes each.
    Resize(TerminalSize),
    /// Kind 3: a signal, by its name.
    Signal(ProgramSignal),
}

/// What a server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFrame {
    /// Kind 0: output, or what the terminal shows.
    Stdout(Bytes),
    /// Kind 1: errors.
    Stderr(Bytes),
    /// Kind 2: the end, as JSON; nothing follows.
    Exit(ProgramExit),
    /// Kind 3: why there is no end, as JSON; nothing follows.
    Error(String),
    /// Kind 4: so many bytes of input were taken, and as many more may be sent; four bytes.
    Taken(u32),
}

/// Why a connection makes no sense any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame is longer than any may be.
    #[error("a frame of {length} bytes came; the limit is {FRAME_BYTES_MAX}")]
    TooLong {
        /// What it announced.
        length: u32,
    },
    /// There are no frames of that kind.
    #[error("a frame of the unknown kind {kind} came")]
    UnknownKind {
        /// Which.
        kind: u8,
    },
    /// It does not say what its kind says.
    #[error("a malformed frame of the kind {kind} came")]
    Malformed {
        /// Which.
        kind: u8,
    },
    /// More input came than was asked for.
    #[error("more than {STDIN_WINDOW_BYTES} bytes of standard input came ahead of the program")]
    WindowOverrun,
}

impl ClientFrame {
    /// Appends the frame; `Stdin` must not be longer than [`FRAME_BYTES_MAX`].
    pub fn encode(&self, into: &mut BytesMut) {
        match self {
            Self::Stdin(bytes) => put(into, 0, bytes),
            Self::EndOfStdin => put(into, 1, &[]),
            Self::Resize(size) => {
                let [[a, b], [c, d]] = [size.rows.to_be_bytes(), size.columns.to_be_bytes()];
                put(into, 2, &[a, b, c, d]);
            }
            Self::Signal(signal) => put(into, 3, signal.name().as_bytes()),
        }
    }

    /// What a frame of this kind with this content means.
    ///
    /// # Errors
    /// It means nothing.
    pub fn decode(kind: u8, content: Bytes) -> Result<Self, FrameError> {
        let malformed = FrameError::Malformed { kind };
        match kind {
            0 => Ok(Self::Stdin(content)),
            1 if content.is_empty() => Ok(Self::EndOfStdin),
            2 => match content[..] {
                [a, b, c, d] => {
                    let (rows, columns) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
                    let size = TerminalSize::new(rows, columns).ok_or(malformed)?;
                    Ok(Self::Resize(size))
                }
                _ => Err(malformed),
            },
            3 => {
                let name = std::str::from_utf8(&content).map_err(|_| malformed)?;
                let signal = ProgramSignal::from_name(name).ok_or(malformed)?;
                Ok(Self::Signal(signal))
            }
            1 => Err(malformed),
            _ => Err(FrameError::UnknownKind { kind }),
        }
    }
}

impl ServerFrame {
    /// Appends the frame; output must not be longer than [`FRAME_BYTES_MAX`].
    pub fn encode(&self, into: &mut BytesMut) {
        match self {
            Self::Stdout(bytes) => put(into, 0, bytes),
            Self::Stderr(bytes) => put(into, 1, bytes),
            Self::Exit(exit) => put(into, 2, exit.to_json().as_bytes()),
            Self::Error(message) => {
                let document = serde_json::json!({ "message": message });
                put(into, 3, document.to_string().as_bytes());
            }
            Self::Taken(bytes) => put(into, 4, &bytes.to_be_bytes()),
        }
    }

    /// What a frame of this kind with this content means.
    ///
    /// # Errors
    /// It means nothing.
    pub fn decode(kind: u8, content: Bytes) -> Result<Self, FrameError> {
        let malformed = FrameError::Malformed { kind };
        match kind {
            0 => Ok(Self::Stdout(content)),
            1 => Ok(Self::Stderr(content)),
            2 => Ok(Self::Exit(
                ProgramExit::from_json(&content).ok_or(malformed)?,
            )),
            3 => {
                let document: serde_json::Value =
                    serde_json::from_slice(&content).map_err(|_| malformed)?;
                let message = document.get("message").and_then(|message| message.as_str());
                Ok(Self::Error(message.ok_or(malformed)?.to_owned()))
            }
            4 => match content[..] {
                [a, b, c, d] => Ok(Self::Taken(u32::from_be_bytes([a, b, c, d]))),
                _ => Err(malformed),
            },
            _ => Err(FrameError::UnknownKind { kind }),
        }
    }
}

fn put(into: &mut BytesMut, kind: u8, content: &[u8]) {
    into.put_u8(kind);
    // Pieces are cut to the limit where they are made, which is far below what a length can say.
    into.put_u32(u32::try_from(content.len()).unwrap_or(u32::MAX));
    into.put_slice(content);
}

/// Cuts what arrives into frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// Never more than one frame and what was read with it.
    buffer: BytesMut,
}

impl FrameReader {
    /// Begins with bytes that have arrived already.
    pub fn starting_with(bytes: &[u8]) -> Self {
        Self {
            buffer: BytesMut::from(bytes),
        }
    }

    /// Takes bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame of what has arrived: its kind and its content.
    ///
    /// # Errors
    /// It is too long.
    pub fn frame(&mut self) -> Result<Option<(u8, Bytes)>, FrameError> {
        let [kind, a, b, c, d, ..] = self.buffer[..] else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([a, b, c, d]);
        let content_bytes = match usize::try_from(length) {
            Ok(bytes) if bytes <= FRAME_BYTES_MAX => bytes,
            _ => return Err(FrameError::TooLong { length }),
        };
        if self.buffer.len() < HEAD_BYTES + content_bytes {
            return Ok(None);
        }
        self.buffer.advance(HEAD_BYTES);
        Ok(Some((kind, self.buffer.split_to(content_bytes).freeze())))
    }

    /// Reads until there is a whole frame; `None` at the end of the stream. May be dropped and
    /// called again.
    ///
    /// # Errors
    /// The stream broke, or a frame is too long.
    pub async fn read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> std::io::Result<Option<(u8, Bytes)>> {
        loop {
            if let Some(frame) = self.frame().map_err(std::io::Error::other)? {
                return Ok(Some(frame));
            }
            self.buffer
                .reserve(HEAD_BYTES + FRAME_BYTES_MAX - self.buffer.len());
            if stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
