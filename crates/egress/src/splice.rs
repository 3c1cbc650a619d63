//! Bytes in both directions, counted, within the limits, until both sides are done.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use crate::denial::{Denial, Fault};
use crate::http::{Body, Head};
use crate::meter::Meter;

/// How much is read at a time; each connection has two of these.
const BUFFER_BYTES: usize = 16 * 1024;

/// Why bytes stopped before both sides were done.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The one request of the connection has been answered.
    Answered,
    /// One side broke off.
    Broken,
    /// What the client sent cannot be passed on.
    Unclear(Fault),
    /// The client asked for what it may not have.
    Denied(Denial),
    /// The same, in HTTP.
    DeniedRequest(Denial),
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        // Which side it was and why makes no difference to the other one.
        Self::Broken
    }
}

impl From<Denial> for Stop {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

/// What one connection has moved, seen by both of its directions.
#[derive(Debug)]
pub(crate) struct Traffic<'a> {
    meter: &'a Meter,
    up: AtomicU64,
    down: AtomicU64,
    moved_at: Mutex<Instant>,
    is_one_request: AtomicBool,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the sandbox to the outside.
    Up,
    /// From the outside to the sandbox.
    Down,
}

impl<'a> Traffic<'a> {
    pub(crate) fn new(meter: &'a Meter) -> Self {
        Self {
            meter,
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            moved_at: Mutex::new(Instant::now()),
            is_one_request: AtomicBool::new(false),
        }
    }

    pub(crate) fn bytes(&self, direction: Direction) -> u64 {
        self.counter(direction).load(Ordering::Relaxed)
    }

    /// Returns when no byte has passed for so long.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            let until = self.moved_at() + limit;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }

    /// Passes bytes on as soon as the limits let them.
    pub(crate) async fn pass(
        &self,
        direction: Direction,
        writer: &mut (impl AsyncWrite + Unpin),
        bytes: &[u8],
    ) -> Result<(), Stop> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.meter.admit(bytes.len()).await?;
        writer.write_all(bytes).await?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.counter(direction).fetch_add(length, Ordering::Relaxed);
        *self.moved_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(())
    }

    /// Passes on whatever comes, and then its end.
    pub(crate) async fn copy(
        &self,
        direction: Direction,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Stop> {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let length = reader.read(&mut buffer).await?;
            if length == 0 {
                break;
            }
            let bytes = buffer.get(..length).unwrap_or_default();
            self.pass(direction, writer, bytes).await?;
        }
        writer.shutdown().await?;
        if direction == Direction::Down && self.is_one_request.load(Ordering::Relaxed) {
            return Err(Stop::Answered);
        }
        Ok(())
    }

    /// Passes on one request, and drops whatever the client says after it. The connection is
    /// over when the answer is, so this returns only to report that it broke.
    pub(crate) async fn request(
        &self,
        head: Head,
        rest: Vec<u8>,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Stop> {
        self.is_one_request.store(true, Ordering::Relaxed);
        self.pass(Direction::Up, writer, &head.forwarded).await?;
        let mut body = Body::new(head.framing);
        let taken = body.advance(&rest).map_err(Stop::Unclear)?;
        let begun = rest.get(..taken).unwrap_or_default();
        self.pass(Direction::Up, writer, begun).await?;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let length = reader.read(&mut buffer).await?;
            let bytes = buffer.get(..length).unwrap_or_default();
            if length == 0 && body.is_done() {
                // The client may have closed its half; the answer is still to come.
                return std::future::pending().await;
            }
            if length == 0 {
                return Err(Stop::Broken);
            }
            let taken = body.advance(bytes).map_err(Stop::Unclear)?;
            let bytes = bytes.get(..taken).unwrap_or_default();
            self.pass(Direction::Up, writer, bytes).await?;
        }
    }

    fn counter(&self, direction: Direction) -> &AtomicU64 {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    fn moved_at(&self) -> Instant {
        *self.moved_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
