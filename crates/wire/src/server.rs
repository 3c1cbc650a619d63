//! The executor's HTTP server: the contract's routes over an [`ActionService`].
//!
//! A request passes three stations: `accept` (who may hold a connection, and for how long),
//! `gate` (limits, names and keys, before a byte of the body is read) and the handlers of
//! `routes`, which translate and delegate. A client that goes away drops its handler's future;
//! what the service had started goes on by the service's own promise.

pub(crate) mod accept;
pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod census;
mod files;
mod framing;
pub(crate) mod gate;
mod handlers;
pub(crate) mod lent;
mod limits;
pub(crate) mod listener;
pub(crate) mod output;
pub(crate) mod programs;
mod resources;
mod routes;
mod stall;
pub(crate) mod takeover;
mod tools;
mod transfer;
mod unix_socket;
mod validation;
pub(crate) mod variables;

use std::{future::Future, sync::Arc};

pub use limits::{
    BODY_RATE_MIN, BODY_STALL, CONNECTIONS_MAX, DRAIN, HEADER_BYTES_MAX, HEADER_TIMEOUT,
    JSON_BYTES_MAX, LIVENESS_RESERVE, PEER_CONNECTIONS_MAX, ServerLimits, URI_BYTES_MAX,
    WRITE_STALL,
};
pub use listener::BindError;
pub use routes::{Access, Route, prepare_routes, routes};

pub(crate) use accept::{Respond, accept_until};
pub(crate) use answer::harden;
pub(crate) use census::Admission;
pub(crate) use files::paths as files_paths;
pub(crate) use gate::host_is_loopback;
pub(crate) use listener::Listener;

use crate::{ActionService, Endpoint, SessionKey};

/// How a server treats those who come.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The key that every request must show, except those for liveness and load.
    pub session_key: Option<SessionKey>,
    /// Where a server without a key may listen.
    pub open_access: OpenAccess,
    /// What a client may use up.
    pub limits: ServerLimits,
}

/// Where a server without a key may listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenAccess {
    /// On loopback addresses and Unix sockets. Requests must name a loopback host, so that a
    /// web page cannot reach the server through a name of its own.
    LoopbackOnly,
    /// Anywhere: the caller knows that everyone who reaches the port may run commands, as in a
    /// container whose port only the host can reach.
    Acknowledged,
}

/// A server that has its socket and answers once it is served.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use zareba_wire::{ActionService, Endpoint, SessionKey};
/// # use zareba_wire::server::{BindError, OpenAccess, Server, ServerLimits, ServerOptions};
/// # async fn example(service: Arc<dyn ActionService>, key: SessionKey) -> Result<(), BindError> {
/// let options = ServerOptions {
///     session_key: Some(key),
///     open_access: OpenAccess::LoopbackOnly,
///     limits: ServerLimits::default(),
/// };
/// let server = Server::bind(&Endpoint::Tcp(([127, 0, 0, 1], 3000).into()), options)?;
/// server.serve(service, async { drop(tokio::signal::ctrl_c().await) }).await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    options: ServerOptions,
}

impl Server {
    /// Takes the socket, so that a client that connects from now on is at worst kept waiting.
    ///
    /// # Errors
    /// An address outside loopback without a strong key and without [`OpenAccess::Acknowledged`]; an
    /// address or socket that is in use; whatever the system says of the address.
    pub fn bind(endpoint: &Endpoint, options: ServerOptions) -> Result<Self, BindError> {
        if let (Some(key), Endpoint::Tcp(address)) = (&options.session_key, endpoint)
            && !(key.is_strong() || address.ip().to_canonical().is_loopback())
            && options.open_access != OpenAccess::Acknowledged
        {
            return Err(BindError::WeakKey { address: *address });
        }
        let guarded =
            options.session_key.is_some() || options.open_access == OpenAccess::Acknowledged;
        let listener = Listener::bind(endpoint, guarded)?;
        Ok(Self { listener, options })
    }

    /// Takes over a Unix socket that listens already, as a program in a sandbox does whose
    /// socket has its name outside.
    ///
    /// # Errors
    /// When the runtime cannot watch it.
    pub fn adopt(
        listener: std::os::unix::net::UnixListener,
        options: ServerOptions,
    ) -> Result<Self, BindError> {
        let listener = Listener::adopt(listener)?;
        Ok(Self { listener, options })
    }

    /// Where it really listens: with the port that the kernel chose.
    pub fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }

    /// Answers until `shutdown` is ready, then finishes what is under way within
    /// [`ServerLimits::drain`], closes everything and removes its Unix socket.
    pub async fn serve(self, service: Arc<dyn ActionService>, shutdown: impl Future<Output = ()>) {
        let limits = self.options.limits.clone();
        let gate = gate::Gate::new(service, self.options, self.listener.endpoint());
        accept_until(&self.listener, Arc::new(gate), &limits, shutdown).await;
    }
}

/// The contract's routes for a server that has its own accept loop and has checked already who
/// may use them: there is no gate in front of these. Programs (`/programs`) need an accept loop
/// that hands connections over.
pub fn router(service: Arc<dyn ActionService>, limits: ServerLimits) -> axum::Router {
    let surface = Arc::new(handlers::Surface::new(
        service,
        limits,
        tools::PostAddress::Relative,
    ));
    routes::RouteTable::contract().into_router(surface)
}
