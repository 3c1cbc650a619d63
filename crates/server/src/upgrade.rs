//! Connections that go on as something of ours that is not HTTP.
//!
//! They stay in the task of the accept loop, so that they count among the connections and end with
//! the server.

use std::sync::Arc;

use axum::{body::Body, response::Response};
use http::{
    HeaderMap, HeaderValue, StatusCode, Version,
    header::{CONNECTION, HeaderName, UPGRADE},
};
use tokio::time::MissedTickBehavior;
use zareba_session::Session;
use zareba_wire::serving::Takeover;

use crate::{app::App, auth::Principal, error::ApiError, request::Open};

/// Refuses a request that does not ask to go on as `name`.
pub(crate) fn require(
    version: Version,
    headers: &HeaderMap,
    name: &'static str,
) -> Result<(), ApiError> {
    let lists = |header: HeaderName, word: &str| {
        let values = headers.get_all(header).iter();
        let mut words = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        words.any(|other| other.trim().eq_ignore_ascii_case(word))
    };
    let asks = version == Version::HTTP_11 && lists(CONNECTION, "upgrade") && lists(UPGRADE, name);
    if asks {
        return Ok(());
    }
    let hint = format!("send `Connection: Upgrade` and `Upgrade: {name}` over HTTP/1.1");
    Err(ApiError::invalid("this path needs the connection for itself").with_hint(hint))
}

/// The answer with which the connection goes on as `name`.
pub(crate) fn switch(name: &'static str, takeover: Takeover) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(name));
    response.extensions_mut().insert(takeover);
    response
}

/// The right of a client to a connection of its own into a session.
pub(crate) struct Leave {
    pub(crate) app: Arc<App>,
    pub(crate) session: Arc<Session>,
    pub(crate) key: String,
    _open: Open,
}

impl Leave {
    pub(crate) fn new(
        app: &Arc<App>,
        session: Arc<Session>,
        principal: Principal,
        open: Open,
    ) -> Self {
        Self {
            app: Arc::clone(app),
            session,
            key: principal.key,
            _open: open,
        }
    }

    /// Ready when the key is not valid any more (HS-8). Until then the session is in use.
    pub(crate) async fn over(&self) {
        let mut checks = tokio::time::interval(self.app.settings.limits.ping_interval);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            checks.tick().await;
            let is_valid = self.app.authenticator.keys().is_valid(&self.key).await;
            if !is_valid.unwrap_or(false) {
                return;
            }
            self.session.keep_alive();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asks_for_it_by_name_gets_the_connection() {
        let headers = |connection: &'static str, upgrade: &'static str| {
            HeaderMap::from_iter([
                (CONNECTION, HeaderValue::from_static(connection)),
                (UPGRADE, HeaderValue::from_static(upgrade)),
            ])
        };
        let asked = headers("keep-alive, Upgrade", "Zareba-Port");
        assert_eq!(require(Version::HTTP_11, &asked, "zareba-port"), Ok(()));
        for (version, headers) in [
            (Version::HTTP_10, asked),
            (Version::HTTP_11, headers("upgrade", "websocket")),
            (Version::HTTP_11, headers("close", "zareba-port")),
            (Version::HTTP_11, HeaderMap::new()),
        ] {
            assert!(require(version, &headers, "zareba-port").is_err());
        }
    }
}
