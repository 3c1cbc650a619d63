//! Places under a quota, for sessions that are being made.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use zareba_protocol::SessionId;
use zareba_session::{Owner, SessionInfo, SessionState, Sessions};

type Places = Arc<Mutex<HashMap<Owner, HashSet<SessionId>>>>;

/// Sessions that are being made, by owner.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    /// Held while sessions are counted and a place is taken, so that two do not take the last.
    counting: tokio::sync::Mutex<()>,
    places: Places,
}

/// A place, given back on drop; by then the session is counted by its own record.
#[derive(Debug)]
pub(crate) struct Reservation {
    places: Places,
    owner: Owner,
    session: SessionId,
}

impl Reservations {
    /// Takes a place for a session unless its owner has `limit` already.
    pub(crate) async fn take(
        &self,
        sessions: &Sessions,
        owner: &Owner,
        session: &SessionId,
        limit: usize,
    ) -> Option<Reservation> {
        let _counting = self.counting.lock().await;
        let listed = sessions.list(Some(owner), None, usize::MAX).await;
        let open = listed.into_iter().filter(is_open).map(|info| info.id);
        let mut counted: HashSet<SessionId> = open.collect();
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let reserved = places.entry(owner.clone()).or_default();
        counted.extend(reserved.iter().cloned());
        if counted.len() >= limit {
            return None;
        }
        reserved.insert(session.clone());
        Some(Reservation {
            places: Arc::clone(&self.places),
            owner: owner.clone(),
            session: session.clone(),
        })
    }
}

fn is_open(session: &SessionInfo) -> bool {
    matches!(
        session.state,
        SessionState::Starting | SessionState::Ready | SessionState::Paused
    )
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reserved) = places.get_mut(&self.owner) {
            reserved.remove(&self.session);
            if reserved.is_empty() {
                places.remove(&self.owner);
            }
        }
    }
}
