//! A connection that goes on as something else than HTTP.
//!
//! A handler that answers 101 leaves a [`Takeover`] in its answer. The connection's task, which
//! counts among the connections and ends with the server, then carries on with it.

use std::{
    fmt, io,
    os::fd::AsFd,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::BoxFuture;

/// A machine at the other end that went away without a word is noticed after about
/// [`PROBE_IDLE`] and [`PROBES`] times [`PROBE_INTERVAL`].
const PROBE_IDLE: Duration = Duration::from_secs(30);
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// A stream of bytes both ways.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection without HTTP, and without the server's deadlines.
pub(super) struct RawConnection {
    pub(super) io: Box<dyn Stream>,
    /// What was read of it already.
    pub(super) read_ahead: Bytes,
}

impl RawConnection {
    pub(super) fn new(io: impl Stream + AsFd + 'static, read_ahead: Bytes) -> Self {
        if let Err(error) = keep_alive(&io) {
            // A Unix socket has no machine at its other end.
            tracing::debug!(%error, "cannot probe the other end");
        }
        Self {
            io: Box::new(io),
            read_ahead,
        }
    }
}

fn keep_alive(socket: impl AsFd) -> io::Result<()> {
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
pub(super) struct Takeover(Arc<Mutex<Option<Work>>>);

impl Takeover {
    pub(super) fn new<F>(work: impl FnOnce(RawConnection) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let work: Work = Box::new(|connection| Box::pin(work(connection)));
        Self(Arc::new(Mutex::new(Some(work))))
    }

    /// Does it. Dropping the future drops the connection and whatever the work holds.
    pub(super) async fn begin(self, connection: RawConnection) {
        let work = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
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
