//! Changes in a directory as server-sent events.

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt as _;
use http::{HeaderValue, header::CONTENT_TYPE};
use tokio::time::Interval;
use zareba_api::{ChangeKind, WatchQuery};
use zareba_runtime::Sandbox as _;
use zareba_wire::files::{ChangeStream, Depth, FileChange, WatchRequest};

use super::{kind, refusal::Refused, sandbox};
use crate::{
    app::App,
    auth::Principal,
    request::{Place, Query},
    telemetry::OpenStream,
};

/// A comment: it means nothing and says that we are there.
const PING: &[u8] = b": ping\n\n";

/// The first event: from now on changes are told.
const READY: &[u8] = b"event: ready\ndata: {}\n\n";

pub(crate) async fn watch(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<WatchQuery>,
) -> Result<Response, Refused> {
    let sandbox = sandbox(&app, &principal, &session).await?;
    let request = WatchRequest {
        path: query.path.unwrap_or_else(|| ".".to_owned()),
        depth: match query.recursive {
            true => Depth::Tree,
            false => Depth::One,
        },
    };
    let changes = sandbox.files()?.watch(request).await?;
    let first = tokio::time::Instant::now() + app.settings.limits.ping_interval;
    let reader = Reader {
        changes,
        pings: tokio::time::interval_at(first, app.settings.limits.ping_interval),
        is_new: true,
        key: principal.key,
        _open: app.telemetry.stream("files"),
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

/// One client's watch. It reads when there is room to send; a client that does not read at all is
/// cut off by the accept loop's guard, and has to look again when it comes back.
struct Reader {
    app: Arc<App>,
    changes: ChangeStream,
    pings: Interval,
    is_new: bool,
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

    /// The next piece, or the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_new) {
            return Some(Bytes::from_static(READY));
        }
        let app = Arc::clone(&self.app);
        tokio::select! {
            biased;
            () = app.draining() => None,
            change = self.changes.next() => match change? {
                Ok(change) => Some(piece(change)),
                Err(error) => {
                    tracing::debug!(%error, "a watch ended");
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

/// JSON has no line breaks of its own, so that a change is one line.
fn piece(change: FileChange) -> Bytes {
    let data = serde_json::to_string(&told(change)).unwrap_or_default();
    format!("event: change\ndata: {data}\n\n").into()
}

fn told(change: FileChange) -> zareba_api::FileChange {
    let (change, path, to, about) = match change {
        FileChange::Created { path, kind } => (ChangeKind::Created, Some(path), None, Some(kind)),
        FileChange::Modified { path } => (ChangeKind::Modified, Some(path), None, None),
        FileChange::Removed { path, kind } => (ChangeKind::Removed, Some(path), None, Some(kind)),
        FileChange::Renamed { path, to, kind } => {
            (ChangeKind::Renamed, Some(path), Some(to), Some(kind))
        }
        FileChange::Overflow => (ChangeKind::Overflow, None, None, None),
        FileChange::Incomplete { .. } => (ChangeKind::Incomplete, None, None, None),
        FileChange::Gone => (ChangeKind::Gone, None, None, None),
    };
    zareba_api::FileChange {
        change,
        path,
        to,
        kind: about.map(kind),
    }
}
