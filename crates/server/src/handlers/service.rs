//! What the server tells of itself.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use zareba_api::{
    Health, Limits, LogStatus, PoolStatus, Readiness, RuntimePage, ServerStatus, SessionCounts,
};
use zareba_wire::serving::URI_BYTES_MAX;

use super::json;
use crate::{app::App, auth::Principal, convert, error::ApiError, request::JSON_DEPTH_MAX};

pub(super) async fn health() -> Response {
    let status = "ok".to_owned();
    json(StatusCode::OK, &Health { status })
}

pub(super) async fn ready(State(app): State<Arc<App>>) -> Response {
    let mut reasons = Vec::new();
    if app.is_draining() {
        reasons.push("the server is shutting down".to_owned());
    }
    let log = log_status(&app);
    if let Some(reason) = log.reason {
        reasons.push(format!("the event log cannot be written: {reason}"));
    }
    let ready = reasons.is_empty();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    json(status, &Readiness { ready, reasons })
}

pub(super) async fn status(
    State(app): State<Arc<App>>,
    principal: Principal,
) -> Result<Response, ApiError> {
    principal.require_unbound()?;
    let status = ServerStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime: app.started.elapsed().into(),
        sessions: counts(&app),
        log: log_status(&app),
        default_runtime: app.sessions.options().default_runtime.clone(),
        pools: pools(&app),
        extensions: app.extensions.iter().map(|&name| name.to_owned()).collect(),
    };
    Ok(json(StatusCode::OK, &status))
}

pub(super) async fn runtimes(State(app): State<Arc<App>>) -> Response {
    let options = app.sessions.options();
    let described = options
        .runtimes
        .iter()
        .map(|(name, runtime)| convert::runtime(name, runtime.as_ref(), &options.default_runtime));
    let runtimes = described.collect();
    json(StatusCode::OK, &RuntimePage { runtimes })
}

pub(super) async fn limits(State(app): State<Arc<App>>) -> Response {
    let (limits, options) = (&app.settings.limits, app.sessions.options());
    let limits = Limits {
        json_bytes: limits.json_bytes,
        action_bytes: limits.action_bytes,
        json_depth: JSON_DEPTH_MAX,
        uri_bytes: URI_BYTES_MAX,
        page_items: limits.page_items,
        wait: limits.wait.into(),
        connections: limits.connections,
        peer_connections: app.settings.peer_connections(),
        sessions: options.sessions_max,
        owner_sessions: options.owner_sessions_max,
        idle_timeout: options.idle_timeout.into(),
        timeout: options.timeout.into(),
        no_change_timeout: options.no_change_timeout.into(),
        ticket_life: limits.ticket_life.into(),
    };
    json(StatusCode::OK, &limits)
}

/// Written once: it is the same for everyone.
pub(super) async fn openapi() -> Response {
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    let document = DOCUMENT.get_or_init(|| zareba_api::openapi().to_string().into());
    let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (json, document.clone()).into_response()
}

pub(super) async fn metrics(
    State(app): State<Arc<App>>,
    principal: Principal,
) -> Result<Response, ApiError> {
    principal.require_unbound()?;
    let text = app
        .telemetry
        .render(&counts(&app), &log_status(&app), &pools(&app));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    Ok(([(CONTENT_TYPE, kind)], text).into_response())
}

fn pools(app: &App) -> BTreeMap<String, PoolStatus> {
    let runtimes = app.sessions.options().runtimes.iter();
    runtimes
        .filter_map(|(name, runtime)| Some((name.clone(), convert::pool(runtime.pool()?))))
        .collect()
}

fn counts(app: &App) -> SessionCounts {
    convert::counts(app.sessions.counts())
}

fn log_status(app: &App) -> LogStatus {
    convert::log_status(&app.sessions.log().store().health().borrow())
}
