//! What a client may use up, with the reason for each number.

use std::time::Duration;

/// Connections that are served at once.
pub const CONNECTIONS_MAX: usize = 1024;
/// Connections of one address. An executor's one rightful peer is its host, which holds a
/// connection for every action under way, so this is far above what a public server allows.
pub const PEER_CONNECTIONS_MAX: usize = 512;
/// Connections beyond those, on which only the public routes answer, so that liveness can be
/// asked for under overload. A client that comes after these is hung up on, unless a stranger can
/// give way to it (`census`).
pub const LIVENESS_RESERVE: usize = 32;
/// A JSON body. Commands and files written travel in it; larger files are uploaded.
pub const JSON_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Request line and headers together.
pub const HEADER_BYTES_MAX: usize = 32 * 1024;
/// The target of a request: the longest path there is, with every byte percent-encoded.
pub const URI_BYTES_MAX: usize = 16 * 1024;
/// From the end of one request, or from the connection's start, to the end of the next one's
/// headers. One deadline closes slow senders and idle connections alike; common clients drop
/// their idle connections after 5 s.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a body may pause.
pub const BODY_STALL: Duration = Duration::from_secs(30);
/// Bytes per second that a body must keep up over time, beyond its one allowed pause.
pub const BODY_RATE_MIN: u64 = 1024;
/// How long a client may leave an answer unread.
pub const WRITE_STALL: Duration = Duration::from_secs(30);
/// How long requests under way may go on after shutdown begins.
pub const DRAIN: Duration = Duration::from_secs(10);

/// How much is read from a socket at a time, at most.
pub(crate) const CONNECTION_BUFFER_BYTES: usize = 256 * 1024;
/// What is read away of a refused body, so that its sender gets to read the refusal.
pub(crate) const LINGER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long that is done after the answer was sent, for a client that goes on sending.
pub(crate) const LINGER_TIME: Duration = Duration::from_secs(5);

/// The limits that an operator may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// See [`CONNECTIONS_MAX`].
    pub connections: usize,
    /// See [`PEER_CONNECTIONS_MAX`].
    pub peer_connections: usize,
    /// See [`JSON_BYTES_MAX`].
    pub json_bytes: usize,
    /// See [`HEADER_TIMEOUT`].
    pub header_timeout: Duration,
    /// See [`BODY_STALL`].
    pub body_stall: Duration,
    /// See [`WRITE_STALL`].
    pub write_stall: Duration,
    /// See [`DRAIN`].
    pub drain: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS_MAX,
            peer_connections: PEER_CONNECTIONS_MAX,
            json_bytes: JSON_BYTES_MAX,
            header_timeout: HEADER_TIMEOUT,
            body_stall: BODY_STALL,
            write_stall: WRITE_STALL,
            drain: DRAIN,
        }
    }
}
