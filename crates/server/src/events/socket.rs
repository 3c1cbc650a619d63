//! Events over a WebSocket.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use tokio::time::MissedTickBehavior;
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};
use zareba_api::EventsQuery;
use zareba_session::Subscription;

use crate::{
    app::App,
    auth::Principal,
    convert,
    error::ApiError,
    request::{Place, Query},
    websocket::{self, Socket},
};

pub(crate) async fn socket(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<EventsQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let events = session.events(query.from.unwrap_or(0));
    let shared = Arc::clone(&app);
    websocket::upgrade(&app, &request, "websocket", move |socket| {
        forward(shared, events, socket, principal.key)
    })
}

/// Sends events until either side ends it. The client says nothing that matters.
async fn forward(app: Arc<App>, mut events: Subscription, mut socket: Socket, key: String) {
    let mut checks = tokio::time::interval(app.settings.limits.ping_interval);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let record = tokio::select! {
            biased;
            () = app.draining() => {
                return socket.close(CloseCode::Away, "the server is shutting down").await;
            }
            received = socket.receive() => match received {
                Ok(_) => continue,
                Err(_) => return,
            },
            _ = checks.tick() => {
                let is_valid = app.authenticator.keys().is_valid(&key).await;
                if is_valid.unwrap_or(false) {
                    continue;
                }
                return socket.close(CloseCode::Policy, "the key is not valid any more").await;
            }
            record = events.next() => record,
        };
        let Ok(record) = record else {
            return socket
                .close(CloseCode::Error, "the events cannot be read")
                .await;
        };
        let Ok(text) = serde_json::to_string(&convert::event(&record)) else {
            return;
        };
        if socket.send(Message::text(text)).await.is_err() {
            return;
        }
        app.telemetry.events_sent(1);
    }
}
