//! The output of an action as server-sent events, while it runs.
//!
//! What is sent is text: without the session's secrets, with the line ends that programs wrote,
//! and with U+FFFD for what is not UTF-8. Each event's `id` is how many bytes of that text the
//! client has then. All of it is a function of the output alone, so a client that comes back gets
//! the same text from its beginning again, and what it has is left out.

mod text;

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use serde_json::json;
use tokio::time::{Instant, Interval};
use zareba_api::OutputQuery;
use zareba_session::{ActionOutput, Surface};

use self::text::OutputText;
use crate::{
    app::App,
    auth::Principal,
    error::ApiError,
    events::last_seen,
    request::{Place, Query},
    telemetry::OpenStream,
};

/// A comment: it means nothing and says that we are there.
const PING: &[u8] = b": ping\n\n";

pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place((session, action)): Place<(String, u64)>,
    Query(query): Query<OutputQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let from = match last_seen(&headers)? {
        // A browser that comes back still has the first address, so this one counts.
        Some(last) => last,
        None => query.from.unwrap_or(0),
    };
    let requester = principal.requester(Surface::Api);
    let mut output = session.output(action, &requester).await?;
    if query.wait.is_some_and(|wait| wait.duration().is_zero()) {
        output.hurry();
    }
    let first = Instant::now() + app.settings.limits.ping_interval;
    let reader = Reader {
        output,
        text: OutputText::new(session.mask()),
        from,
        sent: 0,
        pings: tokio::time::interval_at(first, app.settings.limits.ping_interval),
        deadline: query.wait.map(|wait| Instant::now() + wait.duration()),
        is_over: false,
        _open: app.telemetry.stream("output"),
        key: principal.key,
        app,
    };
    let headers = [
        (
            CONTENT_TYPE.as_str(),
            HeaderValue::from_static("text/event-stream"),
        ),
        // Proxies hold answers back otherwise.
        ("x-accel-buffering", HeaderValue::from_static("no")),
    ];
    Ok((headers, Body::from_stream(reader.into_stream())).into_response())
}

/// One client's place in the output of an action. It reads when there is room to send; a client
/// that does not read at all is cut off by the accept loop's guard and comes back with what it has.
struct Reader {
    app: Arc<App>,
    output: ActionOutput,
    text: OutputText,
    /// Bytes of text that the client has from before.
    from: u64,
    /// Bytes of text that were sent or left out.
    sent: u64,
    pings: Interval,
    /// When the client has waited long enough.
    deadline: Option<Instant>,
    is_over: bool,
    key: String,
    _open: OpenStream,
}

impl Reader {
    fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        futures_util::stream::unfold(self, |mut reader| async move {
            let piece = reader.next().await?;
            Some((Ok(piece), reader))
        })
    }

    /// The next event, or the end of the stream; without an `end` before it, the client comes back.
    async fn next(&mut self) -> Option<Bytes> {
        let app = Arc::clone(&self.app);
        while !self.is_over {
            let piece = tokio::select! {
                biased;
                () = app.draining() => return None,
                piece = self.output.next() => piece,
                () = until(self.deadline) => {
                    self.deadline = None;
                    self.output.hurry();
                    continue;
                }
                _ = self.pings.tick() => {
                    let is_valid = app.authenticator.keys().is_valid(&self.key).await;
                    return is_valid.unwrap_or(false).then(|| Bytes::from_static(PING));
                }
            };
            let shown = match piece {
                Ok(Some(bytes)) => self.text.push(&bytes),
                Ok(None) => {
                    self.is_over = true;
                    self.text.finish()
                }
                Err(error) => {
                    tracing::debug!(%error, "a stream of output ended");
                    return None;
                }
            };
            let event = self.event(&shown);
            let end = if self.is_over {
                self.end()
            } else {
                String::new()
            };
            if event.len() + end.len() > 0 {
                return Some((event + &end).into());
            }
        }
        None
    }

    /// What of a text the client does not have, as an event.
    fn event(&mut self, shown: &str) -> String {
        let length = shown.len() as u64;
        let had = self.from.saturating_sub(self.sent).min(length);
        self.sent += length;
        let new = usize::try_from(had).ok().and_then(|had| shown.get(had..));
        match new {
            // A client's offset within a character is no offset of ours.
            None | Some("") => String::new(),
            Some(text) => {
                let data = json!({ "text": text });
                format!("id: {}\nevent: output\ndata: {data}\n\n", self.sent)
            }
        }
    }

    fn end(&self) -> String {
        let data = json!({ "whole": self.output.is_whole(), "skipped": self.output.skipped() });
        format!("id: {}\nevent: end\ndata: {data}\n\n", self.sent)
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
