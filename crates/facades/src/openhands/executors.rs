//! The action execution API of each session: who may use it, how it is, and then the contract's
//! own routes.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::{Body, HttpBody as _},
    extract::{Request, State},
    response::Response,
};
use http::{Method, StatusCode, Uri, request::Parts, uri::PathAndQuery};
use tower::ServiceExt as _;
use tracing::Instrument as _;
use zareba_session::{Session, SessionError, SessionId, SessionState};
use zareba_wire::{
    server,
    serving::{TimedBody, linger},
};

use super::{
    Denied, OpenHands, Principal, Reserved, Rights,
    access::Offered,
    answer::{Refusal, has_ended},
    service::{SessionService, on_behalf_of},
};

/// Sessions whose routes are kept ready. Beyond that all are forgotten and made again: a set costs
/// some microseconds, and only its `/server_info` begins anew.
const KEPT_MAX: usize = 4096;
/// Notes of sleeping sessions are looked through when there are twice as many as last time, and
/// not before there are twice as many as this.
const ASLEEP_MIN: usize = 32;

/// The routes of sessions that were used.
#[derive(Debug, Default)]
pub(super) struct Executors {
    routers: Mutex<HashMap<SessionId, Router>>,
    /// Sessions that a client has put to sleep. Those that went to sleep by themselves wake when
    /// something is asked of them, because their client cannot take it that they sleep: it waits
    /// for itself when an action meets that.
    put_to_sleep: Mutex<Asleep>,
}

/// Sessions that a client has put to sleep, and perhaps some that are no more.
#[derive(Debug, Default)]
struct Asleep {
    noted: HashSet<SessionId>,
    /// How many there were when they were last looked at.
    confirmed: usize,
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

    /// Notes one, and says which there are if it is time to look for those that are no more.
    fn note_asleep(&self, session: &SessionId) -> Option<Vec<SessionId>> {
        let mut asleep = self.asleep();
        asleep.noted.insert(session.clone());
        let are_many = asleep.noted.len() > 2 * asleep.confirmed.max(ASLEEP_MIN);
        are_many.then(|| asleep.noted.iter().cloned().collect())
    }

    /// All that are noted now were looked at.
    fn confirm_asleep(&self) {
        let mut asleep = self.asleep();
        asleep.confirmed = asleep.noted.len();
    }

    pub(super) fn note_awake(&self, session: &SessionId) {
        self.asleep().noted.remove(session);
    }

    fn asleep(&self) -> MutexGuard<'_, Asleep> {
        let asleep = self.put_to_sleep.lock();
        asleep.unwrap_or_else(PoisonError::into_inner)
    }

    fn require_usable(&self, session: &SessionId, state: SessionState) -> Result<(), Refusal> {
        match state {
            SessionState::Ready => Ok(()),
            // To their client this status means that `/resume` helps.
            SessionState::Paused if self.asleep().noted.contains(session) => {
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
    let (session, principal) = facade.enter_session(&id, &head).await?;
    let open = facade.keys.open(&principal)?;
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
        let service = SessionService::new(
            facade.sessions.clone(),
            id.clone(),
            facade.settings.tools.as_ref(),
        );
        server::router(Arc::new(service), facade.settings.limits.clone())
    });
    let room = match announced_bytes(&head, &inner, &body, facade.settings.limits.json_bytes) {
        0 => None,
        bytes => Some(facade.keys.take_body(&principal, bytes)?),
    };
    let is_action = head.method == Method::POST && inner.path() == "/execute_action";
    head.uri = inner;
    let request = Request::from_parts(head, body);
    let mut response = if is_action {
        facade.keys.count_action(&principal)?;
        let answering = on_behalf_of(&principal, router.oneshot(request));
        act(answering, (room, open.clone())).await?
    } else {
        answered(on_behalf_of(&principal, router.oneshot(request)).await)
    };
    response.extensions_mut().insert(open);
    Ok(response)
}

/// Runs an action in a task of its own: it goes on when its client goes away, and counts until
/// it has its observation.
async fn act(
    answering: impl Future<Output = Result<Response, Infallible>> + Send + 'static,
    held: (Option<Reserved>, Reserved),
) -> Result<Response, Refusal> {
    let acting = async move {
        let response = answered(answering.await);
        drop(held);
        response
    };
    let acted = tokio::spawn(acting.in_current_span()).await;
    acted.map_err(|_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the action failed"))
}

fn answered(result: Result<Response, Infallible>) -> Response {
    match result {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// What a body may come to that is read as a whole; those of files pass through as streams, and
/// one that is announced as too large is refused unread.
fn announced_bytes(head: &Parts, inner: &Uri, body: &Body, most: usize) -> usize {
    if head.method == Method::PUT || inner.path() == "/upload_file" || body.is_end_stream() {
        return 0;
    }
    let announced = body.size_hint().exact();
    let bytes = announced.map_or(most, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if bytes > most { 0 } else { bytes }
}

impl OpenHands {
    /// The session, for whoever has its key or one of the server that may use it.
    async fn enter_session(
        &self,
        id: &SessionId,
        head: &Parts,
    ) -> Result<(Arc<Session>, Principal), Refusal> {
        if let Some(entered) = self.enter_with_its_key(id, head).await? {
            return Ok(entered);
        }
        let principal = self.keys.principal(head).await?;
        if principal.rights < Rights::Use {
            let detail = "this key does not allow that";
            return Err(Refusal::new(StatusCode::FORBIDDEN, detail));
        }
        let session = self.session(&principal, id).await?;
        Ok((session, principal))
    }

    /// The session, for whoever has its key. That is as good as the key it was given out for:
    /// removed, expired or for something else, it is a wrong one.
    async fn enter_with_its_key(
        &self,
        id: &SessionId,
        head: &Parts,
    ) -> Result<Option<(Arc<Session>, Principal)>, Refusal> {
        let Some(offered) = Offered::by(&head.headers) else {
            return Ok(None);
        };
        let session = match self.sessions.get(id).await {
            Ok(session) => session,
            Err(SessionError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let info = session.info();
        if !self.session_keys.admits(&info, &offered) {
            return Ok(None);
        }
        match self.keys.holder(offered.holder).await {
            Ok(holder) if holder.rights >= Rights::Use && holder.may_use(&info) => {
                Ok(Some((session, holder)))
            }
            Ok(_) | Err(Denied::WrongKey) => Ok(None),
            Err(denied) => Err(denied.into()),
        }
    }

    /// Notes that a client has put a session to sleep, and forgets those that have ended or woken
    /// by other ways when there are many.
    pub(super) async fn note_asleep(&self, session: &SessionId) {
        let Some(noted) = self.executors.note_asleep(session) else {
            return;
        };
        for id in noted {
            let found = self.sessions.get(&id).await;
            if !found.is_ok_and(|session| session.info().state == SessionState::Paused) {
                self.executors.note_awake(&id);
            }
        }
        self.executors.confirm_asleep();
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
    fn notes_of_sleep_are_looked_through_before_they_are_many() {
        let executors = Executors::default();
        let id = |number: usize| SessionId::new(format!("s{number}")).unwrap();
        for number in 0..2 * ASLEEP_MIN {
            assert_eq!(executors.note_asleep(&id(number)), None);
        }
        let noted = executors.note_asleep(&id(2 * ASLEEP_MIN)).unwrap();
        assert_eq!(noted.len(), 2 * ASLEEP_MIN + 1);
        for id in &noted[1..] {
            executors.note_awake(id);
        }
        executors.confirm_asleep();
        assert_eq!(executors.note_asleep(&id(1000)), None);
        assert!(executors.asleep().noted.len() <= 2);
    }

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
