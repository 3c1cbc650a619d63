//! Making, finding and ending sessions.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{LOCATION, RETRY_AFTER},
};
use zareba_api::{
    CreateQuery, CreateSession, DeleteQuery, KeyScope, PageQuery, Seconds, SessionPage,
    SetVariables, UpdateSession,
};
use zareba_protocol::SessionId;
use zareba_runtime::Sandbox as _;
use zareba_session::{Session, SessionError, Surface, own_id};
use zareba_wire::variables::VariableChanges;

use super::json;
use crate::{
    app::App,
    auth::Principal,
    convert,
    error::ApiError,
    request::{Json, Place, Query},
};

pub(super) async fn create(
    State(app): State<Arc<App>>,
    principal: Principal,
    Query(query): Query<CreateQuery>,
    Json(create): Json<CreateSession>,
) -> Result<Response, ApiError> {
    principal.require_unbound()?;
    require_patience(&[
        ("no_change_timeout", create.no_change_timeout),
        ("timeout", create.timeout),
        ("limits.idle_timeout", create.limits.idle_timeout),
        ("limits.life_max", create.limits.life_max),
    ])?;
    // Known beforehand, so that the session can be named when the wait for it gets too long.
    let mut new = convert::new_session(create, &principal.quota);
    let asked = new.id.take();
    let id = match &asked {
        Some(name) if principal.scope != KeyScope::Admin => {
            require_unused(&app, &principal, name).await?;
            new.name = Some(name.clone());
            own_id(&principal.owner, name)?
        }
        Some(id) => id.clone(),
        None => app.sessions.choose_name(&new)?,
    };
    new.id = Some(id.clone());
    let (sessions, owner) = (app.sessions.clone(), principal.owner.clone());
    // In a task of its own: a client that goes away has still asked for it.
    let creating = tokio::spawn(async move {
        if query.wait {
            sessions.create_ready(new, owner).await
        } else {
            sessions.create(new, owner).await
        }
    });
    tokio::select! {
        made = creating => {
            let made = made.map_err(|_| ApiError::internal())?;
            let session = made.map_err(|error| called(error, asked))?;
            let status = if query.wait { StatusCode::CREATED } else { StatusCode::ACCEPTED };
            Ok(created(status, &session, &principal))
        }
        () = app.waited(app.settings.limits.wait) => {
            let session = app.sessions.get(&id).await?;
            Ok(created(StatusCode::ACCEPTED, &session, &principal))
        }
    }
}

/// A limit of nothing would be over before anything began; whoever wrote 0 meant something else.
fn require_patience(limits: &[(&str, Option<Seconds>)]) -> Result<(), ApiError> {
    for (field, limit) in limits {
        if limit.is_some_and(|limit| limit.duration().is_zero()) {
            let message = format!("the field `{field}`: it must be more than 0 seconds");
            let hint = "leave it out, and what the server's settings say counts";
            return Err(ApiError::invalid(message).with_hint(hint));
        }
    }
    Ok(())
}

/// Refuses a name that was the id of another session of this owner: one that an administrator's key made, or
/// that is older than names of owners.
async fn require_unused(
    app: &App,
    principal: &Principal,
    name: &SessionId,
) -> Result<(), ApiError> {
    match app.sessions.get(name).await {
        Ok(session) if session.info().owner == principal.owner => {
            let session = name.clone();
            Err(SessionError::Exists { session }.into())
        }
        Ok(_) | Err(SessionError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The error with the name that was asked for, and not with the id that was made of it.
fn called(error: SessionError, asked: Option<SessionId>) -> ApiError {
    let error = match (error, asked) {
        (SessionError::Exists { .. }, Some(session)) => SessionError::Exists { session },
        (SessionError::NameRemoved { .. }, Some(session)) => SessionError::NameRemoved { session },
        (error, _) => error,
    };
    error.into()
}

fn created(status: StatusCode, session: &Session, principal: &Principal) -> Response {
    let mut response = json(status, &convert::session(session.info(), principal));
    let place = format!("/v1/sessions/{}", principal.name_of(session));
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(LOCATION, place);
    }
    if status == StatusCode::ACCEPTED {
        let seconds = HeaderValue::from_static("1");
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    principal: Principal,
    Query(query): Query<PageQuery>,
) -> Result<Response, ApiError> {
    let most = app.settings.limits.page_items;
    let limit = query.limit.unwrap_or(most).clamp(1, most);
    let sessions = match &principal.session {
        Some(only) => match app.session(&principal, only.as_str()).await {
            Ok(session) => vec![session.info()],
            Err(_) => Vec::new(),
        },
        None => {
            let owner = (principal.scope != KeyScope::Admin).then_some(&principal.owner);
            let after = match query.after {
                None => None,
                Some(after) => match app.session(&principal, after.as_str()).await {
                    Ok(session) => Some(session.id().clone()),
                    // It was removed; its place is where its id was.
                    Err(_) => Some(after),
                },
            };
            // One more says whether there is another page.
            app.sessions.list(owner, after.as_ref(), limit + 1).await
        }
    };
    let has_more = sessions.len() > limit;
    let sessions = sessions.into_iter();
    let mut sessions: Vec<_> = sessions
        .map(|info| convert::session(info, &principal))
        .collect();
    sessions.truncate(limit);
    let last = sessions.last().map(|session| session.id.clone());
    let next = last.filter(|_| has_more);
    Ok(json(StatusCode::OK, &SessionPage { sessions, next }))
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    Ok(shown(&session, &principal))
}

pub(super) async fn update(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Json(update): Json<UpdateSession>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    principal.require_unbound()?;
    require_patience(&[
        ("limits.idle_timeout", update.limits.idle_timeout),
        ("limits.life_max", update.limits.life_max),
        ("ends_in", update.ends_in),
    ])?;
    if update.ends_in.is_some() && update.limits.life_max.is_some() {
        let message = "the fields `ends_in` and `limits.life_max` say two things about its end";
        let hint = "use `ends_in` to count from now, or `limits.life_max` to count from its start";
        return Err(ApiError::invalid(message).with_hint(hint));
    }
    let update = convert::session_update(update, &principal.quota);
    session
        .update(update, &principal.requester(Surface::Api))
        .await?;
    Ok(shown(&session, &principal))
}

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<DeleteQuery>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let client = principal.requester(Surface::Api);
    if query.purge {
        principal.require_unbound()?;
        session.close_for_removal(&client).await?;
        app.authenticator
            .keys()
            .remove_of_session(session.id())
            .await?;
        app.sessions.remove(session.id()).await?;
    } else {
        session.close_for(&client).await?;
    }
    app.shares.forget(session.id()).await;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn pause(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let client = principal.requester(Surface::Api);
    session.pause_for(&client).await?;
    Ok(shown(&session, &principal))
}

pub(super) async fn resume(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let client = principal.requester(Surface::Api);
    session.resume_for(&client).await?;
    Ok(shown(&session, &principal))
}

pub(super) async fn keep_alive(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    session.keep_alive();
    Ok(shown(&session, &principal))
}

pub(super) async fn inspect(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let sandbox = app.sandbox(&principal, &session).await?;
    let found = sandbox.inspect().await.map_err(SessionError::from)?;
    Ok(json(StatusCode::OK, &found))
}

pub(super) async fn set_variables(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Json(asked): Json<SetVariables>,
) -> Result<StatusCode, ApiError> {
    let set = asked.set.into_iter();
    let set = set.map(|(name, value)| (name, Some(value.0)));
    let removed = asked.unset.into_iter().map(|name| (name, None));
    let changes = VariableChanges::new(set.chain(removed));
    let changes = changes.map_err(|error| ApiError::invalid(error.message))?;
    let session = app.session(&principal, &session).await?;
    let sandbox = app.sandbox(&principal, &session).await?;
    let set = sandbox.set_variables(changes).await;
    set.map_err(SessionError::from)?;
    Ok(StatusCode::NO_CONTENT)
}

fn shown(session: &Session, principal: &Principal) -> Response {
    json(StatusCode::OK, &convert::session(session.info(), principal))
}
