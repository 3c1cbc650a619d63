//! What all handlers share.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::watch;
use zareba_api::{Access, ErrorCode, KeyScope};
use zareba_protocol::SessionId;
use zareba_session::{
    AdmittedSandbox, Deed, Session, SessionError, SessionState, Sessions, Surface,
};

use crate::{
    auth::{Authenticator, Principal},
    error::ApiError,
    ports::Shares,
    settings::ServerSettings,
    telemetry::Telemetry,
    tickets::Tickets,
    usage::Usage,
};

/// What is left of draining when waiting requests are answered that they must ask again.
const DRAIN_REST: Duration = Duration::from_secs(1);

/// What all handlers share.
pub(crate) struct App {
    pub(crate) settings: ServerSettings,
    pub(crate) sessions: Sessions,
    pub(crate) authenticator: Authenticator,
    pub(crate) tickets: Tickets,
    /// Ports that are shared.
    pub(crate) shares: Shares,
    pub(crate) telemetry: Telemetry,
    pub(crate) started: Instant,
    pub(crate) extensions: Vec<&'static str>,
    draining: watch::Receiver<bool>,
}

impl App {
    pub(crate) fn new(
        settings: ServerSettings,
        sessions: Sessions,
        authenticator: Authenticator,
        telemetry: Telemetry,
        shares: Shares,
        extensions: Vec<&'static str>,
        draining: watch::Receiver<bool>,
    ) -> Self {
        Self {
            sessions,
            authenticator,
            tickets: Tickets::new(settings.limits.ticket_life),
            shares,
            telemetry,
            started: Instant::now(),
            extensions,
            draining,
            settings,
        }
    }

    /// The session with a name, for a client that may see it.
    pub(crate) async fn session(
        &self,
        principal: &Principal,
        name: &str,
    ) -> Result<Arc<Session>, ApiError> {
        session(&self.sessions, principal, name).await
    }

    /// The sandbox of a session, awake, in the hands of this client. To wake it is more than to
    /// look: that is not for keys that may only read.
    pub(crate) async fn sandbox(
        &self,
        principal: &Principal,
        session: &Session,
    ) -> Result<AdmittedSandbox, ApiError> {
        if !may_enter(principal, session.info().state) {
            let message = format!("the session `{}` is paused", session.id());
            let hint = "resume it with a key of the scope `session`";
            return Err(ApiError::new(ErrorCode::Conflict, message).with_hint(hint));
        }
        Ok(session.access(principal.requester(Surface::Api)).await?)
    }

    /// Does for a client what its session must judge and record and no sandbox does, such as a key.
    pub(crate) async fn admitted<T>(
        &self,
        principal: &Principal,
        session: &Session,
        deed: Deed,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let door = session.door(principal.requester(Surface::Api));
        let word = |error: &ApiError| error.code.class().as_str();
        door.carry_out(deed, word, work).await
    }

    /// What owners share.
    pub(crate) fn usage(&self) -> &Usage {
        self.authenticator.usage()
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Ready when the server begins to end.
    pub(crate) async fn draining(&self) {
        let mut draining = self.draining.clone();
        // An error means that the server is gone, which is the same.
        drop(draining.wait_for(|draining| *draining).await);
    }

    /// Ready when a request has waited long enough, or the server ends and the client must be
    /// told before it does.
    pub(crate) async fn waited(&self, patience: Duration) {
        let drained = async {
            self.draining().await;
            let rest = self.settings.limits.drain.saturating_sub(DRAIN_REST);
            tokio::time::sleep(rest).await;
        };
        tokio::select! {
            () = tokio::time::sleep(patience.min(self.settings.limits.wait)) => {}
            () = drained => {}
        }
    }
}

/// The place where the server's own API and CAMEL's decide who sees which session (HS-9): what
/// belongs to another owner does not exist. OpenHands' API names sessions by ids alone and keeps the
/// same rule in `facades`, `OpenHands::session`.
pub(crate) async fn session(
    sessions: &Sessions,
    principal: &Principal,
    name: &str,
) -> Result<Arc<Session>, ApiError> {
    let not_found = || ApiError::no_session(name);
    let name = SessionId::new(name).map_err(|_| not_found())?;
    let is_seen = |session: &Arc<Session>| principal.may_see(&session.info());
    let ids = principal.ids_of(&name)?;
    // Open ones first: to find them, no database is asked.
    let open = ids.iter().filter_map(|id| sessions.open(id));
    if let Some(session) = open.into_iter().find(is_seen) {
        return Ok(session);
    }
    for id in &ids {
        match sessions.get(id).await {
            Ok(session) if is_seen(&session) => return Ok(session),
            Ok(_) | Err(SessionError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let named = match principal.scope {
        KeyScope::Admin => sessions.named(&name).await?,
        KeyScope::Session | KeyScope::Read => None,
    };
    named.filter(is_seen).ok_or_else(not_found)
}

/// Whether a session may be used as it is, or woken for it.
fn may_enter(principal: &Principal, state: SessionState) -> bool {
    state != SessionState::Paused || principal.may(Access::Session)
}

#[cfg(test)]
mod tests {
    use zareba_api::KeyQuota;
    use zareba_session::Owner;

    use super::*;

    #[test]
    fn a_key_that_may_only_read_wakes_nothing() {
        let with = |scope| Principal {
            key: "k".to_owned(),
            owner: Owner("ann".to_owned()),
            scope,
            session: None,
            quota: KeyQuota::default(),
            expires: None,
            claimed: None,
        };
        assert!(may_enter(&with(KeyScope::Read), SessionState::Ready));
        assert!(!may_enter(&with(KeyScope::Read), SessionState::Paused));
        assert!(may_enter(&with(KeyScope::Session), SessionState::Paused));
        assert!(may_enter(&with(KeyScope::Admin), SessionState::Paused));
    }
}
