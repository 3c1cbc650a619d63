//! Where each session's log ends, for those who wait for more.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use zareba_protocol::SessionId;

/// Below this many it is not worth looking for entries that nobody watches.
const PRUNE_MIN: usize = 64;

/// One channel for each session that somebody watches.
#[derive(Debug, Default)]
pub(crate) struct Ends(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    senders: HashMap<SessionId, watch::Sender<u64>>,
    prune_at: usize,
    is_closed: bool,
}

impl Ends {
    /// A receiver, not yet told anything; nothing once the log is closed.
    pub(crate) fn watch(&self, session: &SessionId) -> Option<watch::Receiver<u64>> {
        let mut state = self.state();
        if state.is_closed {
            return None;
        }
        if state.senders.len() >= state.prune_at.max(PRUNE_MIN) {
            state
                .senders
                .retain(|_, sender| sender.receiver_count() > 0);
            state.prune_at = state.senders.len() * 2;
        }
        let sender = state.senders.entry(session.clone()).or_default();
        Some(sender.subscribe())
    }

    /// Tells that a log reaches to at least this number. Late news changes nothing.
    pub(crate) fn advance(&self, session: &SessionId, next: u64) {
        if let Some(sender) = self.state().senders.get(session) {
            sender.send_if_modified(|end| {
                let is_news = next > *end;
                *end = next.max(*end);
                is_news
            });
        }
    }

    /// Whose ends are watched.
    pub(crate) fn watched(&self) -> Vec<SessionId> {
        self.state().senders.keys().cloned().collect()
    }

    /// Ends the wait of everybody who watches a session that is no more.
    pub(crate) fn remove(&self, session: &SessionId) {
        self.state().senders.remove(session);
    }

    /// The same for one that has no records now: only if it had some, it is no more.
    pub(crate) fn remove_begun(&self, session: &SessionId) {
        let mut state = self.state();
        let has_begun = |sender: &watch::Sender<u64>| *sender.borrow() > 0;
        if state.senders.get(session).is_some_and(has_begun) {
            state.senders.remove(session);
        }
    }

    /// Ends everybody's wait.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.senders.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
