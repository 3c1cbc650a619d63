//! Reading, writing and removing files.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use zareba_api::{ErrorCode, ReadFileQuery, RemoveFileQuery, WriteFileQuery};
use zareba_runtime::Sandbox as _;
use zareba_wire::{
    files::{
        ByteRange, Depth, Digest, Expected, FileContent, Parents, ReadRequest, RemoveRequest,
        WriteRequest,
    },
    serving::LentBody,
};

use super::{attachment, last_name, mode, refusal::Refused, sandbox, tag, told};
use crate::{
    app::App,
    auth::Principal,
    error::ApiError,
    handlers::json,
    request::{Place, Query},
};

const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

pub(crate) async fn read(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<ReadFileQuery>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let sandbox = sandbox(&app, &principal, &session).await?;
    let range = range(&headers);
    let request = ReadRequest {
        path: query.path.clone(),
        range,
        digest: match query.digest {
            None => Digest::Skip,
            Some(zareba_api::FileDigest::Sha256) => Digest::Sha256,
        },
    };
    let content = sandbox.files()?.read(request).await?;
    let tag = tag(&content.status);
    let is_known = headers.get(header::IF_NONE_MATCH);
    if is_known.is_some() && is_known == tag.as_ref() {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        response
            .headers_mut()
            .extend(tag.map(|tag| (header::ETAG, tag)));
        return Ok(response);
    }
    let mut response = answer(content, range);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_DISPOSITION,
        attachment(last_name(&query.path)),
    );
    headers.extend(tag.map(|tag| (header::ETAG, tag)));
    Ok(response)
}

fn answer(content: FileContent, range: Option<ByteRange>) -> Response {
    let FileContent {
        status,
        start,
        length,
        stream,
    } = content;
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, BYTES);
    headers.insert(header::CONTENT_LENGTH, length.into());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if range.is_some() {
        let last = start + length.saturating_sub(1);
        let told = format!("bytes {start}-{last}/{}", status.size);
        if let Ok(told) = HeaderValue::try_from(told) {
            headers.insert(header::CONTENT_RANGE, told);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    response
}

/// The one range that is asked for. Whatever else is in the header is ignored, as it may be.
fn range(headers: &HeaderMap) -> Option<ByteRange> {
    // A condition that is not understood here makes the range void.
    if headers.contains_key(header::IF_RANGE) {
        return None;
    }
    let text = headers.get(header::RANGE)?.to_str().ok()?;
    ByteRange::from_words(text.strip_prefix("bytes=")?.trim())
}

pub(crate) async fn write(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<WriteFileQuery>,
    request: Request,
) -> Result<Response, Refused> {
    require_bytes(request.headers())?;
    let asked = WriteRequest {
        mode: mode(query.mode.as_deref())?,
        expected: expected(request.headers())?,
        path: query.path,
        parents: match query.parents {
            true => Parents::Make,
            false => Parents::Require,
        },
    };
    let sandbox = sandbox(&app, &principal, &session).await?;
    let stall = app.settings.limits.body_stall;
    let (body, lender) = LentBody::new(request.into_body(), stall);
    let written = sandbox.files()?.write(asked, Box::pin(body)).await;
    if written.is_err() {
        lender.linger().await;
    }
    let status = written?;
    let tag = tag(&status);
    let mut response = json(StatusCode::OK, &told(status));
    response
        .headers_mut()
        .extend(tag.map(|tag| (header::ETAG, tag)));
    Ok(response)
}

/// A page in a browser can send forms to any address, but nothing of this type.
pub(super) fn require_bytes(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get(header::CONTENT_TYPE) {
        Some(kind) if *kind == BYTES => Ok(()),
        _ => Err(ApiError::new(
            ErrorCode::UnsupportedMediaType,
            "the body must be sent as `application/octet-stream`",
        )),
    }
}

/// What the file must be, as the conditions of HTTP say it (FA-6).
fn expected(headers: &HeaderMap) -> Result<Option<Expected>, ApiError> {
    let text = |name| match headers.get(name).map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.trim())),
        Some(Err(_)) => Err(ApiError::invalid("a tag is visible ASCII in quotes")),
    };
    match (text(header::IF_MATCH)?, text(header::IF_NONE_MATCH)?) {
        (None, None) => Ok(None),
        (None, Some("*")) => Ok(Some(Expected::Absent)),
        (Some(tag), None) => {
            let tag = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
            match tag {
                Some(tag) if !tag.is_empty() && !tag.contains('"') => {
                    Ok(Some(match tag.strip_prefix("sha256:") {
                        Some(digits) => Expected::Sha256(digits.to_ascii_lowercase()),
                        None => Expected::Version(tag.to_owned()),
                    }))
                }
                _ => Err(ApiError::invalid("`If-Match` takes one tag in quotes")),
            }
        }
        _ => Err(ApiError::invalid(
            "give either `If-Match` with a tag, or `If-None-Match: *`",
        )),
    }
}

pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<RemoveFileQuery>,
) -> Result<Response, Refused> {
    let sandbox = sandbox(&app, &principal, &session).await?;
    let request = RemoveRequest {
        path: query.path,
        depth: match query.recursive {
            true => Depth::Tree,
            false => Depth::One,
        },
    };
    sandbox.files()?.remove(request).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
