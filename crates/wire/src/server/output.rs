//! The handlers for a command while it runs: its output, and its end before its time.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Query, Request, State},
    response::Response,
};
use http::{HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;

use super::{
    answer::{self, Refusal},
    handlers::Surface,
};
use crate::output::{OUTPUT_WAIT_MAX, OutputRequest, StopMeans, StopRequest};

/// Where output is read.
pub(crate) const OUTPUT_ROUTE: &str = "/output";
/// Where actions are stopped.
pub(crate) const STOP_ROUTE: &str = "/output/stop";
/// The offset at which to go on.
pub(crate) const NEXT_HEADER: HeaderName = HeaderName::from_static("zareba-output-next");
/// What is known of the action.
pub(crate) const STATE_HEADER: HeaderName = HeaderName::from_static("zareba-output-state");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputQuery {
    action: String,
    #[serde(default)]
    from: u64,
    #[serde(default)]
    wait_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StopQuery {
    action: String,
    means: String,
}

/// Answers with what an action has written, as soon as there is something new.
pub(super) async fn read(
    State(surface): State<Arc<Surface>>,
    request: Request,
) -> Result<Response, Refusal> {
    let query: OutputQuery = query_of(&request)?;
    let asked = OutputRequest {
        action: query.action,
        from: query.from,
        wait: Duration::from_millis(query.wait_ms).min(OUTPUT_WAIT_MAX),
    };
    let piece = surface.service.read_output(asked).await.ok_or_else(|| {
        let detail = "this executor keeps no output of running commands";
        Refusal::new(StatusCode::NOT_IMPLEMENTED, detail)
    })?;
    let mut response = Response::new(Body::from(piece.bytes));
    let headers = response.headers_mut();
    let binary = HeaderValue::from_static("application/octet-stream");
    headers.insert(CONTENT_TYPE, binary);
    headers.insert(NEXT_HEADER, piece.next.into());
    let state = HeaderValue::from_static(piece.state.as_str());
    headers.insert(STATE_HEADER, state);
    Ok(response)
}

/// Stops an action, and says whether it was under way.
pub(super) async fn stop(
    State(surface): State<Arc<Surface>>,
    request: Request,
) -> Result<Response, Refusal> {
    let query: StopQuery = query_of(&request)?;
    let means = StopMeans::parse(&query.means).ok_or_else(|| {
        let detail = "the parameter `means` is `interrupt` or `kill`";
        Refusal::new(StatusCode::BAD_REQUEST, detail)
    })?;
    surface.note_action();
    let action = query.action;
    let stopped = surface.service.stop_action(StopRequest { action, means });
    let stopped = stopped.await.ok_or_else(|| {
        let detail = "this executor cannot stop an action";
        Refusal::new(StatusCode::NOT_IMPLEMENTED, detail)
    })?;
    Ok(answer::json(&json!({ "stopped": stopped })))
}

fn query_of<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    let query = Query::<T>::try_from_uri(request.uri()).map_err(|error| {
        let detail = format!("the parameters {}", error.body_text());
        Refusal::new(StatusCode::BAD_REQUEST, detail)
    })?;
    Ok(query.0)
}
