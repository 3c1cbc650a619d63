//! [`Server`]: takes a socket, and answers until it is told to end.

use std::{future::Future, net::SocketAddr, sync::Arc};

use tokio::sync::watch;
use zareba_api::CreatedKey;
use zareba_eventlog::LogError;
use zareba_session::Sessions;
use zareba_wire::{
    Endpoint,
    serving::{self, Listener, accept_until},
};

use crate::{
    Extension, KeyError, Keys,
    app::App,
    auth::Authenticator,
    gate::Gate,
    handlers,
    names::Names,
    ports::Shares,
    settings::{Listen, ServerSettings, Transport},
    telemetry::Telemetry,
    tls::{Tls, TlsError},
    usage::Usage,
};

/// A server that has its socket and answers once it is served.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    settings: ServerSettings,
    sessions: Sessions,
    authenticator: Authenticator,
    telemetry: Telemetry,
    shares: Shares,
    first_key: Option<CreatedKey>,
    extensions: Vec<Extension>,
}

/// Why a server could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Keys would travel in the clear.
    #[error(
        "refusing to listen on `{address}` without TLS; give a certificate and a key, or say that \
         a proxy in front does TLS"
    )]
    Unprotected {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The socket cannot be had.
    #[error(transparent)]
    Socket(#[from] serving::BindError),
    /// The keys cannot be read, or the first one not be made.
    #[error("cannot prepare the server's keys")]
    Keys(#[from] KeyError),
    /// What was shared before cannot be read.
    #[error("cannot take up the shared ports of sessions")]
    Shares(#[source] LogError),
}

impl Server {
    /// Takes the socket, and makes the first key if there is none.
    ///
    /// # Errors
    /// An address that others can reach without TLS, files that cannot be used, a socket that is
    /// in use, keys that cannot be read.
    pub async fn bind(settings: ServerSettings, sessions: Sessions) -> Result<Self, BindError> {
        let listener = listen(&settings.listen)?;
        let keys = Keys::new(sessions.log().clone());
        let first_key = keys.create_first().await?;
        let shares = Shares::load(&sessions).await;
        let shares = shares.map_err(BindError::Shares)?;
        let telemetry = Telemetry::new();
        let usage = Usage::new(&settings.limits);
        let authenticator = Authenticator::new(keys, telemetry.clone(), usage);
        Ok(Self {
            listener,
            settings,
            sessions,
            authenticator,
            telemetry,
            shares,
            first_key,
            extensions: Vec::new(),
        })
    }

    /// Adds routes of another crate.
    #[must_use]
    pub fn with_extension(mut self, extension: Extension) -> Self {
        self.extensions.push(extension);
        self
    }

    /// Where it really listens: with the port that the kernel chose.
    pub fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }

    /// The address that it listens on; none for a Unix socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self.endpoint() {
            Endpoint::Tcp(address) => Some(*address),
            Endpoint::Unix(_) => None,
        }
    }

    /// The key that was made because there was none; whoever started the server must keep it,
    /// since it is shown nowhere else.
    pub fn first_key(&self) -> Option<&CreatedKey> {
        self.first_key.as_ref()
    }

    /// The keys of this server.
    pub fn keys(&self) -> &Keys {
        self.authenticator.keys()
    }

    /// The check of keys, for extensions.
    pub fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }

    /// Answers until `shutdown` is ready. Then it stops accepting, ends streams where they can be
    /// resumed, finishes what is under way within the drain limit and closes everything. Sessions
    /// are left to the caller.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let (drain, draining) = watch::channel(false);
        let names = Names::new(&self.settings, self.listener.endpoint());
        let limits = self.settings.accept_limits();
        let extensions = self.extensions.iter();
        let app = Arc::new(App::new(
            self.settings,
            self.sessions,
            self.authenticator,
            self.telemetry,
            self.shares,
            extensions.map(|extension| extension.name).collect(),
            draining,
        ));
        let mut table = handlers::mount(Arc::clone(&app));
        for extension in self.extensions {
            table = table.extend(extension);
        }
        let gate = Gate::new(app, names, table.into_router());
        let told = async {
            shutdown.await;
            drain.send_replace(true);
        };
        accept_until(&self.listener, Arc::new(gate), &limits, told).await;
    }
}

fn listen(listen: &Listen) -> Result<Listener, BindError> {
    match listen {
        Listen::Unix(path) => Ok(Listener::bind(&Endpoint::Unix(path.clone()), true)?),
        Listen::Tcp { address, transport } => {
            let is_local = address.ip().to_canonical().is_loopback();
            if *transport == Transport::Plain && !is_local {
                let address = *address;
                return Err(BindError::Unprotected { address });
            }
            // Read before the port is taken: a mistake here must not disturb anybody.
            let tls = match transport {
                Transport::Tls(files) => Some(Tls::load(files)?),
                Transport::Plain | Transport::BehindTlsProxy => None,
            };
            let listener = Listener::bind(&Endpoint::Tcp(*address), true)?;
            Ok(match tls {
                Some(tls) => listener.secured(Arc::new(tls)),
                None => listener,
            })
        }
    }
}
