//! The handlers that translate JSON: each reads a request, asks the service and writes what
//! it said. Files move in `transfer`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    response::Response,
};
use bytes::Bytes;
use http::StatusCode;
use serde::de::IgnoredAny;
use serde_json::{Value, json, value::RawValue};
use zareba_protocol::{ActionEvent, DecodeError};

use super::{
    answer::{self, Refusal},
    body::read_json,
    limits::ServerLimits,
    resources::Meter,
    tools::{PostAddress, ToolClients},
    validation,
};
use crate::{ActionService, strict};

/// Documents larger than this are read and written on a thread of their own, because that
/// takes milliseconds in which nobody else would be served.
const INLINE_BYTES_MAX: usize = 512 * 1024;

/// What all handlers share.
pub(super) struct Surface {
    pub(super) service: Arc<dyn ActionService>,
    pub(super) limits: ServerLimits,
    started: Instant,
    /// When the last action began, in nanoseconds after `started`.
    last_action: AtomicU64,
    meter: Meter,
    pub(super) tool_clients: ToolClients,
    pub(super) post_address: PostAddress,
}

impl Surface {
    pub(super) fn new(
        service: Arc<dyn ActionService>,
        limits: ServerLimits,
        post_address: PostAddress,
    ) -> Self {
        Self {
            tool_clients: ToolClients::default(),
            post_address,
            service,
            limits,
            started: Instant::now(),
            last_action: AtomicU64::new(0),
            meter: Meter::start(),
        }
    }

    pub(super) fn note_action(&self) {
        let now = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last_action.store(now, Ordering::Relaxed);
    }
}

pub(super) async fn alive(State(surface): State<Arc<Surface>>) -> Response {
    let (status, word) = if surface.service.is_ready() {
        (StatusCode::OK, "ok")
    } else {
        // The original answers 200 to this, and its client then sends actions.
        (StatusCode::SERVICE_UNAVAILABLE, "not initialized")
    };
    answer::with_status(status, json!({ "status": word }).to_string().into_bytes())
}

pub(super) async fn server_info(State(surface): State<Arc<Surface>>) -> Response {
    let uptime = surface.started.elapsed();
    let last_action = Duration::from_nanos(surface.last_action.load(Ordering::Relaxed));
    answer::json(&json!({
        "uptime": uptime.as_secs_f64(),
        "idle_time": uptime.saturating_sub(last_action).as_secs_f64(),
        "resources": surface.meter.read(),
    }))
}

pub(super) async fn execute_action(
    State(surface): State<Arc<Surface>>,
    request: Request,
) -> Result<Response, Refusal> {
    surface.note_action();
    let body = read_json(request, &surface.limits).await?;
    let action = off_thread_if(body.len(), move || decode_action(&body)).await??;
    let observation = surface.service.execute(action).await;
    let size = observation.observation.content.len();
    let document = off_thread_if(size, move || observation.to_json()).await?;
    Ok(answer::json_bytes(document.into_bytes()))
}

fn decode_action(body: &Bytes) -> Result<ActionEvent, Refusal> {
    let direct = match serde_json::from_slice(body) {
        Ok(Envelope { action }) if action.get().starts_with('{') => {
            Some(ActionEvent::from_json(action.get().as_bytes()))
        }
        _ => None,
    };
    let action = match direct {
        // JSON that is broken or too deep is a matter of the body, not of the action.
        None | Some(Err(DecodeError::Syntax { .. })) => ActionEvent::from_value(action_in(body)?),
        Some(decoded) => decoded,
    };
    let action = action.map_err(|error| internal_server_error(&error))?;
    action
        .action
        .require_executable()
        .map_err(|error| internal_server_error(&error))?;
    // A proxy may have read another of two values with one name.
    strict::from_slice::<IgnoredAny>(body).map_err(|error| validation::body_is_no_json(&error))?;
    Ok(action)
}

/// The body of a request, with its action still unread: it is read once, into its own type.
#[derive(serde::Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    action: &'a RawValue,
}

/// Looks closely at a body that is not simply an envelope with an object in it, and finds what
/// is wrong in the order in which the original looks.
fn action_in(body: &[u8]) -> Result<Value, Refusal> {
    let document: Value =
        serde_json::from_slice(body).map_err(|error| validation::body_is_no_json(&error))?;
    match document.as_object().map(|object| object.get("action")) {
        None => Err(validation::body_is_no_object(&document)),
        Some(None) => Err(validation::missing("body", "action", &document)),
        Some(Some(action)) if action.is_object() => Ok(action.clone()),
        Some(Some(action)) => Err(validation::action_is_no_object(action)),
    }
}

fn internal_server_error(error: &dyn std::error::Error) -> Refusal {
    Refusal::internal(format!("Internal server error: {error}"))
}

/// Runs `work` here when it is small and beside the others when it is not.
async fn off_thread_if<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    if size <= INLINE_BYTES_MAX {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a large document could not be processed");
        Refusal::unexpected()
    })
}

pub(super) async fn list_files(
    State(surface): State<Arc<Surface>>,
    request: Request,
) -> Result<Response, Refusal> {
    let body = read_json(request, &surface.limits).await?;
    let document: Value = serde_json::from_slice(&body).map_err(|_| Refusal::unexpected())?;
    let object = document.as_object().ok_or_else(Refusal::unexpected)?;
    let path = match object.get("path") {
        None | Some(Value::Null) => None,
        Some(Value::String(path)) => Some(path.clone()),
        Some(_) => return Err(Refusal::unexpected()),
    };
    let names = surface.service.list_files(path).await;
    Ok(answer::json(&Value::from(names)))
}

pub(super) async fn vscode_connection_token() -> Response {
    answer::json(&json!({ "token": null }))
}
