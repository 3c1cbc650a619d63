//! Both sides of a running program, joined by channels that hold little.
//!
//! A client that does not read stops the program's output, and a program that does not read
//! stops the client's input; neither costs more than a few pieces of memory.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{FRAME_BYTES_MAX, ProgramExit, ProgramSignal, TerminalSize};

/// Pieces that wait in either direction; each has at most [`FRAME_BYTES_MAX`] bytes.
pub const PIECES_MAX: usize = 4;

/// Signals and sizes that wait to be passed on.
const CONTROLS_MAX: usize = 16;

/// What comes from a program. After an end or an error nothing follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramEvent {
    /// It wrote, or its terminal shows more.
    Stdout(Bytes),
    /// It complained. A program on a terminal does so there.
    Stderr(Bytes),
    /// It ended.
    Exit(ProgramExit),
    /// What became of it is not known.
    Error(String),
}

/// More for a program to read, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StdinPiece {
    /// At most [`FRAME_BYTES_MAX`] bytes.
    Bytes(Bytes),
    /// There is no more. On a terminal, the key is pressed that says so.
    End,
}

/// What else can be done to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramControl {
    /// Its terminal has another size. Without one nothing happens.
    Resize(TerminalSize),
    /// A signal for it and its process group.
    Signal(ProgramSignal),
}

/// There is nobody to take it: the program has ended, or the connection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program is gone")]
pub struct ProgramGone;

/// A running program, as those see it who started it.
///
/// Dropping it, or just its events, ends the program: one on a terminal is hung up on, another
/// one is asked to end and killed two seconds later, and whatever it left in its session goes
/// with it.
#[derive(Debug)]
pub struct ProgramConnection {
    input: ProgramInput,
    events: ProgramEvents,
}

/// The way to a program. Dropping it is the end of the program's input.
#[derive(Clone, Debug)]
pub struct ProgramInput {
    stdin: mpsc::Sender<StdinPiece>,
    control: mpsc::Sender<ProgramControl>,
}

/// What comes from a program. Dropping it ends the program.
#[derive(Debug)]
pub struct ProgramEvents {
    receiver: mpsc::Receiver<ProgramEvent>,
}

/// The other side: who runs the program, or carries it to where it runs.
#[derive(Debug)]
pub struct ProgramSide {
    /// What it is given to read. Closed means that there is no more.
    pub stdin: mpsc::Receiver<StdinPiece>,
    /// What is done to it.
    pub control: mpsc::Receiver<ProgramControl>,
    /// What comes from it; pieces have at most [`FRAME_BYTES_MAX`] bytes. Closed means that
    /// nobody wants it any more.
    pub events: mpsc::Sender<ProgramEvent>,
}

impl ProgramConnection {
    /// Both sides of a new one.
    pub fn pair() -> (Self, ProgramSide) {
        let (stdin, stdin_receiver) = mpsc::channel(PIECES_MAX);
        let (control, control_receiver) = mpsc::channel(CONTROLS_MAX);
        let (events, receiver) = mpsc::channel(PIECES_MAX);
        let connection = Self {
            input: ProgramInput { stdin, control },
            events: ProgramEvents { receiver },
        };
        let side = ProgramSide {
            stdin: stdin_receiver,
            control: control_receiver,
            events,
        };
        (connection, side)
    }

    /// The way there, and what comes back.
    pub fn split(self) -> (ProgramInput, ProgramEvents) {
        (self.input, self.events)
    }
}

impl ProgramInput {
    /// Gives the program more to read, and waits while it does not read what it has.
    ///
    /// # Errors
    /// The program is gone.
    pub async fn write_stdin(&self, mut bytes: Bytes) -> Result<(), ProgramGone> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(FRAME_BYTES_MAX));
            let sent = self.stdin.send(StdinPiece::Bytes(piece)).await;
            sent.map_err(|_| ProgramGone)?;
        }
        Ok(())
    }

    /// Tells the program that there is no more to read. What is written later is lost.
    ///
    /// # Errors
    /// The program is gone.
    pub async fn close_stdin(&self) -> Result<(), ProgramGone> {
        let sent = self.stdin.send(StdinPiece::End).await;
        sent.map_err(|_| ProgramGone)
    }

    /// Gives its terminal another size.
    ///
    /// # Errors
    /// The program is gone.
    pub async fn resize(&self, size: TerminalSize) -> Result<(), ProgramGone> {
        self.control(ProgramControl::Resize(size)).await
    }

    /// Sends it a signal, past what waits to be read.
    ///
    /// # Errors
    /// The program is gone.
    pub async fn signal(&self, signal: ProgramSignal) -> Result<(), ProgramGone> {
        self.control(ProgramControl::Signal(signal)).await
    }

    /// Waits for room for one piece of input, for those who must not wait with it in hand.
    pub(crate) async fn room(
        &self,
    ) -> Result<mpsc::Permit<'_, StdinPiece>, mpsc::error::SendError<()>> {
        self.stdin.reserve().await
    }

    pub(crate) async fn control(&self, control: ProgramControl) -> Result<(), ProgramGone> {
        let sent = self.control.send(control).await;
        sent.map_err(|_| ProgramGone)
    }
}

impl ProgramEvents {
    /// What comes next; `None` after the end. May be dropped and called again.
    pub async fn next(&mut self) -> Option<ProgramEvent> {
        self.receiver.recv().await
    }
}
