//! Connections to one executor: made when needed, kept for a while, used by one request at a time.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use http::{HeaderValue, Request, Response};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

use super::{ClientError, RequestBody};
use crate::Endpoint;

/// Idle connections that are kept; requests at once may use more.
const IDLE_MAX: usize = 32;
/// Half of the server's own idle deadline: one that it is about to close is not used.
const IDLE_AGE_MAX: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

type Sender = SendRequest<RequestBody>;

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
    sender: Sender,
    since: Instant,
}

/// A connection on which an answer is being read. Dropped, it is closed.
pub(super) struct Lease {
    sender: Sender,
    shared: Arc<Shared>,
}

impl Lease {
    /// Call when the answer was read to its end.
    pub(super) fn give_back(self) {
        let mut idle = self.shared.idle();
        if idle.len() < IDLE_MAX && !self.sender.is_closed() {
            idle.push(Idle {
                sender: self.sender,
                since: Instant::now(),
            });
        }
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that was used last, when it is still good for a request.
    async fn take_idle(&self) -> Option<Sender> {
        loop {
            let candidate = self.idle().pop()?;
            if candidate.since.elapsed() > IDLE_AGE_MAX {
                // All others are older.
                self.idle().clear();
                return None;
            }
            let mut sender = candidate.sender;
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
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
    ) -> Result<(Response<Incoming>, Lease), ClientError> {
        while let Some(sender) = self.shared.take_idle().await {
            match self.send_on(sender, request).await {
                Ok(answer) => return Ok(answer),
                Err(Failure::Unwritten { unsent, .. }) => request = *unsent,
                Err(Failure::InDoubt(error)) => return Err(error),
            }
        }
        let sender = self
            .connect()
            .await
            .map_err(|source| self.unreachable(source))?;
        self.send_on(sender, request)
            .await
            .map_err(|failure| match failure {
                Failure::Unwritten { error, .. } => self.unreachable(io::Error::other(error)),
                Failure::InDoubt(error) => error,
            })
    }

    async fn send_on(
        &self,
        mut sender: Sender,
        request: Request<RequestBody>,
    ) -> Result<(Response<Incoming>, Lease), Failure> {
        match sender.try_send_request(request).await {
            Ok(response) => Ok((
                response,
                Lease {
                    sender,
                    shared: Arc::clone(&self.shared),
                },
            )),
            Err(mut failure) => Err(match failure.take_message() {
                Some(unsent) => Failure::Unwritten {
                    unsent: Box::new(unsent),
                    error: failure.into_error(),
                },
                None => Failure::InDoubt(ClientError::Disconnected {
                    source: failure.into_error().into(),
                }),
            }),
        }
    }

    fn unreachable(&self, source: io::Error) -> ClientError {
        ClientError::Connect {
            endpoint: self.shared.endpoint.clone(),
            source,
        }
    }

    async fn connect(&self) -> io::Result<Sender> {
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

/// The connection lives in a task that ends with it: when the server closes, or when the
/// sender is dropped and nothing is under way.
async fn handshake<I>(io: I) -> io::Result<Sender>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(io))
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "connection to the executor ended");
        }
    });
    Ok(sender)
}
