//! Carries frames between a client and a program, and hides secrets on the way out.
//!
//! Four things go on at once, in one task: the client is read, input is passed on, output is
//! written, and the client's key is looked at. The client is always read, whatever the program
//! does: that is how signals get past input that it does not take, and how the end of the client
//! is noticed. Reading on is safe because a client may be ahead of the program by a window only.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, SimplexStream, WriteHalf},
    sync::Notify,
    time::timeout,
};
use zareba_session::{Mask, StreamMask};
use zareba_wire::{
    program::{
        ClientFrame, FRAME_BYTES_MAX, FrameError, FrameReader, ProgramConnection, ProgramEvent,
        ProgramEvents, ProgramInput, STDIN_WINDOW_BYTES, ServerFrame,
    },
    serving::{RawConnection, Stream},
};

use crate::upgrade::Leave;

/// How long a client may take to close its side after the end. Closing first could take the end
/// away from it, when it is still sending.
const FAREWELL: Duration = Duration::from_secs(2);
/// What is read away meanwhile, at a time.
const FAREWELL_CHUNK_BYTES: usize = 4096;

type Reads = ReadHalf<Box<dyn Stream>>;
type Writes = WriteHalf<Box<dyn Stream>>;

/// One client's connection to one program.
pub(super) struct Relay {
    leave: Leave,
    flow: Flow,
}

/// Input between the client and the program, counted.
#[derive(Default)]
struct Flow {
    /// Sent by the client, which was not told that it was taken: at most a window.
    ahead: AtomicUsize,
    /// The part of it that was taken.
    taken: AtomicUsize,
    /// Told when more was taken.
    news: Notify,
}

impl Flow {
    fn arrive(&self, bytes: usize) -> Result<(), FrameError> {
        let ahead = self.ahead.fetch_add(bytes, Ordering::Relaxed);
        if ahead + bytes > STDIN_WINDOW_BYTES {
            return Err(FrameError::WindowOverrun);
        }
        Ok(())
    }

    fn take(&self, bytes: usize) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        self.news.notify_one();
    }

    /// What the client is to be told now.
    fn tell(&self) -> usize {
        let taken = self.taken.swap(0, Ordering::Relaxed);
        self.ahead.fetch_sub(taken, Ordering::Relaxed);
        taken
    }
}

impl Relay {
    pub(super) fn new(leave: Leave) -> Self {
        Self {
            leave,
            flow: Flow::default(),
        }
    }

    /// Carries until the program has ended and its client knows, until the client is gone or may
    /// no more. Dropped, it ends the program, since it holds what comes from it.
    pub(super) async fn carry(self, connection: RawConnection, program: ProgramConnection) {
        let (mut reads, mut writes) = tokio::io::split(connection.io);
        let (input, events) = program.split();
        let (typed, typing) = tokio::io::simplex(STDIN_WINDOW_BYTES);
        let frames = FrameReader::starting_with(&connection.read_ahead);
        let ended = tokio::select! {
            shown = self.show(&mut writes, events) => shown,
            heard = self.heed(&mut reads, frames, &input, typing) => heard.and(Err(gone())),
            () = self.pass_on(typed, &input) => Err(gone()),
            () = self.leave.over() => Err(gone()),
        };
        match ended {
            Ok(()) => part(reads, writes).await,
            Err(error) => tracing::debug!(%error, "the connection to a program ended"),
        }
    }

    /// Reads what the client wants, until it is gone.
    async fn heed(
        &self,
        reads: &mut Reads,
        mut frames: FrameReader,
        input: &ProgramInput,
        typing: WriteHalf<SimplexStream>,
    ) -> io::Result<()> {
        let mut typing = Some(typing);
        while let Some((kind, content)) = frames.read(reads).await? {
            match ClientFrame::decode(kind, content).map_err(io::Error::other)? {
                ClientFrame::Stdin(bytes) => {
                    self.flow.arrive(bytes.len()).map_err(io::Error::other)?;
                    match &mut typing {
                        // Never waits: there is room for a window.
                        Some(typing) => typing.write_all(&bytes).await?,
                        // Nobody will read it, and it counts as taken.
                        None => self.flow.take(bytes.len()),
                    }
                }
                ClientFrame::EndOfStdin => {
                    if let Some(mut typing) = typing.take() {
                        typing.shutdown().await?;
                    }
                }
                // A program that has just ended needs neither.
                ClientFrame::Resize(size) => {
                    let _ = input.resize(size).await;
                }
                ClientFrame::Signal(signal) => {
                    let _ = input.signal(signal).await;
                }
            }
        }
        Ok(())
    }

    /// Passes input on, at the pace of the program. Never ends by itself.
    async fn pass_on(&self, mut typed: ReadHalf<SimplexStream>, input: &ProgramInput) {
        let mut piece = BytesMut::new();
        loop {
            piece.reserve(FRAME_BYTES_MAX);
            let mut room = (&mut typed).take(FRAME_BYTES_MAX as u64);
            match room.read_buf(&mut piece).await {
                Ok(1..) => {
                    let length = piece.len();
                    // What a program does not take any more is taken by nobody.
                    let _ = input.write_stdin(piece.split().freeze()).await;
                    self.flow.take(length);
                }
                Ok(0) | Err(_) => {
                    let _ = input.close_stdin().await;
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Writes what comes from the program, and what it has taken, until it has ended.
    async fn show(&self, writes: &mut Writes, mut events: ProgramEvents) -> io::Result<()> {
        let mut voice = Voice::new(self.leave.session.mask());
        loop {
            tokio::select! {
                () = self.flow.news.notified() => {
                    let taken = self.flow.tell();
                    if taken > 0 {
                        let taken = u32::try_from(taken).unwrap_or(u32::MAX);
                        ServerFrame::Taken(taken).encode(&mut voice.outgoing);
                    }
                }
                event = events.next() => voice.say(event),
            }
            writes.write_all_buf(&mut voice.outgoing).await?;
            if voice.is_over {
                return Ok(());
            }
        }
    }
}

/// Puts what a program says into frames, without the session's secrets.
struct Voice<'a> {
    mask: &'a Mask,
    stdout: StreamMask,
    stderr: StreamMask,
    /// Frames that are not yet written: those of one event.
    outgoing: BytesMut,
    is_over: bool,
}

impl<'a> Voice<'a> {
    fn new(mask: &'a Mask) -> Self {
        Self {
            mask,
            stdout: mask.stream(),
            stderr: mask.stream(),
            outgoing: BytesMut::new(),
            is_over: false,
        }
    }

    fn say(&mut self, event: Option<ProgramEvent>) {
        let last = match event {
            Some(ProgramEvent::Stdout(bytes)) => {
                let shown = self.stdout.push(&bytes);
                return put(shown, ServerFrame::Stdout, &mut self.outgoing);
            }
            Some(ProgramEvent::Stderr(bytes)) => {
                let shown = self.stderr.push(&bytes);
                return put(shown, ServerFrame::Stderr, &mut self.outgoing);
            }
            Some(ProgramEvent::Exit(exit)) => ServerFrame::Exit(exit),
            Some(ProgramEvent::Error(message)) => {
                ServerFrame::Error(self.mask.text(&message).into_owned())
            }
            None => ServerFrame::Error("the sandbox is gone".to_owned()),
        };
        put(
            self.stdout.finish(),
            ServerFrame::Stdout,
            &mut self.outgoing,
        );
        put(
            self.stderr.finish(),
            ServerFrame::Stderr,
            &mut self.outgoing,
        );
        last.encode(&mut self.outgoing);
        self.is_over = true;
    }
}

/// What stands for a secret may be longer than the secret, so that a piece may be cut again.
fn put(shown: Vec<u8>, frame: fn(Bytes) -> ServerFrame, outgoing: &mut BytesMut) {
    let mut shown = Bytes::from(shown);
    while !shown.is_empty() {
        let piece = shown.split_to(shown.len().min(FRAME_BYTES_MAX));
        frame(piece).encode(outgoing);
    }
}

/// Ends the connection so that the client gets to read its last frame.
async fn part(mut reads: Reads, mut writes: Writes) {
    let mut rest = [0; FAREWELL_CHUNK_BYTES];
    let closed = async {
        if writes.shutdown().await.is_ok() {
            while let Ok(1..) = reads.read(&mut rest).await {}
        }
    };
    // A client that stays is left.
    let _ = timeout(FAREWELL, closed).await;
}

fn gone() -> io::Error {
    io::Error::other("the client is gone, or its key is not valid any more")
}

#[cfg(test)]
mod tests {
    use zareba_session::Secret;

    use super::*;

    #[test]
    fn a_client_may_be_ahead_by_a_window_and_no_more() {
        let flow = Flow::default();
        assert_eq!(flow.arrive(STDIN_WINDOW_BYTES), Ok(()));
        flow.take(10);
        assert_eq!(flow.tell(), 10);
        assert_eq!(flow.arrive(10), Ok(()));
        assert_eq!(flow.arrive(1), Err(FrameError::WindowOverrun));
        assert_eq!(flow.tell(), 0);
    }

    #[test]
    fn secrets_are_hidden_also_between_pieces_and_frames_stay_small() {
        let mask = Mask::new([&Secret("swordfish-123".to_owned())]);
        let mut voice = Voice::new(&mask);
        for piece in ["the key is sword", "fish-123\n"] {
            voice.say(Some(ProgramEvent::Stdout(Bytes::from(piece))));
        }
        let many = Bytes::from("swordfish-123 ".repeat(FRAME_BYTES_MAX / 14));
        voice.say(Some(ProgramEvent::Stderr(many)));
        voice.say(None);
        let mut frames = FrameReader::starting_with(&voice.outgoing);
        let (mut shown, mut complaints) = (Vec::new(), Vec::new());
        while let Some((kind, content)) = frames.frame().unwrap() {
            match ServerFrame::decode(kind, content).unwrap() {
                ServerFrame::Stdout(bytes) => shown.extend_from_slice(&bytes),
                ServerFrame::Stderr(bytes) => complaints.extend_from_slice(&bytes),
                ServerFrame::Error(message) => assert_eq!(message, "the sandbox is gone"),
                other => panic!("{other:?}"),
            }
        }
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(shown, "the key is <secret_hidden>\n");
        let complaints = String::from_utf8(complaints).unwrap();
        assert!(!complaints.contains("swordfish"));
        assert_eq!(
            complaints.matches("<secret_hidden>").count(),
            FRAME_BYTES_MAX / 14
        );
        assert!(voice.is_over);
    }
}
