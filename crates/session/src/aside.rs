//! Recording what happens to a session itself, beside the path of its actions.

use futures_util::FutureExt as _;
use serde_json::Map;
use zareba_eventlog::{Entry, EventLog, Health, Patience};
use zareba_protocol::{RuntimeStatus, SessionId};

use crate::{conductor::Conductor, event};

impl Conductor {
    /// Takes a status, and records it.
    pub(crate) async fn record_status(&self, status: RuntimeStatus, message: &str) {
        self.set_status(status, message);
        let entry = event::status_entry(status, message, self.state(), &self.mask);
        self.record_aside(entry).await;
    }

    /// Records something about the session itself.
    pub(crate) async fn record_note(&self, note: &str) {
        self.record_aside(event::note_entry(None, note, Map::new()))
            .await;
    }

    /// Records what no caller waits for; see [`record`].
    pub(crate) async fn record_aside(&self, entry: Entry) {
        record(&self.common.log, &self.id, entry).await;
    }
}

/// Records what no caller waits for, now or as soon as the log can be written. When that fails,
/// the log of the program is told.
pub(crate) async fn record(log: &EventLog, session: &SessionId, entry: Entry) {
    let (log, session) = (log.clone(), session.clone());
    let mut health = log.store().health();
    let mut recording = Box::pin(async move {
        let store = log.store();
        let recorded = store.append(session.clone(), entry, Patience::Kept).await;
        if let Err(error) = recorded {
            tracing::error!(%session, %error, "cannot record an event");
        }
    });
    // Once it was polled, it has its place in the log's own queue.
    if (&mut recording).now_or_never().is_some() {
        return;
    }
    tokio::select! {
        biased;
        _ = tokio::spawn(recording) => {}
        _ = health.wait_for(|health| *health != Health::Durable) => {}
    }
}
