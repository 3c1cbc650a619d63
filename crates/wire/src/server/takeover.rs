//! A connection that goes on as something else than HTTP.
//!
//! A handler that answers 101 leaves a [`Takeover`] in its answer. The connection's task, which
//! counts among the connections and ends with the server, then carries on with it.

use std::{
    fmt, io,
    os::fd::AsFd,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use rustix::net::sockopt;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};

use crate::BoxFuture;

/// A machine at the other end that went away without a word is noticed after about
/// [`PROBE_IDLE`] and [`PROBES`] times [`PROBE_INTERVAL`].
const PROBE_IDLE: Duration = Duration::from_secs(30);
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// A stream of bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection without HTTP, and without the server's deadlines.
pub struct RawConnection {
    /// Both ways of it.
    pub io: Box<dyn Stream>,
    /// What was read of it already.
    pub read_ahead: Bytes,
}

impl fmt::Debug for RawConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RawConnection")
            .field("read_ahead", &self.read_ahead.len())
            .finish_non_exhaustive()
    }
}

impl RawConnection {
    pub(super) fn new(io: impl Transport, read_ahead: Bytes) -> Self {
        if let Err(error) = io.probe() {
            tracing::debug!(%error, "cannot probe the other end");
        }
        Self {
            io: Box::new(io),
            read_ahead,
        }
    }
}

/// A connection as the accept loop serves it.
pub(super) trait Transport: Stream + 'static {
    /// Has the kernel ask from time to time whether the other end is still there.
    fn probe(&self) -> io::Result<()>;
}

impl Transport for TcpStream {
    fn probe(&self) -> io::Result<()> {
        keep_alive(self)
    }
}

impl Transport for UnixStream {
    fn probe(&self) -> io::Result<()> {
        // It has no machine at its other end.
        Ok(())
    }
}

/// Turns a connection that was accepted into one that nobody else can read.
pub trait Secure: Send + Sync + 'static {
    /// Does the handshake. Dropped when it takes longer than the headers of a request may.
    fn secure(&self, stream: TcpStream) -> BoxFuture<'_, io::Result<Box<dyn Stream>>>;
}

/// A connection after such a handshake.
pub(super) struct Secured(pub(super) Box<dyn Stream>);

impl Transport for Secured {
    fn probe(&self) -> io::Result<()> {
        // Done before the handshake, when the socket could still be reached.
        Ok(())
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

pub(super) fn keep_alive(socket: impl AsFd) -> io::Result<()> {
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, PROBE_IDLE)?;
    sockopt::set_tcp_keepintvl(&socket, PROBE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&socket, PROBES)?;
    Ok(())
}

type Work = Box<dyn FnOnce(RawConnection) -> BoxFuture<'static, ()> + Send>;

/// What is done with a connection after its last answer. It travels as an extension of that
/// answer, which must be cloneable; there is one all the same.
#[derive(Clone)]
pub struct Takeover {
    work: Arc<Mutex<Option<Work>>>,
    pub(super) end: TakeoverEnd,
}

/// When a connection that was taken over ends, at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeoverEnd {
    /// When the server begins to drain.
    AtDrain,
    /// By itself soon after the server begins to drain, which the work knows of; else at the end
    /// of draining.
    ByItself,
}

impl Takeover {
    /// Does `work` with the connection once the answer that carries this was sent.
    pub fn new<F>(end: TakeoverEnd, work: impl FnOnce(RawConnection) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let work: Work = Box::new(|connection| Box::pin(work(connection)));
        let work = Arc::new(Mutex::new(Some(work)));
        Self { work, end }
    }

    /// Does it. Dropping the future drops the connection and whatever the work holds.
    pub(super) async fn begin(self, connection: RawConnection) {
        let work = self
            .work
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(work) = work {
            work(connection).await;
        }
    }
}

impl fmt::Debug for Takeover {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Takeover")
    }
}
