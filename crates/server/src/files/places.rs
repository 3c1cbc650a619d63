//! Looking at paths, listing, renaming and making directories.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use zareba_api::{
    CreateDirectory, FileDigest, FileEntry, FilePage, ListFilesQuery, RenameFile, StatusQuery,
};
use zareba_runtime::Sandbox as _;
use zareba_wire::files::{
    Digest, DirectoryRequest, Existing, LIST_LIMIT_MAX, Links, ListRequest, Parents, RenameRequest,
    StatRequest,
};

use super::{mode, refusal::Refused, sandbox, told};
use crate::{
    app::App,
    auth::Principal,
    handlers::json,
    request::{Json, Place, Query},
};

pub(crate) async fn status(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<StatusQuery>,
) -> Result<Response, Refused> {
    let sandbox = sandbox(&app, &principal, &session).await?;
    let request = StatRequest {
        path: query.path,
        links: match query.follow {
            true => Links::Follow,
            false => Links::Keep,
        },
        digest: match query.digest {
            None => Digest::Skip,
            Some(FileDigest::Sha256) => Digest::Sha256,
        },
    };
    let status = sandbox.files()?.stat(request).await?;
    Ok(json(StatusCode::OK, &told(status)))
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<ListFilesQuery>,
) -> Result<Response, Refused> {
    let sandbox = sandbox(&app, &principal, &session).await?;
    let most = app.settings.limits.page_items.clamp(1, LIST_LIMIT_MAX);
    let request = ListRequest {
        path: query.path.unwrap_or_else(|| ".".to_owned()),
        after: query.after,
        limit: query.limit.unwrap_or(most).clamp(1, most),
    };
    let page = sandbox.files()?.list(request).await?;
    let entries = page.entries.into_iter().map(|entry| FileEntry {
        name: entry.name,
        status: told(entry.status),
    });
    let page = FilePage {
        entries: entries.collect(),
        next: page.next,
        truncated: page.truncated,
    };
    Ok(json(StatusCode::OK, &page))
}

pub(crate) async fn make_directory(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Json(create): Json<CreateDirectory>,
) -> Result<Response, Refused> {
    let sandbox = sandbox(&app, &principal, &session).await?;
    let request = DirectoryRequest {
        mode: mode(create.mode.as_deref())?,
        path: create.path,
        parents: match create.parents {
            true => Parents::Make,
            false => Parents::Require,
        },
    };
    let status = sandbox.files()?.make_directory(request).await?;
    Ok(json(StatusCode::CREATED, &told(status)))
}

pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Json(rename): Json<RenameFile>,
) -> Result<Response, Refused> {
    let sandbox = sandbox(&app, &principal, &session).await?;
    let request = RenameRequest {
        from: rename.from,
        to: rename.to,
        existing: match rename.replace {
            true => Existing::Replace,
            false => Existing::Keep,
        },
    };
    sandbox.files()?.rename(request).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
