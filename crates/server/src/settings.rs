//! What a server is told by whoever starts it.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use zareba_wire::server;

/// What a server is told by whoever starts it.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Where it listens.
    pub listen: Listen,
    /// Names, with or without a port, that requests may call this server by, beside those that
    /// follow from where it listens.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages elsewhere that may use it, such as `https://ui.example`. Pages that
    /// it serves itself always may.
    pub allowed_origins: Vec<String>,
    /// The domain below which each shared port of a sandbox has a name of its own.
    pub preview_domain: String,
    /// What clients may use up.
    pub limits: Limits,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// On an address.
    Tcp {
        /// The address; port 0 lets the kernel choose.
        address: SocketAddr,
        /// What keeps others from reading along.
        transport: Transport,
    },
    /// On a Unix socket that only its owner can open.
    Unix(PathBuf),
}

/// What keeps others from reading along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Nothing; for loopback addresses only.
    Plain,
    /// TLS of our own.
    Tls(TlsFiles),
    /// A proxy in front of us that does TLS and that nobody can go around.
    BehindTlsProxy,
}

/// A certificate chain and its key, both in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, our own certificate first.
    pub certificates: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// What clients may use up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are served at once. One owner may keep a quarter of them open.
    pub connections: usize,
    /// Connections of one address. `None` is 64 on an address that others can reach; where all
    /// come from this machine or through a proxy, one peer may have all of them.
    pub peer_connections: Option<usize>,
    /// Bytes of a JSON body.
    pub json_bytes: usize,
    /// Bytes of an action's body: files are written by actions.
    pub action_bytes: usize,
    /// Bytes of memory for all large bodies together that are being read or whose actions are not
    /// done, with all their copies. One owner may have half of them.
    pub large_bodies_bytes: usize,
    /// How long a request may take that waits for nothing.
    pub request_timeout: Duration,
    /// How long a request may wait for an observation or for a session to be ready.
    pub wait: Duration,
    /// From a connection's start, or from the end of a request, to the end of the next headers.
    pub header_timeout: Duration,
    /// How long a body may pause.
    pub body_stall: Duration,
    /// How long a client may leave an answer unread.
    pub write_stall: Duration,
    /// How often a silent stream says that it is there; whoever misses two is gone.
    pub ping_interval: Duration,
    /// How long requests under way may go on after shutdown begins.
    pub drain: Duration,
    /// Items of a page.
    pub page_items: usize,
    /// How long a ticket is valid.
    pub ticket_life: Duration,
}

/// Connections of one address where strangers can connect.
const STRANGER_CONNECTIONS: usize = 64;
const MIB: usize = 1024 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: server::CONNECTIONS_MAX,
            peer_connections: None,
            json_bytes: MIB,
            action_bytes: server::JSON_BYTES_MAX,
            large_bodies_bytes: 512 * MIB,
            request_timeout: Duration::from_secs(30),
            wait: Duration::from_secs(3600),
            header_timeout: server::HEADER_TIMEOUT,
            body_stall: server::BODY_STALL,
            write_stall: server::WRITE_STALL,
            ping_interval: Duration::from_secs(15),
            drain: server::DRAIN,
            page_items: 1000,
            ticket_life: Duration::from_secs(30),
        }
    }
}

impl ServerSettings {
    /// A server at `listen` with the limits and names that it has by default.
    pub fn new(listen: Listen) -> Self {
        Self {
            listen,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            preview_domain: "localhost".to_owned(),
            limits: Limits::default(),
        }
    }

    /// What one address may hold, as the place where the server listens demands.
    pub(crate) fn peer_connections(&self) -> usize {
        let strangers = match &self.listen {
            Listen::Tcp {
                transport: Transport::BehindTlsProxy,
                ..
            }
            | Listen::Unix(_) => false,
            Listen::Tcp { address, .. } => !address.ip().to_canonical().is_loopback(),
        };
        let usual = if strangers {
            STRANGER_CONNECTIONS
        } else {
            self.limits.connections
        };
        self.limits.peer_connections.unwrap_or(usual)
    }

    /// The limits of the accept loop.
    pub(crate) fn accept_limits(&self) -> server::ServerLimits {
        server::ServerLimits {
            connections: self.limits.connections,
            peer_connections: self.peer_connections(),
            json_bytes: self.limits.json_bytes,
            header_timeout: self.limits.header_timeout,
            body_stall: self.limits.body_stall,
            write_stall: self.limits.write_stall,
            drain: self.limits.drain,
        }
    }
}
