//! Running actions, and asking what came of them.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header::LOCATION};
use tokio::sync::oneshot;
use zareba_api::{ActionAccepted, AnswerQuery, IDEMPOTENCY_KEY, RunQuery, StopQuery};
use zareba_eventlog::EntryKind;
use zareba_protocol::ActionEvent;
use zareba_session::{ActionRequest, IdempotencyKey, Session, SessionError, Surface, event_json};
use zareba_wire::output::StopMeans;

use super::json;
use crate::{
    app::App,
    auth::Principal,
    error::ApiError,
    request::{LargeJson, Place, Query},
    usage::Part,
};

pub(super) async fn run(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<RunQuery>,
    headers: HeaderMap,
    LargeJson(action, place): LargeJson,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let action = (ActionEvent::from_value(action)?, place);
    run_event(&app, &principal, &session, action, query, &headers).await
}

/// Runs an action of whatever route, which came with its place among large bodies.
pub(super) async fn run_event(
    app: &App,
    principal: &Principal,
    session: &Arc<Session>,
    (action, place): (ActionEvent, Option<Part>),
    query: RunQuery,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let quota = principal.quota.actions_per_minute;
    app.usage().action(&principal.owner, quota)?;
    let key = idempotency_key(headers)?;
    let request = ActionRequest {
        action,
        key,
        requester: Some(principal.requester(Surface::Api)),
    };
    if query.wait && place.is_none() {
        return run_waited(app, principal, session, request).await;
    }
    let submitted = submit(session, request, place).await;
    let number = submitted.inspect_err(|_| app.telemetry.action("refused"))?;
    if !query.wait {
        app.telemetry.action("accepted");
        return Ok(accepted(principal, session, number));
    }
    let response = wait_for(app, principal, session, number, app.settings.limits.wait).await?;
    app.telemetry.action(match response.status() {
        StatusCode::OK => "answered",
        _ => "accepted",
    });
    Ok(response)
}

/// Runs an action in the request's own task: who waits for it anyway spares it the way to another.
async fn run_waited(
    app: &App,
    principal: &Principal,
    session: &Session,
    request: ActionRequest,
) -> Result<Response, ApiError> {
    let mut asked = session.ask(request);
    let answer = loop {
        tokio::select! {
            biased;
            answer = asked.answer() => break answer,
            () = app.waited(app.settings.limits.wait) => {}
        }
        // One that still waits for its turn has no number that could be asked for later.
        if let Some(number) = asked.number() {
            app.telemetry.action("accepted");
            asked.leave();
            return Ok(accepted(principal, session, number));
        }
        // It is recorded and run whatever we say, so nothing but its answer would be true.
        if app.is_draining() {
            break asked.answer().await;
        }
    };
    // Recorded and left to the server that comes after us: it is not refused, and must not be asked
    // for once more.
    if let (Err(SessionError::ShuttingDown), Some(number)) = (&answer, asked.number()) {
        app.telemetry.action("accepted");
        return Ok(accepted(principal, session, number));
    }
    let is_refused = answer.is_err() && asked.number().is_none();
    app.telemetry
        .action(if is_refused { "refused" } else { "answered" });
    Ok(json(StatusCode::OK, &event_json(&*answer?)))
}

/// Has an action recorded and returns its number. A large one keeps its place until it has its
/// observation, whether or not anybody waits for that.
async fn submit(
    session: &Arc<Session>,
    request: ActionRequest,
    place: Option<Part>,
) -> Result<u64, SessionError> {
    let Some(place) = place else {
        return Ok(session.submit(request).await?.sequence);
    };
    let (recorded, told) = oneshot::channel();
    let session = Arc::clone(session);
    tokio::spawn(async move {
        let submitted = session.submit(request).await;
        let submitted = submitted.map(|record| record.sequence);
        let number = submitted.as_ref().ok().copied();
        // The client may be gone.
        let _ = recorded.send(submitted);
        if let Some(number) = number {
            let _ = session.answer(number).await;
        }
        drop(place);
    });
    told.await.unwrap_or(Err(SessionError::ShuttingDown))
}

pub(super) async fn answer(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place((session, number)): Place<(String, u64)>,
    Query(query): Query<AnswerQuery>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let patience = query
        .wait
        .map_or(Duration::ZERO, zareba_api::Seconds::duration);
    wait_for(&app, &principal, &session, number, patience).await
}

pub(super) async fn stop(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place((session, number)): Place<(String, u64)>,
    Query(query): Query<StopQuery>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let means = match query.means {
        zareba_api::StopMeans::Interrupt => StopMeans::Interrupt,
        zareba_api::StopMeans::Kill => StopMeans::Kill,
    };
    let requester = principal.requester(Surface::Api);
    session.stop(number, means, &requester).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The observation, or 202 when the wait gets too long.
async fn wait_for(
    app: &App,
    principal: &Principal,
    session: &Session,
    number: u64,
    patience: Duration,
) -> Result<Response, ApiError> {
    if patience.is_zero() {
        return answer_now(app, principal, session, number).await;
    }
    tokio::select! {
        biased;
        answer = session.answer(number) => Ok(json(StatusCode::OK, &event_json(&*answer?))),
        () = app.waited(patience) => Ok(accepted(principal, session, number)),
    }
}

/// What the log has by now.
async fn answer_now(
    app: &App,
    principal: &Principal,
    session: &Session,
    number: u64,
) -> Result<Response, ApiError> {
    let store = app.sessions.log().store();
    if let Some(record) = store.answer(session.id().clone(), number).await? {
        return Ok(json(StatusCode::OK, &event_json(&record)));
    }
    let asked = store.read(session.id().clone(), number, 1).await?;
    if asked.first().map(|record| record.kind) != Some(EntryKind::Action) {
        let (session, sequence) = (session.id().clone(), number);
        return Err(SessionError::NoAction { session, sequence }.into());
    }
    Ok(accepted(principal, session, number))
}

fn accepted(principal: &Principal, session: &Session, action: u64) -> Response {
    let accepted = ActionAccepted {
        session: principal.name_of(session).clone(),
        action,
    };
    let mut response = json(StatusCode::ACCEPTED, &accepted);
    let place = format!(
        "/v1/sessions/{}/actions/{action}",
        principal.name_of(session)
    );
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, ApiError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let invalid = |problem: &str| ApiError::invalid(format!("`Idempotency-Key`: {problem}"));
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(invalid("there is more than one")),
        (Some(value), None) => {
            let text = value.to_str().unwrap_or_default();
            let key = IdempotencyKey::new(text);
            key.map(Some).map_err(|error| invalid(&error.to_string()))
        }
    }
}
