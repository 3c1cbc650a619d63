//! The handler that starts programs, and what carries their streams.

pub(crate) mod relay;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode, Version,
    header::{CONNECTION, UPGRADE},
};
use serde_json::json;

use super::{
    answer::Refusal,
    body::read_json,
    handlers::Surface,
    takeover::{Takeover, TakeoverEnd},
};
use crate::program::{ProgramRequest, StartFailure, StartProgramError, UPGRADE_NAME};

/// Starts a program and takes the connection over for its streams. A program that cannot be
/// started is refused before that, like any other request.
pub(super) async fn start_program(
    State(surface): State<Arc<Surface>>,
    request: Request,
) -> Result<Response, Refusal> {
    if !asks_for_upgrade(request.version(), request.headers()) {
        return Ok(upgrade_required());
    }
    surface.note_action();
    let body = read_json(request, &surface.limits).await?;
    let program = ProgramRequest::from_json(&body).map_err(|problem| {
        let detail = format!("the request for a program makes no sense: {problem}");
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    })?;
    program.check().map_err(|error| refusal(&error))?;
    let started = surface.service.start_program(program).await;
    let program = started.map_err(|error| refusal(&error))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(UPGRADE_NAME));
    // Until it is begun the answer holds the program, which ends if nobody takes the answer.
    let takeover = Takeover::new(TakeoverEnd::AtDrain, |connection| {
        relay::carry_program(connection, program, relay::PlainVoice)
    });
    response.extensions_mut().insert(takeover);
    Ok(response)
}

fn asks_for_upgrade(version: Version, headers: &HeaderMap) -> bool {
    let lists = |name, word: &str| {
        let values = headers.get_all(name).iter();
        let mut words = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        words.any(|other| other.trim().eq_ignore_ascii_case(word))
    };
    version == Version::HTTP_11 && lists(CONNECTION, "upgrade") && lists(UPGRADE, UPGRADE_NAME)
}

fn upgrade_required() -> Response {
    let detail = format!(
        "a program's streams need the connection: send `Connection: Upgrade` and \
         `Upgrade: {UPGRADE_NAME}`"
    );
    let mut response = Refusal::new(StatusCode::UPGRADE_REQUIRED, detail).into_response();
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static(UPGRADE_NAME));
    response
}

fn refusal(error: &StartProgramError) -> Refusal {
    if error.reason == StartFailure::Internal {
        tracing::warn!(%error, "cannot start a program");
    }
    Refusal {
        status: error.reason.status(),
        document: json!({ "detail": error.message, "code": error.reason.code() }),
        retry_after: None,
    }
}
