//! What one sandbox may use of the proxy, with the reason for each number (EG-7).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Connections at once. A browser or a package manager holds a few dozen; at 256 the buffers
/// take 8 MiB.
pub(crate) const CONNECTIONS: usize = 256;
/// How long a connection may stay without a byte in either direction.
pub(crate) const IDLE: Duration = Duration::from_secs(600);
/// How long the other side may take to accept a connection.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// From a connection's start, or from its first byte, until it has said whom it wants.
pub(crate) const OPENING: Duration = Duration::from_secs(5);

/// The limits that an operator may set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Milliseconds that a connection may stay without a byte in either direction.
    pub idle_ms: u64,
    /// Milliseconds that the other side may take to accept a connection.
    pub connect_ms: u64,
    /// Milliseconds that a client may take to say whom it wants.
    pub opening_ms: u64,
    /// Bytes per second, all connections and both directions together; `None` for no limit.
    pub bytes_per_second: Option<u64>,
    /// Bytes in all, all connections and both directions together; `None` for no limit.
    pub bytes_total: Option<u64>,
}

impl Limits {
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_millis(self.idle_ms)
    }

    pub(crate) fn connect(&self) -> Duration {
        Duration::from_millis(self.connect_ms)
    }

    pub(crate) fn opening(&self) -> Duration {
        Duration::from_millis(self.opening_ms)
    }
}

impl Default for Limits {
    fn default() -> Self {
        let milliseconds = |limit: Duration| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Self {
            connections: CONNECTIONS,
            idle_ms: milliseconds(IDLE),
            connect_ms: milliseconds(CONNECT),
            opening_ms: milliseconds(OPENING),
            bytes_per_second: None,
            bytes_total: None,
        }
    }
}
