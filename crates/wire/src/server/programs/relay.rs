//! Carries frames between a connection and a program, in one task.
//!
//! The connection is always read, whatever the program does: that is how signals get past input
//! that it does not take, and how the end of its client is noticed. Reading on is safe because
//! the client may be ahead of the program by a window only.

use std::{io, time::Duration};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf},
    time::timeout,
};

use super::super::takeover::{RawConnection, Stream};
use crate::program::{
    ClientFrame, FRAME_BYTES_MAX, FrameError, FrameReader, ProgramConnection, ProgramControl,
    ProgramEvent, ProgramEvents, ProgramInput, STDIN_WINDOW_BYTES, ServerFrame, StdinPiece,
};

/// How long a client may take to close its side after the end. Closing first could take the end
/// away from it, when it is still sending.
const FAREWELL: Duration = Duration::from_secs(2);

/// What is read away meanwhile, at a time.
const FAREWELL_CHUNK_BYTES: usize = 4096;

/// Input that the program took and the client was not told of; it is told at the latest now.
const UNTOLD_BYTES_MAX: usize = STDIN_WINDOW_BYTES / 4;

/// What is done to everything that a program says, before its client hears it.
pub trait Voice: Send {
    /// Says an event in as many pieces as it likes, each of a frame's size at the most. An end or
    /// an error is the last event, and the last piece of it must be one of these.
    fn say(&mut self, event: ProgramEvent, hear: &mut dyn FnMut(ProgramEvent));
}

/// Everything is heard as it was said.
#[derive(Clone, Copy, Debug)]
pub struct PlainVoice;

impl Voice for PlainVoice {
    fn say(&mut self, event: ProgramEvent, hear: &mut dyn FnMut(ProgramEvent)) {
        hear(event);
    }
}

/// Carries frames between a client and a program until that has ended and its client knows, or
/// until the client is gone. Dropped, it ends the program, since it holds what comes from it.
pub async fn carry_program(
    connection: RawConnection,
    program: ProgramConnection,
    voice: impl Voice,
) {
    let (reads, writes) = tokio::io::split(connection.io);
    let (input, events) = program.split();
    let carrier = Carrier {
        reads,
        writes,
        frames: FrameReader::starting_with(&connection.read_ahead),
        input: Some(input),
        events,
        typed: Typed::default(),
        control: None,
        outgoing: BytesMut::new(),
        voice,
    };
    if let Err(error) = carrier.run().await {
        tracing::debug!(%error, "the connection to a program ended");
    }
}

struct Carrier<V> {
    reads: ReadHalf<Box<dyn Stream>>,
    writes: WriteHalf<Box<dyn Stream>>,
    frames: FrameReader,
    /// `None` once the program takes nothing more.
    input: Option<ProgramInput>,
    events: ProgramEvents,
    typed: Typed,
    /// A signal or a size that is being passed on.
    control: Option<ProgramControl>,
    /// Frames that are not yet written: one event and one word about input at most.
    outgoing: BytesMut,
    voice: V,
}

/// Input between the client and the program.
#[derive(Default)]
struct Typed {
    /// At most a window.
    bytes: BytesMut,
    /// There will be no more.
    is_complete: bool,
    /// The program was told so.
    is_closed: bool,
    /// Taken by the program, and not told to the client.
    untold: usize,
}

impl<V: Voice> Carrier<V> {
    async fn run(mut self) -> io::Result<()> {
        let mut is_over = false;
        loop {
            let writes_wait = !self.outgoing.is_empty();
            if is_over && !writes_wait {
                return self.part().await;
            }
            let typed_waits = self.input.is_some() && self.typed.waits();
            tokio::select! {
                frame = self.frames.read(&mut self.reads), if self.control.is_none() => {
                    let Some((kind, content)) = frame? else {
                        return Ok(());
                    };
                    self.take(kind, content).map_err(io::Error::other)?;
                }
                () = steer(self.input.as_ref(), self.control), if self.control.is_some() => {
                    self.control = None;
                }
                written = self.writes.write_buf(&mut self.outgoing), if writes_wait => {
                    if written? == 0 {
                        return Err(io::ErrorKind::WriteZero.into());
                    }
                }
                event = self.events.next(), if !writes_wait && !is_over => {
                    is_over = self.announce(event);
                }
                passed = pass_on(self.input.as_ref(), &mut self.typed), if typed_waits => {
                    if !passed {
                        self.input = None;
                        self.typed.discard();
                    }
                }
            }
            self.tell_what_was_taken();
        }
    }

    /// What the client wants.
    fn take(&mut self, kind: u8, content: Bytes) -> Result<(), FrameError> {
        match ClientFrame::decode(kind, content)? {
            ClientFrame::Stdin(bytes) => {
                self.typed.push(&bytes)?;
                if self.input.is_none() {
                    self.typed.discard();
                }
            }
            ClientFrame::EndOfStdin => self.typed.is_complete = true,
            ClientFrame::Resize(size) => self.control = Some(ProgramControl::Resize(size)),
            ClientFrame::Signal(signal) => self.control = Some(ProgramControl::Signal(signal)),
        }
        Ok(())
    }

    /// Puts an event into frames; true when it is the last one.
    fn announce(&mut self, event: Option<ProgramEvent>) -> bool {
        let lost = || ProgramEvent::Error("the executor lost the program".to_owned());
        let event = event.unwrap_or_else(lost);
        let is_last = matches!(event, ProgramEvent::Exit(_) | ProgramEvent::Error(_));
        let outgoing = &mut self.outgoing;
        self.voice.say(event, &mut |said| {
            let frame = match said {
                ProgramEvent::Stdout(bytes) => ServerFrame::Stdout(bytes),
                ProgramEvent::Stderr(bytes) => ServerFrame::Stderr(bytes),
                ProgramEvent::Exit(exit) => ServerFrame::Exit(exit),
                ProgramEvent::Error(message) => ServerFrame::Error(message),
            };
            frame.encode(outgoing);
        });
        is_last
    }

    /// Says how much was taken when the client may be waiting for it.
    fn tell_what_was_taken(&mut self) {
        let Typed { untold, bytes, .. } = &mut self.typed;
        let is_due = *untold >= UNTOLD_BYTES_MAX || (*untold > 0 && bytes.is_empty());
        if is_due && self.outgoing.is_empty() {
            let taken = u32::try_from(*untold).unwrap_or(u32::MAX);
            ServerFrame::Taken(taken).encode(&mut self.outgoing);
            *untold = 0;
        }
    }

    /// Ends the connection so that the client gets to read its last frame.
    async fn part(mut self) -> io::Result<()> {
        self.writes.shutdown().await?;
        let mut rest = [0; FAREWELL_CHUNK_BYTES];
        let closed = async { while let Ok(1..) = self.reads.read(&mut rest).await {} };
        // A client that stays is left.
        let _ = timeout(FAREWELL, closed).await;
        Ok(())
    }
}

impl Typed {
    fn waits(&self) -> bool {
        !self.bytes.is_empty() || (self.is_complete && !self.is_closed)
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        if self.is_complete {
            // Nobody will read it, and it counts as taken.
            self.untold += bytes.len();
            return Ok(());
        }
        if self.bytes.len() + self.untold + bytes.len() > STDIN_WINDOW_BYTES {
            return Err(FrameError::WindowOverrun);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn discard(&mut self) {
        self.untold += self.bytes.len();
        self.bytes.clear();
    }

    fn next_piece(&mut self) -> StdinPiece {
        if self.bytes.is_empty() {
            self.is_closed = true;
            return StdinPiece::End;
        }
        let length = self.bytes.len().min(FRAME_BYTES_MAX);
        let piece = Bytes::copy_from_slice(&self.bytes[..length]);
        self.bytes.advance(length);
        self.untold += length;
        StdinPiece::Bytes(piece)
    }
}

/// Passes a signal or a size on. May be dropped and called again: it is sent once at most.
async fn steer(input: Option<&ProgramInput>, control: Option<ProgramControl>) {
    if let (Some(input), Some(control)) = (input, control) {
        // A program that has just ended needs no signals.
        let _ = input.control(control).await;
    }
}

/// Passes one piece of input on when there is room; false when nobody takes any. May be
/// dropped and called again.
async fn pass_on(input: Option<&ProgramInput>, typed: &mut Typed) -> bool {
    let Some(input) = input else {
        return false;
    };
    match input.room().await {
        Ok(room) => {
            room.send(typed.next_piece());
            true
        }
        Err(_) => false,
    }
}
