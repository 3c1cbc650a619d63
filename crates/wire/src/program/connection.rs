//! Both sides of a running program, joined by channels that hold little.
//!
//! A client that does not read stops the program's output, and a program that does not read
//! stops the client's input; neither costs more than a few pieces of memory.

use std::{fmt, sync::Arc};

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

/// Sees what passes between a program and the holder of its connection. It is called in the middle
/// of carrying streams, so that it must neither block nor wait.
pub trait ProgramObserver: fmt::Debug + Send + Sync {
    /// The program is given this to read.
    fn input(&self, piece: &StdinPiece);

    /// The holder of the connection takes this from the program.
    fn event(&self, event: &ProgramEvent);

    /// The holder takes no more events, which ends the program if it still runs.
    fn closed(&self);
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
    observer: Option<Arc<dyn ProgramObserver>>,
}

/// Room for one piece of input.
#[derive(Debug)]
pub(crate) struct InputRoom<'a> {
    permit: mpsc::Permit<'a, StdinPiece>,
    observer: Option<&'a dyn ProgramObserver>,
}

/// What comes from a program. Dropping it ends the program.
#[derive(Debug)]
pub struct ProgramEvents {
    receiver: mpsc::Receiver<ProgramEvent>,
    observer: Option<Arc<dyn ProgramObserver>>,
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
            input: ProgramInput {
                stdin,
                control,
                observer: None,
            },
            events: ProgramEvents {
                receiver,
                observer: None,
            },
        };
        let side = ProgramSide {
            stdin: stdin_receiver,
            control: control_receiver,
            events,
        };
        (connection, side)
    }

    /// The same connection with an observer of all that passes from now on. It replaces one that
    /// was set before.
    #[must_use]
    pub fn observed(mut self, observer: Arc<dyn ProgramObserver>) -> Self {
        self.input.observer = Some(Arc::clone(&observer));
        self.events.observer = Some(observer);
        self
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
            self.room().await?.send(StdinPiece::Bytes(piece));
        }
        Ok(())
    }

    /// Tells the program that there is no more to read. What is written later is lost.
    ///
    /// # Errors
    /// The program is gone.
    pub async fn close_stdin(&self) -> Result<(), ProgramGone> {
        self.room().await?.send(StdinPiece::End);
        Ok(())
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
    pub(crate) async fn room(&self) -> Result<InputRoom<'_>, ProgramGone> {
        let permit = self.stdin.reserve().await.map_err(|_| ProgramGone)?;
        Ok(InputRoom {
            permit,
            observer: self.observer.as_deref(),
        })
    }

    pub(crate) async fn control(&self, control: ProgramControl) -> Result<(), ProgramGone> {
        let sent = self.control.send(control).await;
        sent.map_err(|_| ProgramGone)
    }
}

impl InputRoom<'_> {
    pub(crate) fn send(self, piece: StdinPiece) {
        if let Some(observer) = self.observer {
            observer.input(&piece);
        }
        self.permit.send(piece);
    }
}

impl ProgramEvents {
    /// What comes next; `None` after the end. May be dropped and called again.
    pub async fn next(&mut self) -> Option<ProgramEvent> {
        let event = self.receiver.recv().await;
        if let (Some(observer), Some(event)) = (&self.observer, &event) {
            observer.event(event);
        }
        event
    }
}

impl Drop for ProgramEvents {
    fn drop(&mut self) {
        if let Some(observer) = &self.observer {
            observer.closed();
        }
    }
}
