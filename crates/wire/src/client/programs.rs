//! Programs with streams of their own, from the host's end.

use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderValue, Method, StatusCode,
    header::{CONNECTION, UPGRADE},
};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt as _, ReadHalf, WriteHalf};

use super::{ClientError, DOCUMENT_BYTES_MAX, ExecutorClient, read_whole};
use crate::program::{
    ClientFrame, FrameReader, ProgramConnection, ProgramControl, ProgramEvent, ProgramRequest,
    ProgramSide, STDIN_WINDOW_BYTES, ServerFrame, StartProgramError, StdinPiece, UPGRADE_NAME,
};

/// How long an executor may take to start a program.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// What is said when the executor goes away in the middle.
const LOST: &str = "the connection to the executor broke before the program ended";

impl ExecutorClient {
    /// Starts a program and returns once it runs. The connection is carried by a task that ends
    /// with it; dropping it ends the program.
    ///
    /// # Errors
    /// [`ClientError::Program`] when the program cannot be started, otherwise whatever kept the
    /// answer from coming.
    pub async fn start_program(
        &self,
        request: &ProgramRequest,
    ) -> Result<ProgramConnection, ClientError> {
        request.check()?;
        let upgraded = tokio::time::timeout(START_TIMEOUT, self.upgrade(request)).await;
        let waited = START_TIMEOUT;
        let upgraded = upgraded.unwrap_or(Err(ClientError::Timeout { waited }))?;
        let (connection, side) = ProgramConnection::pair();
        tokio::spawn(carry(upgraded, side));
        Ok(connection)
    }

    async fn upgrade(&self, request: &ProgramRequest) -> Result<Upgraded, ClientError> {
        let mut asked = self.request(Method::POST, "/programs", Some(request.to_json()));
        let headers = asked.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(UPGRADE_NAME));
        let (response, lease) = self.pool.send(asked).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let upgraded = hyper::upgrade::on(response).await;
            return upgraded.map_err(|error| ClientError::Disconnected {
                source: error.into(),
            });
        }
        let refusal = read_whole(response, lease, DOCUMENT_BYTES_MAX).await;
        Err(refusal.err().unwrap_or(ClientError::InvalidAnswer {
            problem: "a program was started without a connection to it".to_owned(),
        }))
    }
}

impl From<StartProgramError> for ClientError {
    fn from(error: StartProgramError) -> Self {
        Self::Program(error)
    }
}

/// Carries frames until the program has ended, the executor is gone or nobody listens any more.
async fn carry(upgraded: Upgraded, side: ProgramSide) {
    let (reads, writes) = tokio::io::split(TokioIo::new(upgraded));
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
        () = inward(reads, outward, events) => {}
        () = listener.closed() => {}
    }
}

type Reads = ReadHalf<TokioIo<Upgraded>>;
type Events = tokio::sync::mpsc::Sender<ProgramEvent>;

/// Reads frames and sends them on, while `outward` goes its way.
async fn inward(mut reads: Reads, mut outward: Outward, events: Events) {
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
                // What was said before the executor went may still be there to read.
                Err(_) => {
                    outward.close();
                    continue;
                }
            },
        };
        let event = match decoded(frame) {
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

/// A frame that is none is the end, too: the executor cannot be believed any more (G-1).
fn decoded(frame: io::Result<Option<(u8, Bytes)>>) -> ServerFrame {
    match frame {
        Ok(Some((kind, content))) => ServerFrame::decode(kind, content).unwrap_or_else(|error| {
            ServerFrame::Error(format!("the executor's answer makes no sense: {error}"))
        }),
        Ok(None) => ServerFrame::Error(LOST.to_owned()),
        Err(error) => ServerFrame::Error(format!("{LOST}: {error}")),
    }
}

/// The way to the executor.
struct Outward {
    writes: WriteHalf<TokioIo<Upgraded>>,
    /// `None` once there is no more.
    stdin: Option<tokio::sync::mpsc::Receiver<StdinPiece>>,
    control: Option<tokio::sync::mpsc::Receiver<ProgramControl>>,
    /// What is left of a piece that was larger than the window.
    pending: Bytes,
    /// Bytes that may still be sent.
    window: usize,
    /// Frames that are not yet written.
    outgoing: BytesMut,
}

impl Outward {
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

    /// The executor has taken so much. It cannot widen the window beyond what it is.
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
async fn received<T>(channel: &mut Option<tokio::sync::mpsc::Receiver<T>>) -> Option<T> {
    match channel {
        Some(channel) => channel.recv().await,
        None => std::future::pending().await,
    }
}
