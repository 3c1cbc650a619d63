//! The sessions that run, or may run again, and how many there are of all.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use zareba_protocol::SessionId;

use crate::{Owner, SessionError, SessionState, SessionsOptions, conductor::Conductor};

/// Failed sessions of one owner that are kept; beyond these the oldest goes.
const FAILED_MAX: usize = 100;

/// All sessions of a server that have not ended, and the numbers of those that have.
#[derive(Debug, Default)]
pub(crate) struct Live {
    sessions: Mutex<Known>,
    /// Told when a session comes or when nobody is left here.
    pub(crate) changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Known {
    open: BTreeMap<SessionId, Arc<Conductor>>,
    /// How many have ended, by how they did.
    ended: BTreeMap<SessionState, usize>,
    /// Those that could not be started, oldest first.
    failed: BTreeMap<Owner, VecDeque<SessionId>>,
}

impl Live {
    /// Takes one in, if there is room. Looking and taking is one step: however many come at once,
    /// a limit holds.
    pub(crate) fn insert(
        &self,
        session: &Arc<Conductor>,
        options: &SessionsOptions,
        quota: Option<usize>,
    ) -> Result<(), SessionError> {
        let mut known = self.lock();
        if known.open.contains_key(&session.id) {
            let session = session.id.clone();
            return Err(SessionError::Exists { session });
        }
        let too_many = |whose: &str, max: usize| SessionError::TooMany {
            message: format!("{whose} {max} sessions, which is the limit; close one first"),
        };
        if known.open.len() >= options.sessions_max {
            return Err(too_many("the server has", options.sessions_max));
        }
        let max = quota.map_or(options.owner_sessions_max, |quota| {
            quota.min(options.owner_sessions_max)
        });
        if known.open_count(&session.facts.owner) >= max {
            return Err(too_many("you have", max));
        }
        known.open.insert(session.id.clone(), Arc::clone(session));
        self.changed.notify_one();
        Ok(())
    }

    /// Takes in one that was there before this server, whatever the limits are now.
    pub(crate) fn restore(&self, session: &Arc<Conductor>) {
        let mut known = self.lock();
        known.open.insert(session.id.clone(), Arc::clone(session));
        self.changed.notify_one();
    }

    /// Forgets one that was never begun.
    pub(crate) fn withdraw(&self, session: &SessionId) {
        self.lock().open.remove(session);
    }

    /// Lets go of one that has ended. Returns failed ones that are not worth keeping any more.
    pub(crate) fn end(
        &self,
        session: &SessionId,
        owner: &Owner,
        state: SessionState,
    ) -> Vec<SessionId> {
        let mut known = self.lock();
        known.open.remove(session);
        known.count_ended(session, owner, state)
    }

    /// Changes how one that has ended is counted; `None` when it is removed.
    pub(crate) fn recount(
        &self,
        session: &SessionId,
        owner: &Owner,
        before: SessionState,
        now: Option<SessionState>,
    ) {
        let mut known = self.lock();
        if let Some(count) = known.ended.get_mut(&before) {
            *count = count.saturating_sub(1);
        }
        if let Some(failed) = known.failed.get_mut(owner) {
            failed.retain(|failed| failed != session);
            if failed.is_empty() {
                known.failed.remove(owner);
            }
        }
        if let Some(now) = now {
            *known.ended.entry(now).or_default() += 1;
        }
    }

    pub(crate) fn get(&self, session: &SessionId) -> Option<Arc<Conductor>> {
        self.lock().open.get(session).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Conductor>> {
        self.lock().open.values().cloned().collect()
    }

    /// How many there are, by how they are.
    pub(crate) fn counts(&self) -> BTreeMap<SessionState, usize> {
        let known = self.lock();
        let mut counts = known.ended.clone();
        for session in known.open.values() {
            *counts.entry(session.state()).or_default() += 1;
        }
        counts.retain(|_, count| *count > 0);
        counts
    }

    /// How many an owner has that have not ended.
    pub(crate) fn open_count(&self, owner: &Owner) -> usize {
        self.lock().open_count(owner)
    }

    pub(crate) fn clear(&self) {
        self.lock().open.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn open_count(&self, owner: &Owner) -> usize {
        let theirs = |session: &&Arc<Conductor>| session.facts.owner == *owner;
        self.open.values().filter(theirs).count()
    }

    fn count_ended(
        &mut self,
        session: &SessionId,
        owner: &Owner,
        state: SessionState,
    ) -> Vec<SessionId> {
        *self.ended.entry(state).or_default() += 1;
        if state != SessionState::Failed {
            return Vec::new();
        }
        let failed = self.failed.entry(owner.clone()).or_default();
        failed.push_back(session.clone());
        let outdated = failed.len().saturating_sub(FAILED_MAX);
        failed.drain(..outdated).collect()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_failed_sessions_the_oldest_go() {
        let live = Live::default();
        let (one, other) = (Owner("one".to_owned()), Owner("other".to_owned()));
        let id = |number: usize| SessionId::new(format!("s{number}")).unwrap();
        for number in 0..FAILED_MAX {
            assert_eq!(live.end(&id(number), &one, SessionState::Failed), []);
        }
        assert_eq!(live.end(&id(1000), &other, SessionState::Failed), []);
        assert_eq!(live.end(&id(1001), &one, SessionState::Closed), []);
        assert_eq!(live.end(&id(1002), &one, SessionState::Failed), [id(0)]);
        live.recount(&id(0), &one, SessionState::Failed, None);
        live.recount(
            &id(5),
            &one,
            SessionState::Failed,
            Some(SessionState::Closed),
        );
        let expected = [
            (SessionState::Failed, FAILED_MAX),
            (SessionState::Closed, 2),
        ];
        assert_eq!(live.counts(), BTreeMap::from(expected));
        assert_eq!(live.end(&id(1003), &one, SessionState::Failed), []);
    }
}
