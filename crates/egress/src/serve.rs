//! Runs the proxy of one sandbox on the sockets that were made inside it.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener, UdpSocket as StdUdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection;
use crate::denial::Denial;
use crate::dns;
use crate::literal;
use crate::policy::Policy;
use crate::proxy::Proxy;
use crate::record::{Decision, DecisionKind, Recorder};
use crate::upstream::{System, Upstream};

/// The port of name lookups; TCP connections to it are for our resolver.
const DNS: u16 = 53;
/// How long nothing is accepted after accepting failed, as it does when there are no descriptors
/// left: without a pause the loop would spin until there are.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The sockets of a sandbox, made in its network and held here.
#[derive(Debug)]
pub struct Sockets {
    /// Listeners on every address; those on port 53 take name lookups.
    pub tcp: Vec<StdTcpListener>,
    /// For name lookups.
    pub udp: Vec<StdUdpSocket>,
}

/// Where decisions are written down.
#[derive(Debug)]
pub struct Output {
    /// Every decision as a line of JSON, appended. At 4 MiB the file is renamed to the same name
    /// with `.1` behind it and a new one begins.
    pub decisions: PathBuf,
    /// The sums as one JSON document, replaced as a whole.
    pub counters: PathBuf,
}

/// Why the proxy could not start.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A descriptor is not the socket that it should be.
    #[error("cannot take over the sandbox's sockets; they must be bound and listening")]
    Sockets {
        /// What the system said.
        source: io::Error,
    },
    /// The log cannot be written.
    #[error("cannot open the log of decisions `{}`; its directory must be writable", path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The machine's own resolver cannot be used.
    #[error("cannot read which name servers this machine uses; check `/etc/resolv.conf`")]
    Resolver {
        /// What the system said.
        source: io::Error,
    },
}

/// Serves until `shutdown` is ready, then ends every connection, writes down what came of it and
/// returns. Dropping the future ends everything at once and writes nothing more.
///
/// # Errors
///
/// Only before it serves: sockets, log or resolver that cannot be used.
pub async fn serve(
    sockets: Sockets,
    policy: Policy,
    output: Output,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let system = System::new().map_err(|source| ServeError::Resolver { source })?;
    serve_with(Box::new(system), sockets, policy, output, shutdown).await
}

/// [`serve`] with another outside world.
pub(crate) async fn serve_with(
    upstream: Box<dyn Upstream>,
    sockets: Sockets,
    policy: Policy,
    output: Output,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let opened = Recorder::open(&output.decisions, output.counters);
    let (recorder, recording) = opened.map_err(|source| ServeError::Log {
        path: output.decisions,
        source,
    })?;
    let (close, closing) = watch::channel(false);
    let proxy = Arc::new(Proxy::new(policy, upstream, recorder, closing));
    let mut loops =
        spawn_loops(&proxy, sockets).map_err(|source| ServeError::Sockets { source })?;
    drop(proxy);
    let traffic = async {
        shutdown.await;
        close.send_replace(true);
        while loops.join_next().await.is_some() {}
    };
    // The recording ends when the last loop has dropped its proxy.
    tokio::join!(traffic, recording.run());
    Ok(())
}

fn spawn_loops(proxy: &Arc<Proxy>, sockets: Sockets) -> io::Result<JoinSet<()>> {
    let mut loops = JoinSet::new();
    for socket in sockets.udp {
        socket.set_nonblocking(true)?;
        loops.spawn(dns::serve_udp(proxy.clone(), UdpSocket::from_std(socket)?));
    }
    for listener in sockets.tcp {
        listener.set_nonblocking(true)?;
        loops.spawn(accept(proxy.clone(), TcpListener::from_std(listener)?));
    }
    Ok(loops)
}

/// Accepts until the proxy closes, then waits for the connections, which close too.
async fn accept(proxy: Arc<Proxy>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = proxy.closed() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted.and_then(|(stream, _)| Ok((stream.local_addr()?, stream))) {
            Ok((wanted, stream)) => admit(&proxy, &mut connections, stream, wanted).await,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::select! {
                    () = proxy.closed() => break,
                    () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                }
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

/// Starts serving a connection, unless there are too many already (EG-7).
async fn admit(
    proxy: &Arc<Proxy>,
    connections: &mut JoinSet<()>,
    stream: TcpStream,
    wanted: SocketAddr,
) {
    let Ok(slot) = proxy.slots.clone().try_acquire_owned() else {
        let mut decision = Decision::begin(DecisionKind::Tcp);
        decision.address = Some(literal::canonical(wanted.ip()));
        decision.port = Some(wanted.port());
        let limit = proxy.policy.limits().connections;
        decision.deny(&Denial::Connections { limit });
        connection::reset(stream);
        return proxy.recorder.record(decision).await;
    };
    // If it cannot be set, small packets travel later, and nothing else changes.
    let _ = stream.set_nodelay(true);
    let proxy = proxy.clone();
    connections.spawn(async move {
        if wanted.port() == DNS {
            dns::serve_stream(proxy, stream).await;
        } else {
            connection::serve(proxy, stream, wanted).await;
        }
        drop(slot);
    });
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
