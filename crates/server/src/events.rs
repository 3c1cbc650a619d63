//! Reading what happened: pages, streams, and what is too large for either.

mod socket;
mod stream;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde_json::Value;
use zareba_api::{BlobQuery, ErrorCode, EventPage, EventsQuery};
use zareba_eventlog::Digest;

pub(crate) use socket::socket;
pub(crate) use stream::{last_seen, stream};

use crate::{
    app::App,
    auth::Principal,
    convert,
    error::ApiError,
    handlers::json,
    request::{Place, Query},
};

/// Bytes of a page, about; one event may be larger.
const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Events that are read at once for a page.
const CHUNK_EVENTS: usize = 100;

pub(crate) async fn page(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<EventsQuery>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let most = app.settings.limits.page_items;
    let limit = query.limit.unwrap_or(most).clamp(1, most);
    let store = app.sessions.log().store();
    let (mut events, mut bytes) = (Vec::new(), 0);
    let mut next = query.from.unwrap_or(0);
    while events.len() < limit && bytes < PAGE_BYTES_MAX {
        let wanted = CHUNK_EVENTS.min(limit - events.len());
        let records = store.read(session.id().clone(), next, wanted).await?;
        let Some(last) = records.last() else {
            break;
        };
        next = last.sequence + 1;
        for record in &records {
            let event = convert::event(record);
            bytes += size(&event.payload);
            events.push(event);
        }
    }
    Ok(json(StatusCode::OK, &EventPage { events, next }))
}

/// About how many bytes a value takes as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| key.len() + size(value))
            .sum(),
    }
}

/// What an event refers to. Digests are no secrets, so the event must be named as well: only
/// what an event of this very session refers to is given out.
pub(crate) async fn blob(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place((session, digest)): Place<(String, String)>,
    Query(query): Query<BlobQuery>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let not_found = || {
        let message = "the event does not refer to anything with this digest";
        ApiError::new(ErrorCode::NotFound, message)
    };
    let wanted = parse(&digest).ok_or_else(not_found)?;
    let store = app.sessions.log().store();
    let records = store.read(session.id().clone(), query.event, 1).await?;
    let refers = records.first().is_some_and(|record| {
        let mut values = record.payload.values();
        record.sequence == query.event
            && (record
                .payload
                .get("$blob")
                .is_some_and(|found| *found == digest)
                || values.any(|value| refers_to(value, &digest)))
    });
    if !refers {
        return Err(not_found());
    }
    let bytes = store.blob(wanted).await?.ok_or_else(not_found)?;
    let kind = HeaderValue::from_static("application/octet-stream");
    Ok(([(CONTENT_TYPE, kind)], Body::from(bytes)).into_response())
}

/// Values come from the log, which bounds their depth.
fn refers_to(value: &Value, digest: &str) -> bool {
    match value {
        Value::Object(object) => {
            object.get("$blob").is_some_and(|found| found == digest)
                || object.values().any(|value| refers_to(value, digest))
        }
        Value::Array(items) => items.iter().any(|value| refers_to(value, digest)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn parse(text: &str) -> Option<Digest> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(Digest(bytes))
}
