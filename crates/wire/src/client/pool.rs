//! Connections to one executor: made when needed, kept for a while, used by one request at a time.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use http::{HeaderValue, Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{self, SendRequest},
    },
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

use super::{
    ClientError, RequestBody,
    worked::{Loan, Worked},
};
use crate::Endpoint;

/// Idle connections that are kept; requests at once may use more.
const IDLE_MAX: usize = 32;
/// Half of the server's own idle deadline: one that it is about to close is not used.
const IDLE_AGE_MAX: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, and the way to say something on it.
#[derive(Debug)]
struct Line {
    sender: SendRequest<RequestBody>,
    worked: Arc<Worked>,
}

/// The connections of one client.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    endpoint: Endpoint,
    host: HeaderValue,
    /// The newest last, which is also the one that is used next.
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    line: Line,
    since: Instant,
}

/// Who works a connection while an answer is waited for and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// Whoever waits, in one go.
    Caller,
    /// The connection's own task: what comes is read bit by bit, or not as HTTP.
    Task,
}

/// A connection on which an answer is being read. Dropped, it is closed.
pub(super) struct Lease {
    line: Line,
    /// When the caller works it. Dropped after the line, so that its task finds that gone.
    loan: Option<Loan>,
    shared: Arc<Shared>,
}

impl Lease {
    async fn send(
        mut self,
        request: Request<RequestBody>,
    ) -> Result<(Response<Incoming>, Self), Failure> {
        let sender = &mut self.line.sender;
        let exchange = async {
            match sender.ready().await {
                Ok(()) => sender.try_send_request(request).await.map_err(Failure::of),
                Err(error) => Err(Failure::Unwritten {
                    unsent: Box::new(request),
                    error,
                }),
            }
        };
        let sent = match &self.loan {
            Some(loan) => loan.wait_for(exchange).await,
            None => exchange.await,
        };
        Ok((sent?, self))
    }

    /// Waits for a part of the answer.
    pub(super) async fn wait_for<T>(&self, part: impl Future<Output = T>) -> T {
        match &self.loan {
            Some(loan) => loan.wait_for(part).await,
            None => part.await,
        }
    }

    /// Call when the answer was read to its end.
    pub(super) fn give_back(self) {
        let Self { line, loan, shared } = self;
        if let Some(loan) = loan {
            loan.give_back();
        }
        shared.keep(line);
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a connection for the next request, unless there are enough.
    fn keep(&self, line: Line) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX && !line.sender.is_closed() {
            idle.push(Idle {
                line,
                since: Instant::now(),
            });
        }
    }

    /// The connection that was used last, unless that is too long ago.
    fn take_idle(&self) -> Option<Line> {
        let candidate = self.idle().pop()?;
        if candidate.since.elapsed() > IDLE_AGE_MAX {
            // All others are older.
            self.idle().clear();
            return None;
        }
        Some(candidate.line)
    }
}

impl Pool {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        let host = match &endpoint {
            Endpoint::Tcp(address) => HeaderValue::from_str(&address.to_string()).ok(),
            Endpoint::Unix(_) => None,
        };
        let host = host.unwrap_or(HeaderValue::from_static("localhost"));
        Self {
            shared: Arc::new(Shared {
                endpoint,
                host,
                idle: Mutex::default(),
            }),
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.shared.endpoint
    }

    pub(super) fn host(&self) -> HeaderValue {
        self.shared.host.clone()
    }

    /// Sends a request and returns the head of its answer. A kept connection that turns out to
    /// be dead gives the request back unwritten, and only then is another one tried.
    pub(super) async fn send(
        &self,
        mut request: Request<RequestBody>,
        carrier: Carrier,
    ) -> Result<(Response<Incoming>, Lease), ClientError> {
        while let Some(line) = self.shared.take_idle() {
            match self.lease(line, carrier).send(request).await {
                Ok(answer) => return Ok(answer),
                Err(Failure::Unwritten { unsent, .. }) => request = *unsent,
                Err(Failure::InDoubt(error)) => return Err(error),
            }
        }
        let line = self
            .connect()
            .await
            .map_err(|source| self.unreachable(source))?;
        let sent = self.lease(line, carrier).send(request).await;
        sent.map_err(|failure| match failure {
            Failure::Unwritten { error, .. } => self.unreachable(io::Error::other(error)),
            Failure::InDoubt(error) => error,
        })
    }

    /// Opens a connection for the next request, unless there is one.
    pub(super) async fn connect_ahead(&self) {
        if self.shared.idle().is_empty()
            && let Ok(line) = self.connect().await
        {
            self.shared.keep(line);
        }
    }

    fn lease(&self, line: Line, carrier: Carrier) -> Lease {
        Lease {
            loan: (carrier == Carrier::Caller).then(|| line.worked.lend()),
            line,
            shared: Arc::clone(&self.shared),
        }
    }

    fn unreachable(&self, source: io::Error) -> ClientError {
        ClientError::Connect {
            endpoint: self.shared.endpoint.clone(),
            source,
        }
    }

    async fn connect(&self) -> io::Result<Line> {
        let connect = async {
            match &self.shared.endpoint {
                Endpoint::Tcp(address) => {
                    let stream = TcpStream::connect(address).await?;
                    stream.set_nodelay(true)?;
                    handshake(stream).await
                }
                Endpoint::Unix(path) => handshake(UnixStream::connect(path).await?).await,
            }
        };
        tokio::time::timeout(CONNECT_TIMEOUT, connect).await?
    }
}

/// What became of a request that got no answer.
enum Failure {
    /// Not a byte of it was written.
    Unwritten {
        unsent: Box<Request<RequestBody>>,
        error: hyper::Error,
    },
    /// It may have arrived.
    InDoubt(ClientError),
}

impl Failure {
    fn of(mut error: TrySendError<Request<RequestBody>>) -> Self {
        match error.take_message() {
            Some(unsent) => Self::Unwritten {
                unsent: Box::new(unsent),
                error: error.into_error(),
            },
            None => Self::InDoubt(ClientError::Disconnected {
                source: error.into_error().into(),
            }),
        }
    }
}

async fn handshake<I>(io: I) -> io::Result<Line>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(io))
        .await
        .map_err(io::Error::other)?;
    let worked = Worked::begin(async {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "connection to the executor ended");
        }
    });
    Ok(Line { sender, worked })
}
