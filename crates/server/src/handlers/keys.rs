//! Keys and tickets.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use jiff::Timestamp;
use zareba_api::{
    CreateKey, CreateSessionKey, ErrorCode, KeyPage, KeyQuota, KeyScope, Seconds, SecretText,
    Ticket,
};

use zareba_session::{Deed, Owner, SessionError, own_id};

use super::json;
use crate::{
    KeyError,
    app::App,
    auth::{Principal, requester_scope},
    error::ApiError,
    request::{Json, Place},
};

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Json(mut new): Json<CreateKey>,
) -> Result<Response, ApiError> {
    require_rules(&app, new.quota.hosts.as_deref().unwrap_or_default())?;
    if let Some(name) = &new.session {
        let own = own_id(&Owner(new.owner.clone()), name)?;
        match app.sessions.get(&own).await {
            Ok(_) => new.session = Some(own),
            Err(SessionError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let created = app.authenticator.keys().create(new).await?;
    tracing::info!(
        key = created.key.id,
        owner = created.key.owner,
        "a key was made"
    );
    Ok(json(StatusCode::CREATED, &created))
}

/// A rule that cannot be read would let nothing through, which nobody means. One that can lets through
/// itself.
fn require_rules(app: &App, hosts: &[String]) -> Result<(), ApiError> {
    let runtimes = &app.sessions.options().runtimes;
    for host in hosts {
        let own = std::slice::from_ref(host);
        if !runtimes
            .values()
            .all(|runtime| runtime.rules_cover(own, host))
        {
            let shown: String = host.chars().take(64).collect();
            let message = format!(
                "the field `quota.hosts`: `{}` is no rule",
                shown.escape_debug()
            );
            let hint = "name hosts such as `pypi.org`, `*.example.com:8443` or `10.0.0.0/8:5432`";
            return Err(ApiError::invalid(message).with_hint(hint));
        }
    }
    Ok(())
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let keys = app.authenticator.keys().list().await?;
    Ok(json(StatusCode::OK, &KeyPage { keys }))
}

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Place(key): Place<String>,
) -> Result<Response, ApiError> {
    app.authenticator.keys().remove(&key).await?;
    app.shares.forget_key(&key).await;
    tracing::info!(key, "a key was removed");
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn create_for_session(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Json(new): Json<CreateSessionKey>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    principal.require_unbound()?;
    let scope = match new.scope {
        None | Some(KeyScope::Session) => KeyScope::Session,
        Some(KeyScope::Read) => KeyScope::Read,
        Some(KeyScope::Admin) => {
            let message = "the field `scope`: a key for one session is `session` or `read`";
            return Err(ApiError::invalid(message));
        }
    };
    let deed = Deed::CreateKey {
        scope: requester_scope(scope),
    };
    let create = app.authenticator.keys().create(CreateKey {
        owner: session.info().owner.0,
        scope,
        session: Some(session.id().clone()),
        expires_in: sooner(new.expires_in, principal.expires),
        quota: KeyQuota {
            sessions: None,
            ..principal.quota.clone()
        },
    });
    let create = async { Ok(create.await?) };
    let mut created = app.admitted(&principal, &session, deed, create).await?;
    created.key.session = Some(principal.name_of(&session).clone());
    Ok(json(StatusCode::CREATED, &created))
}

/// A key never outlives the one that made it.
fn sooner(asked: Option<Seconds>, expires: Option<Timestamp>) -> Option<Seconds> {
    let left = expires.map(|expires| {
        let left = expires.duration_since(Timestamp::now());
        Seconds::from(std::time::Duration::try_from(left).unwrap_or_default())
    });
    match (asked, left) {
        (Some(asked), Some(left)) => Some(if asked < left { asked } else { left }),
        (one, other) => one.or(other),
    }
}

pub(super) async fn create_ticket(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let life = app.settings.limits.ticket_life;
    let expires = Timestamp::now()
        .saturating_add(life)
        .unwrap_or(Timestamp::MAX);
    let issue = async {
        app.tickets.issue(&principal, session.id()).ok_or_else(|| {
            let message = "too many tickets are valid now";
            ApiError::new(ErrorCode::QuotaExceeded, message).retry_after(life)
        })
    };
    let deed = Deed::CreateTicket;
    let ticket = app.admitted(&principal, &session, deed, issue).await?;
    let ticket = SecretText(ticket);
    Ok(json(StatusCode::CREATED, &Ticket { ticket, expires }))
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> Self {
        let message = error.to_string();
        match error {
            KeyError::Invalid { .. } => Self::invalid(message),
            KeyError::NotFound { .. } => Self::new(ErrorCode::NotFound, message),
            KeyError::TooMany { .. } => Self::new(ErrorCode::QuotaExceeded, message),
            KeyError::Log(error) => error.into(),
        }
    }
}
