//! The end of those who started a program elsewhere: frames on a connection become a
//! [`ProgramConnection`].
//!
//! The connection is always read as far as there is room for what comes, and written as far as the
//! other end has room; signals and sizes pass what waits to be read.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
};

use super::{
    ClientFrame, FrameReader, ProgramConnection, ProgramControl, ProgramEvent, ProgramSide,
    STDIN_WINDOW_BYTES, ServerFrame, StdinPiece,
};

/// A program at the other end of a connection. A task carries its streams until the program has
/// ended, the `peer` is gone or nobody listens any more.
pub fn follow<I>(connection: I, peer: &'static str) -> ProgramConnection
where
    I: AsyncRead + AsyncWrite + Send + 'static,
{
    let (program, side) = ProgramConnection::pair();
    tokio::spawn(carry(connection, side, peer));
    program
}

async fn carry(connection: impl AsyncRead + AsyncWrite, side: ProgramSide, peer: &str) {
    let (reads, writes) = tokio::io::split(connection);
    let ProgramSide {
        stdin,
        control,
        events,
    } = side;
    let outward = Outward {
        writes,
        stdin: Some(stdin),
        control: Some(control),
        pending: Bytes::new(),
        window: STDIN_WINDOW_BYTES,
        outgoing: BytesMut::new(),
    };
    let listener = events.clone();
    tokio::select! {
        () = inward(reads, outward, events, peer) => {}
        () = listener.closed() => {}
    }
}

/// Reads frames and sends them on, while `outward` goes its way.
async fn inward(
    mut reads: impl AsyncRead + Unpin,
    mut outward: Outward<impl AsyncWrite + Unpin>,
    events: mpsc::Sender<ProgramEvent>,
    peer: &str,
) {
    let mut frames = FrameReader::default();
    loop {
        let next = async {
            // Nothing is read that there is no room for.
            let room = events.reserve().await.ok();
            (frames.read(&mut reads).await, room)
        };
        let (frame, room) = tokio::select! {
            arrived = next => arrived,
            written = outward.step() => match written {
                Ok(()) => continue,
                // What was said before the other end went may still be there to read.
                Err(_) => {
                    outward.close();
                    continue;
                }
            },
        };
        let event = match decoded(frame, peer) {
            ServerFrame::Taken(bytes) => {
                outward.widen(bytes);
                continue;
            }
            ServerFrame::Stdout(bytes) => ProgramEvent::Stdout(bytes),
            ServerFrame::Stderr(bytes) => ProgramEvent::Stderr(bytes),
            ServerFrame::Exit(exit) => ProgramEvent::Exit(exit),
            ServerFrame::Error(message) => ProgramEvent::Error(message),
        };
        let is_last = matches!(event, ProgramEvent::Exit(_) | ProgramEvent::Error(_));
        if let Some(room) = room {
            room.send(event);
        }
        if is_last {
            return;
        }
    }
}

/// A frame that is none is the end, too: the other end cannot be believed any more (G-1).
fn decoded(frame: io::Result<Option<(u8, Bytes)>>, peer: &str) -> ServerFrame {
    let lost = || format!("the connection to the {peer} broke before the program ended");
    match frame {
        Ok(Some((kind, content))) => ServerFrame::decode(kind, content).unwrap_or_else(|error| {
            ServerFrame::Error(format!("the {peer}'s answer makes no sense: {error}"))
        }),
        Ok(None) => ServerFrame::Error(lost()),
        Err(error) => ServerFrame::Error(format!("{}: {error}", lost())),
    }
}

/// The way to the other end.
struct Outward<W> {
    writes: W,
    /// `None` once there is no more.
    stdin: Option<mpsc::Receiver<StdinPiece>>,
    control: Option<mpsc::Receiver<ProgramControl>>,
    /// What is left of a piece that was larger than the window.
    pending: Bytes,
    /// Bytes that may still be sent.
    window: usize,
    /// Frames that are not yet written.
    outgoing: BytesMut,
}

impl<W: AsyncWrite + Unpin> Outward<W> {
    /// Writes something, or takes the next thing to write. May be dropped and called again; waits
    /// for ever when there is nothing more.
    async fn step(&mut self) -> io::Result<()> {
        if !self.outgoing.is_empty() {
            return match self.writes.write_buf(&mut self.outgoing).await? {
                0 => Err(io::ErrorKind::WriteZero.into()),
                _ => Ok(()),
            };
        }
        if !self.pending.is_empty() && self.window > 0 {
            let piece = self.pending.split_to(self.pending.len().min(self.window));
            self.window -= piece.len();
            ClientFrame::Stdin(piece).encode(&mut self.outgoing);
            return Ok(());
        }
        let may_type = self.pending.is_empty() && self.stdin.is_some();
        tokio::select! {
            biased;
            control = received(&mut self.control) => match control {
                Some(ProgramControl::Resize(size)) => {
                    ClientFrame::Resize(size).encode(&mut self.outgoing);
                }
                Some(ProgramControl::Signal(signal)) => {
                    ClientFrame::Signal(signal).encode(&mut self.outgoing);
                }
                None => self.control = None,
            },
            piece = received(&mut self.stdin), if may_type => match piece {
                Some(StdinPiece::Bytes(bytes)) => self.pending = bytes,
                Some(StdinPiece::End) | None => {
                    self.stdin = None;
                    ClientFrame::EndOfStdin.encode(&mut self.outgoing);
                }
            },
        }
        Ok(())
    }

    /// The other end has taken so much. It cannot widen the window beyond what it is.
    fn widen(&mut self, bytes: u32) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.window = self.window.saturating_add(bytes).min(STDIN_WINDOW_BYTES);
    }

    /// Nothing more is written.
    fn close(&mut self) {
        self.outgoing.clear();
        self.pending.clear();
        (self.stdin, self.control) = (None, None);
    }
}

/// The next one; waits for ever when there are none any more.
async fn received<T>(channel: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match channel {
        Some(channel) => channel.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    async fn next_frame(frames: &mut FrameReader, io: &mut tokio::io::DuplexStream) -> ClientFrame {
        let (kind, content) = frames.read(io).await.unwrap().unwrap();
        ClientFrame::decode(kind, content).unwrap()
    }

    #[tokio::test]
    async fn input_waits_for_the_server_and_signals_pass_it() {
        let (near, mut far) = duplex(2 * STDIN_WINDOW_BYTES);
        let (program, side) = ProgramConnection::pair();
        tokio::spawn(carry(near, side, "server"));
        let (input, _events) = program.split();
        let typing = input.clone();
        let more = STDIN_WINDOW_BYTES + 10;
        tokio::spawn(async move { typing.write_stdin(vec![7; more].into()).await });
        let mut frames = FrameReader::default();
        let mut arrived = 0;
        while arrived < STDIN_WINDOW_BYTES {
            match next_frame(&mut frames, &mut far).await {
                ClientFrame::Stdin(bytes) => arrived += bytes.len(),
                other => panic!("{other:?}"),
            }
        }
        let signal = crate::program::ProgramSignal::Int;
        input.signal(signal).await.unwrap();
        let frame = next_frame(&mut frames, &mut far).await;
        assert_eq!(frame, ClientFrame::Signal(signal));
        let mut taken = BytesMut::new();
        // More than was sent: it counts as what was sent.
        ServerFrame::Taken(u32::MAX).encode(&mut taken);
        far.write_all_buf(&mut taken).await.unwrap();
        let frame = next_frame(&mut frames, &mut far).await;
        assert_eq!(frame, ClientFrame::Stdin(vec![7; 10].into()));
    }

    #[tokio::test]
    async fn a_server_that_makes_no_sense_or_goes_away_is_the_end() {
        for (said, expected) in [
            (&b"\x09\0\0\0\0"[..], "unknown kind 9"),
            (b"", "broke before"),
        ] {
            let (near, mut far) = duplex(1024);
            let (program, side) = ProgramConnection::pair();
            tokio::spawn(carry(near, side, "server"));
            let (_input, mut events) = program.split();
            far.write_all(said).await.unwrap();
            drop(far);
            match events.next().await {
                Some(ProgramEvent::Error(message)) => assert!(message.contains(expected)),
                other => panic!("{other:?}"),
            }
            assert_eq!(events.next().await, None);
        }
    }

    #[tokio::test]
    async fn nobody_listening_ends_the_connection() {
        let (near, mut far) = duplex(1024);
        let (program, side) = ProgramConnection::pair();
        tokio::spawn(carry(near, side, "server"));
        let (_input, events) = program.split();
        drop(events);
        let frame = FrameReader::default().read(&mut far).await.unwrap();
        assert_eq!(frame, None);
    }
}
