//! Events as server-sent events.

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use tokio::time::Interval;
use zareba_api::{EventsQuery, LAST_EVENT_ID};
use zareba_session::{Record, Subscription};

use crate::{
    app::App,
    auth::Principal,
    convert,
    error::ApiError,
    request::{Place, Query},
    telemetry::OpenStream,
};

/// A comment: it means nothing and says that we are there.
const PING: &[u8] = b": ping\n\n";

pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let from = match last_seen(&headers)? {
        // A browser that comes back still has the first address, so this one counts.
        Some(last) => last.saturating_add(1),
        None => query.from.unwrap_or(0),
    };
    let first = tokio::time::Instant::now() + app.settings.limits.ping_interval;
    let reader = Reader {
        events: session.events(from),
        pings: tokio::time::interval_at(first, app.settings.limits.ping_interval),
        _open: app.telemetry.stream("sse"),
        key: principal.key,
        app,
    };
    let kind = HeaderValue::from_static("text/event-stream");
    let unbuffered = HeaderValue::from_static("no");
    let headers = [
        (CONTENT_TYPE.as_str(), kind),
        // Proxies hold answers back otherwise.
        ("x-accel-buffering", unbuffered),
    ];
    Ok((headers, Body::from_stream(reader.into_stream())).into_response())
}

/// What a client that comes back has seen.
pub(crate) fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    let invalid = || ApiError::invalid("`Last-Event-ID` is the `id` of an event");
    number.map(Some).ok_or_else(invalid)
}

/// One client's place in the log. It reads when there is room to send, so that a slow client
/// holds one page of events at most; a client that does not read at all is cut off by the accept
/// loop's guard and comes back with the number of what it has seen.
struct Reader {
    app: Arc<App>,
    events: Subscription,
    pings: Interval,
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

    /// The next piece, or the end of the stream, from which the client can go on.
    async fn next(&mut self) -> Option<Bytes> {
        let app = Arc::clone(&self.app);
        tokio::select! {
            biased;
            () = app.draining() => None,
            record = self.events.next() => match record {
                Ok(record) => {
                    app.telemetry.events_sent(1);
                    Some(piece(&record))
                }
                Err(error) => {
                    tracing::debug!(%error, "a stream of events ended");
                    None
                }
            },
            _ = self.pings.tick() => {
                let is_valid = app.authenticator.keys().is_valid(&self.key).await;
                is_valid.unwrap_or(false).then(|| Bytes::from_static(PING))
            }
        }
    }
}

/// JSON has no line breaks of its own, so that an event's data is one line.
fn piece(record: &Record) -> Bytes {
    let event = convert::event(record);
    let data = serde_json::to_string(&event).unwrap_or_default();
    let kind = record.kind.as_str();
    format!("id: {}\nevent: {kind}\ndata: {data}\n\n", record.sequence).into()
}
