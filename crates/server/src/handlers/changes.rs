//! What a session has changed in its workspace.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use zareba_api::{self as api, ChangesFormat, ChangesQuery};
use zareba_runtime::{
    ChangeKind, ChangedContent, ChangesRequest, Sandbox as _, WorkspaceChange, WorkspaceChanges,
};
use zareba_session::SessionError;

use super::json;
use crate::{
    app::App,
    auth::Principal,
    error::ApiError,
    request::{Place, Query},
};

pub(super) async fn list(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<ChangesQuery>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let sandbox = app.sandbox(&principal, &session).await?;
    let request = ChangesRequest { path: query.path };
    match query.format {
        ChangesFormat::List => {
            let found = sandbox.changes(request).await.map_err(SessionError::from)?;
            Ok(json(StatusCode::OK, &told(found)))
        }
        ChangesFormat::Patch => {
            let patch = sandbox.patch(request).await.map_err(SessionError::from)?;
            // A sandbox has written it; no browser shall take it for a page.
            let kind = HeaderValue::from_static("application/octet-stream");
            Ok(([(CONTENT_TYPE, kind)], patch.bytes).into_response())
        }
    }
}

fn told(found: WorkspaceChanges) -> api::ChangeList {
    let unread = found.unread.into_iter().map(|place| api::UnreadPlace {
        path: place.path,
        reason: place.reason,
    });
    api::ChangeList {
        changes: found.changes.into_iter().map(change).collect(),
        unread: unread.collect(),
    }
}

fn change(change: WorkspaceChange) -> api::WorkspaceChange {
    let (change_kind, from) = match change.kind {
        ChangeKind::Added => (api::WorkspaceChangeKind::Added, None),
        ChangeKind::Modified => (api::WorkspaceChangeKind::Modified, None),
        ChangeKind::Deleted => (api::WorkspaceChangeKind::Deleted, None),
        ChangeKind::Renamed { from } => (api::WorkspaceChangeKind::Renamed, Some(from)),
    };
    let mut told = api::WorkspaceChange {
        path: change.path,
        change: change_kind,
        kind: api::ChangedKind::Special,
        from,
        size: None,
        executable: false,
        target: None,
    };
    match change.content {
        ChangedContent::Directory => told.kind = api::ChangedKind::Directory,
        ChangedContent::File {
            bytes,
            is_executable,
        } => {
            told.kind = api::ChangedKind::File;
            told.size = Some(bytes);
            told.executable = is_executable;
        }
        ChangedContent::Link { target } => {
            told.kind = api::ChangedKind::Link;
            told.target = Some(target);
        }
        ChangedContent::Special => {}
    }
    told
}
