//! Files and directories as archives.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header};
use zareba_api::{ArchiveFormat, ArchiveQuery};
use zareba_runtime::Sandbox as _;
use zareba_wire::{Download, Upload, UploadTreatment, serving::LentBody};

use super::{attachment, content::require_bytes, last_name, refusal::Refused, sandbox};
use crate::{
    app::App,
    auth::Principal,
    request::{Place, Query},
};

pub(crate) async fn pack(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<ArchiveQuery>,
) -> Result<Response, Refused> {
    let sandbox = sandbox(&app, &principal, &session).await?;
    let name = format!("{}.{}", last_name(&query.path), extension(query.format));
    let request = Download {
        path: query.path.into(),
        format: match query.format {
            ArchiveFormat::Tar => zareba_wire::ArchiveFormat::Tar,
            ArchiveFormat::Zip => zareba_wire::ArchiveFormat::Zip,
        },
    };
    let archive = sandbox.files()?.download(request).await?;
    let mut response = Response::new(Body::from_stream(archive));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CONTENT_DISPOSITION, attachment(&name));
    Ok(response)
}

pub(crate) async fn unpack(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<ArchiveQuery>,
    request: Request,
) -> Result<Response, Refused> {
    require_bytes(request.headers())?;
    let sandbox = sandbox(&app, &principal, &session).await?;
    let upload = Upload {
        // Any name will do that says what it is.
        file_name: format!("archive.{}", extension(query.format)),
        destination: query.path.into(),
        treatment: UploadTreatment::Unpack,
        room: None,
    };
    let stall = app.settings.limits.body_stall;
    let (body, lender) = LentBody::new(request.into_body(), stall);
    let unpacked = sandbox.files()?.upload(upload, Box::pin(body)).await;
    if unpacked.is_err() {
        lender.linger().await;
    }
    unpacked?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

const fn extension(format: ArchiveFormat) -> &'static str {
    match format {
        ArchiveFormat::Tar => "tar",
        ArchiveFormat::Zip => "zip",
    }
}
