//! Where an executor listens, as both ends name it.

use std::{fmt, net::SocketAddr, path::PathBuf};

/// The place of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A TCP address; port 0 lets the kernel choose when it is bound.
    Tcp(SocketAddr),
    /// The path of a Unix socket, which only its owner can open.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "http://{address}"),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}
