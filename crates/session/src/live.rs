//! The sessions that run, or may run again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use zareba_protocol::SessionId;

use crate::{Owner, SessionError, SessionsOptions, conductor::Conductor};

/// All sessions of a server that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Live {
    sessions: Mutex<BTreeMap<SessionId, Arc<Conductor>>>,
    /// Told when a session comes or when nobody is left here.
    pub(crate) changed: Arc<Notify>,
}

impl Live {
    /// Takes one in, if there is room.
    pub(crate) fn insert(
        &self,
        session: &Arc<Conductor>,
        options: &SessionsOptions,
    ) -> Result<(), SessionError> {
        let mut sessions = self.lock();
        if sessions.contains_key(&session.id) {
            let session = session.id.clone();
            return Err(SessionError::Exists { session });
        }
        let too_many = |whose: &str, max: usize| SessionError::TooMany {
            message: format!("{whose} {max} sessions, which is the limit; close one first"),
        };
        if sessions.len() >= options.sessions_max {
            return Err(too_many("the server has", options.sessions_max));
        }
        let owner = &session.facts.owner;
        if count(&sessions, owner) >= options.owner_sessions_max {
            return Err(too_many("you have", options.owner_sessions_max));
        }
        sessions.insert(session.id.clone(), Arc::clone(session));
        self.changed.notify_one();
        Ok(())
    }

    /// Takes in one that was there before this server, whatever the limits are now.
    pub(crate) fn restore(&self, session: &Arc<Conductor>) {
        self.lock().insert(session.id.clone(), Arc::clone(session));
        self.changed.notify_one();
    }

    pub(crate) fn remove(&self, session: &SessionId) {
        self.lock().remove(session);
    }

    pub(crate) fn get(&self, session: &SessionId) -> Option<Arc<Conductor>> {
        self.lock().get(session).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Conductor>> {
        self.lock().values().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Conductor>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(sessions: &BTreeMap<SessionId, Arc<Conductor>>, owner: &Owner) -> usize {
    let theirs = |session: &&Arc<Conductor>| session.facts.owner == *owner;
    sessions.values().filter(theirs).count()
}

impl Drop for Live {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}
