//! OpenHands' two HTTP APIs over our sessions, so that its clients need no change.
//!
//! The *remote runtime API* at the root (`/start`, `/stop`, `/pause`, `/resume`, `/sessions/{sid}`,
//! `/runtime/{id}` and so on) hands out runtimes to whoever has one of the server's keys. The
//! *action execution API* below `/sessions/{runtime_id}/` is what its client then talks to, with
//! the key of that one session.
//!
//! Their `session_id` is a name that a client chose, ours is unique for ever; `names` leads from
//! the one to the other. Reading order: `settings`, `access`, `table`, then `runtimes` and `start`
//! for the first API, `executors` and `service` for the second.

mod access;
mod answer;
mod builds;
mod context;
mod executors;
mod images;
mod names;
mod runtimes;
mod service;
mod settings;
mod start;
mod table;
mod unfold;
mod user;

use std::sync::Arc;

use axum::Router;
use jiff::Timestamp;
use zareba_session::Sessions;

pub use access::{Denied, KeyCheck, Principal, Reserved, Rights, SessionKeys};
pub use builds::{BuildService, RemoteBuild, RemoteBuildError, RemoteBuildFault};
pub use settings::{
    ImageCatalog, ImageFacts, OpenHandsSettings, Scheme, ToolProxies, UnknownImage,
};
pub use table::{Needs, Route, routes};
pub(crate) use unfold::put_back;

use builds::Builds;
use executors::Executors;

/// OpenHands' APIs over the sessions of one server.
pub struct OpenHands {
    sessions: Sessions,
    keys: Arc<dyn KeyCheck>,
    session_keys: SessionKeys,
    settings: OpenHandsSettings,
    executors: Executors,
    builds: Builds,
    started: Timestamp,
}

impl OpenHands {
    /// Puts the APIs over `sessions`; `keys` says who may use them, and `session_keys` makes the
    /// keys of single sessions.
    pub fn new(
        sessions: Sessions,
        keys: Arc<dyn KeyCheck>,
        session_keys: SessionKeys,
        settings: OpenHandsSettings,
    ) -> Self {
        Self {
            sessions,
            keys,
            session_keys,
            settings,
            executors: Executors::default(),
            builds: Builds::default(),
            started: Timestamp::now(),
        }
    }

    /// The routes of both APIs. Each checks keys by itself; hosts, origins and connections are the
    /// business of the server that has the router.
    pub fn router(self) -> Router {
        table::router(Arc::new(self))
    }
}

impl std::fmt::Debug for OpenHands {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("OpenHands")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
