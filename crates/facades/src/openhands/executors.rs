//! The action execution API of each session: who may use it, how it is, and then the contract's
//! own routes.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
};
use http::{StatusCode, Uri, request::Parts, uri::PathAndQuery};
use tower::ServiceExt as _;
use zareba_session::{Session, SessionError, SessionId, SessionState};
use zareba_wire::{
    server,
    serving::{TimedBody, linger},
};

use super::{
    OpenHands, Rights,
    answer::{Refusal, has_ended},
    service::SessionService,
};

/// Sessions whose routes are kept ready. Beyond that all are forgotten and made again: a set costs
/// some microseconds, and only its `/server_info` begins anew.
const KEPT_MAX: usize = 4096;

/// The routes of sessions that were used.
#[derive(Debug, Default)]
pub(super) struct Executors {
    routers: Mutex<HashMap<SessionId, Router>>,
    /// Sessions that a client has put to sleep. Those that went to sleep by themselves wake when
    /// something is asked of them, because their client cannot take it that they sleep: it waits
    /// for itself when an action meets that.
    put_to_sleep: Mutex<HashSet<SessionId>>,
}

impl Executors {
    fn get(&self, session: &SessionId, make: impl FnOnce() -> Router) -> Router {
        let mut routers = self.routers.lock().unwrap_or_else(PoisonError::into_inner);
        if routers.len() >= KEPT_MAX && !routers.contains_key(session) {
            routers.clear();
        }
        routers.entry(session.clone()).or_insert_with(make).clone()
    }

    fn forget(&self, session: &SessionId) {
        let mut routers = self.routers.lock().unwrap_or_else(PoisonError::into_inner);
        routers.remove(session);
        self.note_awake(session);
    }

    pub(super) fn note_asleep(&self, session: &SessionId) {
        self.asleep().insert(session.clone());
    }

    pub(super) fn note_awake(&self, session: &SessionId) {
        self.asleep().remove(session);
    }

    fn asleep(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        let asleep = self.put_to_sleep.lock();
        asleep.unwrap_or_else(PoisonError::into_inner)
    }

    fn require_usable(&self, session: &SessionId, state: SessionState) -> Result<(), Refusal> {
        match state {
            SessionState::Ready => Ok(()),
            // To their client this status means that `/resume` helps.
            SessionState::Paused if self.asleep().contains(session) => {
                Err(unavailable("the session is paused: resume it"))
            }
            SessionState::Paused => Ok(()),
            SessionState::Starting => Err(unavailable("the session is starting")),
            SessionState::Failed | SessionState::Lost | SessionState::Closed => {
                Err(Refusal::not_found())
            }
        }
    }
}

/// Answers everything below `/sessions/{id}/`.
pub(super) async fn serve(
    State(facade): State<Arc<OpenHands>>,
    request: Request,
) -> Result<Response, Refusal> {
    let (id, inner) = split(request.uri()).ok_or_else(Refusal::not_found)?;
    let (mut head, body) = request.into_parts();
    let session = facade.enter_session(&id, &head).await?;
    let state = session.info().state;
    if has_ended(state) {
        facade.executors.forget(&id);
    }
    if let Err(refusal) = facade.executors.require_usable(&id, state) {
        // Their client sends its next request on the same connection, which a body that nobody
        // has read would end.
        linger(TimedBody::new(body, facade.settings.limits.body_stall)).await;
        return Err(refusal);
    }
    let router = facade.executors.get(&id, || {
        let service = SessionService::new(facade.sessions.clone(), id.clone());
        server::router(Arc::new(service), facade.settings.limits.clone())
    });
    head.uri = inner;
    match router.oneshot(Request::from_parts(head, body)).await {
        Ok(response) => Ok(response),
        Err(never) => match never {},
    }
}

impl OpenHands {
    /// The session, for whoever has its key or one of the server that may use it.
    async fn enter_session(&self, id: &SessionId, head: &Parts) -> Result<Arc<Session>, Refusal> {
        if self.session_keys.admits(id, &head.headers) {
            return self.sessions.get(id).await.map_err(|error| match error {
                SessionError::NotFound { .. } => Refusal::not_found(),
                error => error.into(),
            });
        }
        let principal = self.keys.principal(head).await?;
        if principal.rights < Rights::Use {
            let detail = "this key does not allow that";
            return Err(Refusal::new(StatusCode::FORBIDDEN, detail));
        }
        self.session(&principal, id).await
    }
}

fn unavailable(detail: &str) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

/// The session's name, and the target as the session's own server would see it.
fn split(uri: &Uri) -> Option<(SessionId, Uri)> {
    let target = uri.path_and_query()?.as_str();
    let rest = target.strip_prefix("/sessions/")?;
    let (name, _) = rest.split_once('/')?;
    let inner: PathAndQuery = rest.get(name.len()..)?.parse().ok()?;
    Some((SessionId::new(name).ok()?, Uri::from(inner)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_behind_the_name_is_the_inner_one() {
        for (target, expected) in [
            ("/sessions/a/alive", Some(("a", "/alive"))),
            (
                "/sessions/a-1/download_files?path=/x%2Fy",
                Some(("a-1", "/download_files?path=/x%2Fy")),
            ),
            ("/sessions/a//alive", Some(("a", "//alive"))),
            ("/sessions/a%2Fb/alive", None),
            ("/sessions/a", None),
            ("/other/a/alive", None),
        ] {
            let found = split(&target.parse().unwrap());
            let found = found.map(|(id, uri)| (id.to_string(), uri.to_string()));
            let expected = expected.map(|(id, uri)| (id.to_owned(), uri.to_owned()));
            assert_eq!(found, expected, "{target}");
        }
    }
}
