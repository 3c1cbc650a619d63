//! A whole server of ours, on a port of its own.

use std::{sync::Arc, time::Duration};

use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};
use zareba_client::{Address, ApiKey, Client};
use zareba_server::{Listen, OpenHandsSettings, Server, ServerSettings, Transport, openhands};
use zareba_session::Sessions;

use crate::provider::{Kind, sessions};

/// A running server.
pub(crate) struct Site {
    pub(crate) url: String,
    /// A key that may do everything.
    pub(crate) admin: String,
    pub(crate) sessions: Sessions,
    pub(crate) state: Arc<TempDir>,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Site {
    pub(crate) async fn start(kind: Kind) -> Self {
        let (sessions, state) = sessions(kind).await;
        let settings = ServerSettings::new(Listen::Tcp {
            address: ([127, 0, 0, 1], 0).into(),
            transport: Transport::Plain,
        });
        let server = Server::bind(settings, sessions.clone()).await.unwrap();
        let settings = OpenHandsSettings::default();
        let facade = openhands(&sessions, server.authenticator(), settings).await;
        let server = server.with_extension(facade.unwrap());
        let url = format!("http://{}", server.local_address().unwrap());
        let admin = server.first_key().unwrap().secret.0.clone();
        let (shutdown, told) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async {
            let _ = told.await;
        }));
        Self {
            url,
            admin,
            sessions,
            state: Arc::new(state),
            shutdown: Some(shutdown),
            serving,
        }
    }

    pub(crate) fn client(&self) -> Client {
        let key = ApiKey::new(&self.admin).unwrap();
        Client::new(Address::parse(&self.url).unwrap(), key).unwrap()
    }

    /// Ends the server and every session.
    pub(crate) async fn stop(mut self) {
        for info in self.sessions.list(None, None, usize::MAX).await {
            let session = self.sessions.get(&info.id).await.unwrap();
            session.close().await.unwrap();
        }
        drop(self.shutdown.take());
        (&mut self.serving).await.unwrap();
        self.sessions.shut_down(Duration::from_secs(10)).await;
    }
}
