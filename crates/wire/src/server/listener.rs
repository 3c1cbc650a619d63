//! Taking a socket: TCP, or Unix with nobody else's socket harmed.

use std::{
    io,
    net::SocketAddr,
    os::unix::net::UnixListener as StdUnixListener,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::{takeover::Secure, unix_socket::OwnedSocket};
use crate::{Endpoint, key::KEY_BYTES_MIN};

/// Why a server could not take its socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Anyone who reaches the port could run commands.
    #[error("refusing to listen on `{address}` without a session key")]
    OpenToNetwork {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// Strangers could guess the key.
    #[error(
        "refusing to listen on `{address}` with a session key of fewer than {KEY_BYTES_MIN} bytes"
    )]
    WeakKey {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// A server answers there.
    #[error("another server listens on `{}`", path.display())]
    SocketInUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something is there that is not a socket and must not be removed.
    #[error("`{}` exists and is not a socket", path.display())]
    NotASocket {
        /// What is in the way.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot listen on `{endpoint}`")]
    Listen {
        /// What was asked for.
        endpoint: Endpoint,
        /// What the system said.
        source: io::Error,
    },
}

/// A socket that connections arrive on.
pub struct Listener {
    socket: Socket,
    endpoint: Endpoint,
    secure: Option<Arc<dyn Secure>>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Listener")
            .field("socket", &self.socket)
            .field("secured", &self.secure.is_some())
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(OwnedSocket),
    /// Made and named by whoever started us, and theirs to remove.
    Inherited(UnixListener),
}

/// A connection that was accepted.
pub(super) enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl Listener {
    /// Takes a socket. Must be called inside a runtime. Without `guarded`, TCP stays on loopback.
    ///
    /// # Errors
    /// As [`BindError`] says.
    pub fn bind(endpoint: &Endpoint, guarded: bool) -> Result<Self, BindError> {
        match endpoint {
            Endpoint::Tcp(address) => {
                if !guarded && !address.ip().to_canonical().is_loopback() {
                    return Err(BindError::OpenToNetwork { address: *address });
                }
                Self::bind_tcp(*address).map_err(|source| BindError::Listen {
                    endpoint: endpoint.clone(),
                    source,
                })
            }
            Endpoint::Unix(path) => {
                let socket = Socket::Unix(OwnedSocket::bind(path)?);
                Ok(Self {
                    socket,
                    endpoint: endpoint.clone(),
                    secure: None,
                })
            }
        }
    }

    /// Takes over a socket that listens already. Must be called inside a runtime.
    pub(crate) fn adopt(listener: StdUnixListener) -> Result<Self, BindError> {
        let address = listener.local_addr().ok();
        let path = address.as_ref().and_then(|address| address.as_pathname());
        let endpoint = Endpoint::Unix(path.unwrap_or(Path::new("")).to_owned());
        let failed = |source| BindError::Listen {
            endpoint: endpoint.clone(),
            source,
        };
        listener.set_nonblocking(true).map_err(failed)?;
        let socket = Socket::Inherited(UnixListener::from_std(listener).map_err(failed)?);
        Ok(Self {
            socket,
            endpoint,
            secure: None,
        })
    }

    fn bind_tcp(address: SocketAddr) -> io::Result<Self> {
        let socket = match address {
            SocketAddr::V4(_) => tokio::net::TcpSocket::new_v4()?,
            SocketAddr::V6(_) => tokio::net::TcpSocket::new_v6()?,
        };
        // A restarted server takes its port back at once.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(1024)?;
        let endpoint = Endpoint::Tcp(listener.local_addr()?);
        Ok(Self {
            socket: Socket::Tcp(listener),
            endpoint,
            secure: None,
        })
    }

    /// The same, with a handshake before each TCP connection is served.
    #[must_use]
    pub fn secured(self, secure: Arc<dyn Secure>) -> Self {
        let secure = Some(secure);
        Self { secure, ..self }
    }

    /// Where it really listens: with the port that the kernel chose.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn secure(&self) -> Option<Arc<dyn Secure>> {
        self.secure.clone()
    }

    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok(Accepted::Tcp(stream, peer))
            }
            Socket::Unix(socket) => Ok(Accepted::Unix(socket.accept().await?)),
            Socket::Inherited(listener) => Ok(Accepted::Unix(listener.accept().await?.0)),
        }
    }
}
