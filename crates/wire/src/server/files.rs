//! The handlers for files as bytes. Content goes through as streams and is never held whole.

pub(crate) mod paths;
mod query;
mod watch;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    response::Response,
};
use http::{HeaderValue, header};
use serde_json::{Value, json};

use self::{paths::STATUS_HEADER, query::FileQuery};
use super::{
    answer::{self, Refusal},
    body::read_json,
    handlers::Surface,
    lent::LentBody,
};
use crate::files::{
    self, Depth, DirectoryRequest, FileError, FileFailure, FileService, ListRequest, ReadRequest,
    RemoveRequest, RenameRequest, StatRequest, WatchRequest, WriteRequest,
};

/// Entries of a page when nobody says how many.
const LIST_LIMIT_DEFAULT: usize = 200;

type Answer = Result<Response, Refusal>;

pub(super) async fn status(State(surface): State<Arc<Surface>>, request: Request) -> Answer {
    let query = FileQuery::of(request.uri())?;
    let asked = StatRequest {
        path: query.path()?,
        links: query.links()?,
        digest: query.digest()?,
    };
    let status = service(&surface)?.stat(asked).await.map_err(refusal)?;
    Ok(answer::json(&status.to_json()))
}

pub(super) async fn content(State(surface): State<Arc<Surface>>, request: Request) -> Answer {
    let query = FileQuery::of(request.uri())?;
    let asked = ReadRequest {
        path: query.path()?,
        range: query.range()?,
        digest: query.digest()?,
    };
    let content = service(&surface)?.read(asked).await.map_err(refusal)?;
    let described = json!({ "status": content.status.to_json(), "start": content.start });
    let described = HeaderValue::try_from(described.to_string());
    let mut response = Response::new(Body::from_stream(content.stream));
    let headers = response.headers_mut();
    let binary = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, binary);
    headers.insert(header::CONTENT_LENGTH, content.length.into());
    // What is in it is ASCII, since a file that is read has no target.
    headers.insert(STATUS_HEADER, described.map_err(|_| Refusal::unexpected())?);
    Ok(response)
}

pub(super) async fn store(State(surface): State<Arc<Surface>>, request: Request) -> Answer {
    let query = FileQuery::of(request.uri())?;
    let asked = WriteRequest {
        path: query.path()?,
        mode: query.mode()?,
        parents: query.parents()?,
        expected: query.expected()?,
    };
    let files = service(&surface)?;
    surface.note_action();
    let (body, lender) = LentBody::new(request.into_body(), surface.limits.body_stall);
    let stored = files.write(asked, Box::pin(body)).await;
    if stored.is_err() {
        lender.linger().await;
    }
    let status = stored.map_err(refusal)?;
    Ok(answer::json(&status.to_json()))
}

pub(super) async fn entries(State(surface): State<Arc<Surface>>, request: Request) -> Answer {
    let query = FileQuery::of(request.uri())?;
    let asked = ListRequest {
        path: query.path()?,
        after: query.after(),
        limit: query.limit(LIST_LIMIT_DEFAULT, files::LIST_LIMIT_MAX)?,
    };
    let page = service(&surface)?.list(asked).await.map_err(refusal)?;
    Ok(answer::json(&page.to_json()))
}

pub(super) async fn remove(State(surface): State<Arc<Surface>>, request: Request) -> Answer {
    let query = FileQuery::of(request.uri())?;
    let asked = RemoveRequest {
        path: query.path()?,
        depth: query.depth(Depth::One)?,
    };
    surface.note_action();
    let removed = service(&surface)?.remove(asked).await;
    removed.map_err(refusal)?;
    Ok(answer::json(&json!({})))
}

pub(super) async fn make_directory(
    State(surface): State<Arc<Surface>>,
    request: Request,
) -> Answer {
    let asked: DirectoryRequest = body_of(&surface, request).await?;
    let made = service(&surface)?.make_directory(asked).await;
    Ok(answer::json(&made.map_err(refusal)?.to_json()))
}

pub(super) async fn rename(State(surface): State<Arc<Surface>>, request: Request) -> Answer {
    let asked: RenameRequest = body_of(&surface, request).await?;
    let renamed = service(&surface)?.rename(asked).await;
    renamed.map_err(refusal)?;
    Ok(answer::json(&json!({})))
}

pub(super) async fn watch(State(surface): State<Arc<Surface>>, request: Request) -> Answer {
    let query = FileQuery::of(request.uri())?;
    let asked = WatchRequest {
        path: query.path()?,
        depth: query.depth(Depth::Tree)?,
    };
    let changes = service(&surface)?.watch(asked).await.map_err(refusal)?;
    let mut response = Response::new(Body::from_stream(watch::lines(changes)));
    let lines = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, lines);
    Ok(response)
}

async fn body_of<T: files::Body>(surface: &Surface, request: Request) -> Result<T, Refusal> {
    surface.note_action();
    let body = read_json(request, &surface.limits).await?;
    T::from_json(&body).map_err(|problem| bad_request(format!("the request {problem}")))
}

fn service(surface: &Surface) -> Result<&dyn FileService, Refusal> {
    let service = surface.service.files();
    service.ok_or_else(|| refusal(FileError::unsupported()))
}

fn bad_request(message: String) -> Refusal {
    refusal(FileError::new(FileFailure::InvalidRequest, message))
}

/// A refusal as clients of files read it: `detail` and `code`, and the file where that helps.
fn refusal(error: FileError) -> Refusal {
    if error.reason == FileFailure::Internal {
        tracing::warn!(%error, "work on a file failed");
    }
    let mut document = json!({ "detail": error.message, "code": error.reason.code() });
    if let (Some(current), Value::Object(members)) = (&error.current, &mut document) {
        members.insert("current".to_owned(), current.to_json());
    }
    Refusal {
        status: error.reason.status(),
        document,
        retry_after: None,
    }
}
