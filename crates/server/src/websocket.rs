//! WebSockets: the upgrade, and a connection that notices when the other end is gone.
//!
//! The connection stays in the task of the accept loop, so that it counts among the connections
//! and ends with the server.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};
use zareba_facades::openhands::Reserved;
use zareba_wire::serving::{Stream, Takeover, TakeoverEnd};

use crate::{app::App, error::ApiError, settings::Limits, telemetry::OpenStream};

/// Bytes of a message that a client sends.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that may wait to be written. One message is written at a time, and an event has about a
/// mebibyte at most.
const WRITE_BUFFER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Answers a request for a WebSocket and goes on with `work` on it. `kind` is what it is counted
/// by. The work must end soon after [`App::draining`] is ready.
pub(crate) fn upgrade<F>(
    app: &Arc<App>,
    request: &Request,
    kind: &'static str,
    work: impl FnOnce(Socket) -> F + Send + 'static,
) -> Result<Response, ApiError>
where
    F: Future<Output = ()> + Send + 'static,
{
    let accept = accept_key(request.headers())?;
    let limits = app.settings.limits.clone();
    let open = app.telemetry.stream(kind);
    let place = request.extensions().get::<Reserved>().cloned();
    let takeover = Takeover::new(TakeoverEnd::ByItself, move |connection| async move {
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX))
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX);
        let read_ahead = connection.read_ahead.to_vec();
        let stream = WebSocketStream::from_partially_read(
            connection.io,
            read_ahead,
            Role::Server,
            Some(config),
        );
        work(Socket::new(stream.await, &limits, open)).await;
        drop(place);
    });
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    *response.body_mut() = Body::empty();
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    response.extensions_mut().insert(takeover);
    Ok(response)
}

fn accept_key(headers: &HeaderMap) -> Result<String, ApiError> {
    let has_word = |name: header::HeaderName, word: &str| {
        headers.get_all(name).iter().any(|value| {
            let words = value.to_str().unwrap_or_default().split(',');
            words
                .map(str::trim)
                .any(|found| found.eq_ignore_ascii_case(word))
        })
    };
    let is_upgrade = has_word(header::CONNECTION, "upgrade")
        && has_word(header::UPGRADE, "websocket")
        && has_word(header::SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    match key {
        Some(key) if is_upgrade => Ok(derive_accept_key(key.as_bytes())),
        _ => Err(ApiError::invalid(
            "this path takes WebSocket connections of version 13 only",
        )),
    }
}

/// The other end is gone, or as good as gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// A WebSocket. A write that makes no progress for the write stall ends it, and so does an other
/// end that says nothing, not even to two pings.
pub(crate) struct Socket {
    stream: WebSocketStream<Box<dyn Stream>>,
    write_stall: Duration,
    pings: Interval,
    /// How long the other end may say nothing.
    silence_max: Duration,
    heard: Instant,
    _open: OpenStream,
}

impl Socket {
    fn new(stream: WebSocketStream<Box<dyn Stream>>, limits: &Limits, open: OpenStream) -> Self {
        let first = Instant::now() + limits.ping_interval;
        let mut pings = tokio::time::interval_at(first, limits.ping_interval);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            stream,
            write_stall: limits.write_stall,
            pings,
            silence_max: limits.ping_interval * 2,
            heard: Instant::now(),
            _open: open,
        }
    }

    pub(crate) async fn send(&mut self, message: Message) -> Result<(), Gone> {
        match tokio::time::timeout(self.write_stall, self.stream.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }

    /// The next text or bytes of the other end. May be dropped and called again; pings are sent
    /// and answered only while it is awaited.
    pub(crate) async fn receive(&mut self) -> Result<Message, Gone> {
        loop {
            let received = tokio::select! {
                received = self.stream.next() => received,
                _ = self.pings.tick() => {
                    if self.heard.elapsed() > self.silence_max {
                        return Err(Gone);
                    }
                    self.send(Message::Ping(bytes::Bytes::new())).await?;
                    continue;
                }
            };
            let Some(Ok(message)) = received else {
                return Err(Gone);
            };
            self.heard = Instant::now();
            match message {
                Message::Text(_) | Message::Binary(_) => return Ok(message),
                Message::Close(_) => {
                    // Says goodbye as the other end did.
                    let _ = self.send(Message::Close(None)).await;
                    return Err(Gone);
                }
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    /// Says why it ends, and ends.
    pub(crate) async fn close(mut self, code: CloseCode, reason: &str) {
        let frame = CloseFrame {
            code,
            reason: reason.to_owned().into(),
        };
        let _ = self.send(Message::Close(Some(frame))).await;
    }
}
