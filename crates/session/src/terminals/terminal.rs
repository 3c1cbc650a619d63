//! One terminal: a program, what it shows, and what is typed into it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::watch;
use zareba_wire::program::{
    ProgramConnection, ProgramEvent, ProgramEvents, ProgramExit, ProgramInput, TerminalSize,
};

use super::{
    TerminalError,
    output::{Output, Viewer},
};
use crate::StreamMask;

/// How a terminal ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalEnd {
    /// Its program ended.
    Exit(ProgramExit),
    /// Its program was lost, with its sandbox or on the way there.
    Lost(String),
    /// It was closed.
    Closed,
}

/// A terminal as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalInfo {
    /// Its name.
    pub name: String,
    /// When it was opened.
    pub created: Timestamp,
    /// Its size.
    pub size: TerminalSize,
    /// Bytes that it has shown so far.
    pub output_bytes: u64,
    /// How it ended; `None` while its program runs.
    pub end: Option<TerminalEnd>,
}

/// One terminal. Its program ends when it is closed.
#[derive(Debug)]
pub struct Terminal {
    name: String,
    created: Timestamp,
    size: Mutex<TerminalSize>,
    input: ProgramInput,
    output: Arc<Output>,
    closing: watch::Sender<bool>,
    ended_at: Arc<Mutex<Option<Instant>>>,
}

impl Terminal {
    /// Takes a program over, in a task that ends with it.
    pub(super) fn new(
        name: String,
        size: TerminalSize,
        program: ProgramConnection,
        mask: StreamMask,
    ) -> Self {
        let (input, events) = program.split();
        let (closing, closed) = watch::channel(false);
        let output = Output::new();
        let ended_at = Arc::<Mutex<Option<Instant>>>::default();
        let pump = Pump {
            events,
            mask,
            output: Arc::clone(&output),
            closed,
            ended_at: Arc::clone(&ended_at),
        };
        tokio::spawn(pump.run());
        Self {
            name,
            created: Timestamp::now(),
            size: Mutex::new(size),
            input,
            output,
            closing,
            ended_at,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is now.
    pub fn info(&self) -> TerminalInfo {
        TerminalInfo {
            name: self.name.clone(),
            created: self.created,
            size: *self.size.lock().unwrap_or_else(PoisonError::into_inner),
            output_bytes: self.output.length(),
            end: self.output.ended(),
        }
    }

    /// Looks at its output from a byte on, or from as far back as it is kept. A number that is
    /// not kept any more, or not there yet, is moved to the nearest that is.
    pub fn view(&self, from: Option<u64>) -> Viewer {
        self.output.view(from)
    }

    /// Types into it, and waits while its program does not read.
    ///
    /// # Errors
    /// When its program has ended.
    pub async fn write(&self, bytes: Bytes) -> Result<(), TerminalError> {
        let written = self.input.write_stdin(bytes).await;
        written.map_err(|_| self.gone())
    }

    /// Gives it another size, for everyone who looks at it.
    ///
    /// # Errors
    /// When its program has ended.
    pub async fn resize(&self, size: TerminalSize) -> Result<(), TerminalError> {
        let resized = self.input.resize(size).await;
        resized.map_err(|_| self.gone())?;
        *self.size.lock().unwrap_or_else(PoisonError::into_inner) = size;
        Ok(())
    }

    pub(super) fn close(&self) {
        self.closing.send_replace(true);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.output.ended().is_some()
    }

    pub(super) fn ended_at(&self) -> Option<Instant> {
        *self.ended_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gone(&self) -> TerminalError {
        TerminalError::Ended {
            name: self.name.clone(),
        }
    }
}

/// Takes what a program shows, as fast as it comes: viewers read from what is kept.
struct Pump {
    events: ProgramEvents,
    mask: StreamMask,
    output: Arc<Output>,
    closed: watch::Receiver<bool>,
    ended_at: Arc<Mutex<Option<Instant>>>,
}

impl Pump {
    async fn run(mut self) {
        let end = loop {
            let event = tokio::select! {
                event = self.events.next() => event,
                // An error means that the terminal is gone, which is the same.
                _ = self.closed.wait_for(|is_closed| *is_closed) => break TerminalEnd::Closed,
            };
            match event {
                Some(ProgramEvent::Stdout(bytes) | ProgramEvent::Stderr(bytes)) => {
                    let shown = self.mask.push(&bytes);
                    self.output.push(&shown);
                }
                Some(ProgramEvent::Exit(exit)) => break TerminalEnd::Exit(exit),
                Some(ProgramEvent::Error(message)) => break TerminalEnd::Lost(message),
                None => break TerminalEnd::Lost("the sandbox is gone".to_owned()),
            }
        };
        let rest = self.mask.finish();
        self.output.push(&rest);
        *self.ended_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.output.end(end);
        // Dropping the events ends a program that still runs.
    }
}
