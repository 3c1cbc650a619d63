//! The one task that watches the time of all sessions.
//!
//! It sleeps until the next session is due. Use of a session only moves its time further away, so
//! that nobody has to wake the task for that: it looks again when the old time has come.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Idle, SessionState, conductor::Conductor, lifecycle::Why, live::Live};

/// A session that was due is looked at again this much later, should it still be there.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// What is due for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// Its life is over.
    Life,
    /// It was idle for too long.
    Idleness,
}

/// Watches until nobody has the sessions any more.
pub(crate) async fn watch(live: Weak<Live>) {
    let Some(changed) = live.upgrade().map(|live| Arc::clone(&live.changed)) else {
        return;
    };
    while let Some(sessions) = live.upgrade().map(|live| live.all()) {
        let next = sessions.into_iter().filter_map(look).min();
        let sleep = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep => {}
            () = changed.notified() => {}
        }
    }
}

/// Does what is due, in a task of its own, and says when to look again.
fn look(session: Arc<Conductor>) -> Option<Instant> {
    let now = Instant::now();
    let (at, due) = next_due(&session)?;
    let at = session.not_due_before().map_or(at, |before| at.max(before));
    if at > now {
        return Some(at);
    }
    let again = now.checked_add(AGAIN_AFTER)?;
    session.set_not_due_before(again);
    tokio::spawn(async move {
        let done = match due {
            Due::Life => session.close(Why::LifeMax).await,
            Due::Idleness => session.end_idleness().await,
        };
        if let Err(error) = done {
            tracing::warn!(session = %session.id, ?due, %error, "cannot do what is due");
        }
    });
    Some(again)
}

fn next_due(session: &Conductor) -> Option<(Instant, Due)> {
    let life = session.ends_at().map(|at| (at, Due::Life));
    let idleness = session.idle_at().and_then(|(at, what)| {
        let counts = match (session.state(), what) {
            (SessionState::Ready, Idle::Pause) => session.can_pause(),
            (SessionState::Ready | SessionState::Paused, Idle::Close) => true,
            _ => false,
        };
        counts.then_some((at, Due::Idleness))
    });
    life.into_iter().chain(idleness).min_by_key(|(at, _)| *at)
}
