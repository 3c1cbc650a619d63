//! The streams of a program on a connection to another server.

use std::{future, io};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::{Semaphore, mpsc},
};
use zareba_client::{ClientError, Connection, ErrorCode, ProgramTerminal, StartProgram};
use zareba_wire::program::{
    ClientFrame, FRAME_BYTES_MAX, FrameReader, ProgramConnection, ProgramControl, ProgramEvent,
    ProgramLine, ProgramRequest, ProgramSide, ProgramStdin, STDIN_WINDOW_BYTES, ServerFrame,
    StartFailure, StartProgramError, StdinPiece,
};

/// What is said when the other server goes away in the middle.
const LOST: &str = "the connection to the server broke before the program ended";

/// What the other server is asked for.
pub(super) fn asked(request: ProgramRequest) -> StartProgram {
    let (argv, command) = match request.program {
        ProgramLine::Argv(words) => (Some(words), None),
        ProgramLine::Shell(line) => (None, Some(line)),
    };
    StartProgram {
        argv,
        command,
        cwd: request.directory,
        env: request.environment.into_iter().collect(),
        terminal: request.terminal.map(|size| ProgramTerminal {
            rows: size.rows,
            cols: size.columns,
        }),
        stdin: request.stdin == ProgramStdin::Open,
    }
}

/// Why the program cannot be started, when it is the program's own fault.
pub(super) fn fault(error: &ClientError) -> Option<StartProgramError> {
    let ClientError::Refused { code, message, .. } = error else {
        return None;
    };
    let reason = match (*code)? {
        ErrorCode::ProgramNotFound => StartFailure::NotFound,
        ErrorCode::ProgramNotExecutable => StartFailure::NotExecutable,
        ErrorCode::BadDirectory => StartFailure::Directory,
        ErrorCode::InvalidRequest => StartFailure::Invalid,
        _ => return None,
    };
    Some(StartProgramError::new(reason, message.clone()))
}

/// A program at the other end of a connection. A task carries its streams and ends with it.
pub(super) fn carried(connection: Connection) -> ProgramConnection {
    let (program, side) = ProgramConnection::pair();
    tokio::spawn(carry(connection, side));
    program
}

/// Carries frames until the program has ended, the server is gone or nobody listens any more.
async fn carry(connection: impl AsyncRead + AsyncWrite, side: ProgramSide) {
    let (reads, writes) = tokio::io::split(connection);
    // Input that may still be sent, in bytes.
    let window = Semaphore::new(STDIN_WINDOW_BYTES);
    let listener = side.events.clone();
    let speech = Speech {
        stdin: Some(side.stdin),
        pending: Bytes::new(),
        window: &window,
    };
    tokio::select! {
        () = hear(reads, side.events, &window) => {}
        () = speech.hold(writes, side.control) => {}
        () = listener.closed() => {}
    }
}

/// Reads frames and passes on what they say, up to the last.
async fn hear(
    mut reads: impl AsyncRead + Unpin,
    events: mpsc::Sender<ProgramEvent>,
    window: &Semaphore,
) {
    let mut frames = FrameReader::default();
    loop {
        let event = match decoded(frames.read(&mut reads).await) {
            ServerFrame::Taken(bytes) => {
                widen(window, bytes);
                continue;
            }
            ServerFrame::Stdout(bytes) => ProgramEvent::Stdout(bytes),
            ServerFrame::Stderr(bytes) => ProgramEvent::Stderr(bytes),
            ServerFrame::Exit(exit) => ProgramEvent::Exit(exit),
            ServerFrame::Error(message) => ProgramEvent::Error(message),
        };
        let is_last = matches!(event, ProgramEvent::Exit(_) | ProgramEvent::Error(_));
        if events.send(event).await.is_err() || is_last {
            return;
        }
    }
}

/// A frame that is none is the end, too: the server cannot be believed any more (G-1).
fn decoded(frame: io::Result<Option<(u8, Bytes)>>) -> ServerFrame {
    match frame {
        Ok(Some((kind, content))) => ServerFrame::decode(kind, content).unwrap_or_else(|error| {
            ServerFrame::Error(format!("the server's answer makes no sense: {error}"))
        }),
        Ok(None) => ServerFrame::Error(LOST.to_owned()),
        Err(error) => ServerFrame::Error(format!("{LOST}: {error}")),
    }
}

/// The server has taken so much. It cannot widen the window beyond what it is.
fn widen(window: &Semaphore, bytes: u32) {
    let used = STDIN_WINDOW_BYTES.saturating_sub(window.available_permits());
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    window.add_permits(bytes.min(used));
}

/// What is said to the server.
struct Speech<'a> {
    /// `None` once there is no more.
    stdin: Option<mpsc::Receiver<StdinPiece>>,
    /// What is left of a piece.
    pending: Bytes,
    window: &'a Semaphore,
}

impl Speech<'_> {
    /// Writes input and controls. Never ends: what the server has said before it went may still
    /// be there to read.
    async fn hold(
        mut self,
        mut writes: impl AsyncWrite + Unpin,
        mut control: mpsc::Receiver<ProgramControl>,
    ) {
        let mut outgoing = BytesMut::new();
        let mut may_steer = true;
        loop {
            let frame = tokio::select! {
                biased;
                control = control.recv(), if may_steer => match control {
                    Some(ProgramControl::Resize(size)) => ClientFrame::Resize(size),
                    Some(ProgramControl::Signal(signal)) => ClientFrame::Signal(signal),
                    None => {
                        may_steer = false;
                        continue;
                    }
                },
                frame = self.typed() => frame,
            };
            frame.encode(&mut outgoing);
            if writes.write_all_buf(&mut outgoing).await.is_err() {
                return future::pending().await;
            }
        }
    }

    /// More input, once there is any and the server has room for it. May be dropped and called
    /// again.
    async fn typed(&mut self) -> ClientFrame {
        if self.pending.is_empty() {
            let Some(stdin) = &mut self.stdin else {
                return future::pending().await;
            };
            match stdin.recv().await {
                Some(StdinPiece::Bytes(bytes)) => self.pending = bytes,
                Some(StdinPiece::End) | None => {
                    self.stdin = None;
                    return ClientFrame::EndOfStdin;
                }
            }
        }
        let length = self.pending.len().min(FRAME_BYTES_MAX);
        let wanted = u32::try_from(length).unwrap_or(u32::MAX);
        match self.window.acquire_many(wanted).await {
            Ok(room) => room.forget(),
            // It is never closed.
            Err(_) => return future::pending().await,
        }
        ClientFrame::Stdin(self.pending.split_to(length))
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
        tokio::spawn(carry(near, side));
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
        let signal = zareba_wire::program::ProgramSignal::Int;
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
        for (said, expected) in [(&b"\x09\0\0\0\0"[..], "unknown kind 9"), (b"", LOST)] {
            let (near, mut far) = duplex(1024);
            let (program, side) = ProgramConnection::pair();
            tokio::spawn(carry(near, side));
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
        tokio::spawn(carry(near, side));
        let (_input, events) = program.split();
        drop(events);
        let frame = FrameReader::default().read(&mut far).await.unwrap();
        assert_eq!(frame, None);
    }
}
