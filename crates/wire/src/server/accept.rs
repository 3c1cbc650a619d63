//! The accept loop: who may hold a connection, what happens when there are too many, and how
//! everything ends.
//!
//! One task runs the loop and owns all connection tasks, one per connection; nothing else is
//! spawned. At shutdown it stops accepting, asks every connection to finish its request, and
//! aborts those that have not done so when the drain deadline passes. A connection that was
//! taken over for something else than HTTP stays in its task, and ends when draining begins.

use std::{
    convert::Infallible,
    fs::File,
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::body::Body;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{CONNECTION, CONTENT_LENGTH},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn, upgrade::OnUpgrade};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    answer::harden,
    census::{Admission, Census, Place, Recognised, Standing, locked},
    framing::{Findings, Watched},
    limits::{CONNECTION_BUFFER_BYTES, HEADER_BYTES_MAX, ServerLimits},
    listener::{Accepted, Listener},
    stall::StallGuard,
    takeover::{RawConnection, Secure, Secured, Takeover, TakeoverEnd, Transport, keep_alive},
};
use crate::eager::Eager;

/// How long the loop leaves the listener alone when the system is out of descriptors or memory.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);

/// Answers requests; one value serves all connections.
pub trait Respond: Send + Sync + 'static {
    /// Must not panic. Dropped when the client goes away.
    fn respond(
        &self,
        request: Request<Incoming>,
        admission: Admission,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// Where a request came from, in its extensions. Unix sockets have one owner and count as one
/// peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(pub IpAddr);

/// Serves connections until `shutdown` is ready and everything under way has ended.
pub async fn accept_until<R: Respond>(
    listener: &Listener,
    responder: Arc<R>,
    limits: &ServerLimits,
    shutdown: impl Future<Output = ()>,
) {
    let (drain, draining) = watch::channel(false);
    let census = Arc::new(Mutex::new(Census::default()));
    let mut connections = JoinSet::new();
    let mut reserve = ReserveDescriptor::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(accepted) => {
                let peer = accepted.peer();
                // Idle strangers give way (`census`). Without a place the connection is dropped here, which closes it.
                if let Some(place) = Place::take(&census, peer, limits) {
                    let talk = Talk {
                        place,
                        limits: limits.clone(),
                        draining: draining.clone(),
                        secure: listener.secure(),
                    };
                    let number = talk.place.number();
                    let talk = Eager::new(talk.with(accepted, Arc::clone(&responder)));
                    let task = connections.spawn(talk);
                    locked(&census).set_task(number, task);
                }
            }
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections, backing off");
                // A stranger that says nothing gives its descriptor up before a new client does.
                let evicted = locked(&census).evict_any();
                if !evicted {
                    reserve.shed_one(listener).await;
                }
                tokio::time::sleep(ACCEPT_BACK_OFF).await;
            }
        }
    }
    drain.send_replace(true);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.drain, finished).await.is_err() {
        tracing::warn!(
            left = connections.len(),
            "drain deadline passed, closing connections"
        );
    }
    connections.shutdown().await;
}

/// The connection failed before it was accepted; the next one may be fine.
fn is_about_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

impl Accepted {
    /// Unix sockets have one owner and count as one peer.
    fn peer(&self) -> IpAddr {
        match self {
            Self::Tcp(_, address) => address.ip().to_canonical(),
            Self::Unix(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        }
    }
}

/// What one connection task holds.
struct Talk {
    place: Place,
    limits: ServerLimits,
    draining: watch::Receiver<bool>,
    secure: Option<Arc<dyn Secure>>,
}

impl Talk {
    async fn with<R: Respond>(self, accepted: Accepted, responder: Arc<R>) {
        match accepted {
            Accepted::Tcp(stream, _) => {
                // Answers are small and awaited: do not hold them back to fill a packet.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "cannot set TCP_NODELAY");
                }
                match self.secure.clone() {
                    None => self.run(stream, responder).await,
                    Some(secure) => self.run_secured(stream, secure.as_ref(), responder).await,
                }
            }
            Accepted::Unix(stream) => self.run(stream, responder).await,
        }
    }

    /// The handshake has as long as headers have: whoever stalls it holds nothing for ever.
    async fn run_secured<R: Respond>(
        self,
        stream: TcpStream,
        secure: &dyn Secure,
        responder: Arc<R>,
    ) {
        if let Err(error) = keep_alive(&stream) {
            tracing::debug!(%error, "cannot probe the other end");
        }
        let patience = self.limits.header_timeout;
        match tokio::time::timeout(patience, secure.secure(stream)).await {
            Ok(Ok(stream)) => self.run(Secured(stream), responder).await,
            Ok(Err(error)) => tracing::debug!(%error, "the handshake failed"),
            Err(_) => tracing::debug!("the handshake took too long"),
        }
    }

    async fn run<I: Transport, R: Respond>(self, io: I, responder: Arc<R>) {
        let Self {
            place,
            limits,
            mut draining,
            secure: _,
        } = self;
        let (successor, mut taken_over) = mpsc::channel(1);
        let (io, findings) = Watched::new(io);
        let counter = Arc::new(Counter {
            responder,
            admission: place.admission,
            peer: Peer(place.peer),
            standing: Arc::clone(&place.standing),
            requests: AtomicU64::new(0),
            findings,
            successor,
        });
        let service = service_fn(move |request: Request<Incoming>| {
            let counter = Arc::clone(&counter);
            async move { Ok::<_, Infallible>(counter.serve(request).await) }
        });
        let io = TokioIo::new(StallGuard::new(io, limits.write_stall));
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.header_timeout)
                .max_header_size(HEADER_BYTES_MAX)
                .max_buf_size(CONNECTION_BUFFER_BYTES)
                .serve_connection(io, service)
                .with_upgrades()
        );
        let mut drain_begins = pin!(async {
            // The value is a lock, which must not be held across an await. An error means that
            // the loop is gone, and then it is time to go as well.
            drop(draining.wait_for(|draining| *draining).await);
        });
        let outcome = tokio::select! {
            outcome = connection.as_mut() => outcome,
            () = drain_begins.as_mut() => {
                connection.as_mut().graceful_shutdown();
                let outcome = connection.await;
                log_end(outcome);
                return;
            }
        };
        log_end(outcome);
        if let Ok((takeover, upgrade)) = taken_over.try_recv() {
            let end = takeover.end;
            let work = carry_on::<I>(takeover, upgrade);
            match end {
                TakeoverEnd::ByItself => work.await,
                TakeoverEnd::AtDrain => tokio::select! {
                    () = work => {}
                    () = drain_begins => {}
                },
            }
        }
    }
}

/// Where the requests of one connection are taken in.
struct Counter<R> {
    responder: Arc<R>,
    admission: Admission,
    peer: Peer,
    standing: Arc<Standing>,
    /// How many there were.
    requests: AtomicU64,
    findings: Arc<Findings>,
    /// Takes what the connection goes on as.
    successor: mpsc::Sender<(Takeover, OnUpgrade)>,
}

impl<R: Respond> Counter<R> {
    async fn serve(&self, mut request: Request<Incoming>) -> Response<Body> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        if self.findings.is_ambiguous(number) {
            tracing::info!(peer = %self.peer.0, "refused a request whose end is not clear");
            return bare(StatusCode::BAD_REQUEST);
        }
        if !self.standing.begin_request() {
            return bare(StatusCode::SERVICE_UNAVAILABLE);
        }
        let upgrade = hyper::upgrade::on(&mut request);
        request.extensions_mut().insert(self.peer);
        let mut response = self.responder.respond(request, self.admission).await;
        let is_recognised = response.extensions_mut().remove::<Recognised>().is_some();
        self.standing.end_request(is_recognised);
        // The rest of its body is not read as a request.
        if response.status() == StatusCode::PAYLOAD_TOO_LARGE {
            close_after(&mut response);
        }
        // What comes behind a request that could have changed the protocol was not read along.
        if self.findings.is_last(number) && response.status() != StatusCode::SWITCHING_PROTOCOLS {
            close_after(&mut response);
        }
        if let Some(takeover) = response.extensions_mut().remove::<Takeover>() {
            // HTTP ends with this answer, so that there is one at most.
            let _ = self.successor.try_send((takeover, upgrade));
        }
        response
    }
}

/// The answer to a request that no responder sees: one with more than one length, or with one that
/// is none (HS-13), or one on a connection that gives way to others. It is as bare as what the
/// library says of requests that it cannot read.
fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    harden(&mut response);
    let nothing = HeaderValue::from(0);
    response.headers_mut().insert(CONTENT_LENGTH, nothing);
    close_after(&mut response);
    response
}

fn close_after(response: &mut Response<Body>) {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
}

fn log_end(outcome: hyper::Result<()>) {
    if let Err(error) = outcome {
        tracing::debug!(%error, "connection ended");
    }
}

/// Hands the connection over, without the guard: what it carries now may pause for long.
async fn carry_on<I: Transport>(takeover: Takeover, upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else {
        return;
    };
    if let Ok(parts) = upgraded.downcast::<TokioIo<StallGuard<Watched<I>>>>() {
        let io = parts.io.into_inner().into_inner().into_inner();
        takeover.begin(RawConnection::new(io, parts.read_buf)).await;
    }
}

/// A descriptor that is given up when there are none left, so that waiting clients can be
/// hung up on instead of hanging in the backlog.
struct ReserveDescriptor(Option<File>);

impl ReserveDescriptor {
    fn new() -> Self {
        Self(File::open("/dev/null").ok())
    }

    async fn shed_one(&mut self, listener: &Listener) {
        if self.0.take().is_some() {
            let shed = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
            drop(shed);
        }
        *self = Self::new();
    }
}
