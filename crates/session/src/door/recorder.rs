//! [`DeedRecorder`]: a session's log as the place where its deeds are recorded.
//!
//! It does not hold the session, so that a program which runs for long keeps nothing alive but the
//! log. When the session ends, records that are under way are completed first: nothing may come
//! behind the record that says that this was all, or into a log that was removed.

use std::{
    any::Any,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::{runtime::Handle, sync::watch};
use zareba_eventlog::{Appended, EventLog, Patience};
use zareba_protocol::{ErrorClass, SessionId};
use zareba_runtime::RuntimeError;

use super::{BegunDeed, DeedLog, counted::Counted};
use crate::{Mask, StreamMask, aside, event};

/// How long deeds that only look are counted before they are recorded.
const COUNTING: Duration = Duration::from_secs(1);

/// How long the end of a session waits for deeds that are under way in a sandbox that is gone.
const CLOSING_PATIENCE: Duration = Duration::from_secs(10);

/// The kind of note that a deed is recorded as.
const NOTE: &str = "deed";

/// Records the deeds of one session.
pub(crate) struct DeedRecorder {
    this: Weak<Self>,
    log: EventLog,
    session: SessionId,
    mask: Mask,
    counted: Mutex<Counted>,
    closing: watch::Sender<bool>,
    /// Deeds and tasks that will record something.
    open: watch::Sender<usize>,
}

/// Counts as something that will record something until it is dropped.
struct Open(Arc<DeedRecorder>);

impl DeedRecorder {
    pub(crate) fn new(log: EventLog, session: SessionId, mask: Mask) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            log,
            session,
            mask,
            counted: Mutex::default(),
            closing: watch::Sender::new(false),
            open: watch::Sender::new(0),
        })
    }

    /// Has everything recorded that is under way, and takes nothing more.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        let mut open = self.open.subscribe();
        let ended = open.wait_for(|open| *open == 0);
        if tokio::time::timeout(CLOSING_PATIENCE, ended).await.is_err() {
            tracing::warn!(session = %self.session, "deeds are left without the record of their end");
        }
        self.flush().await;
    }

    async fn flush(&self) {
        let entries = self.counted().take();
        for entry in entries {
            self.append(None, entry).await;
        }
    }

    async fn append(&self, cause: Option<u64>, mut entry: Map<String, Value>) {
        self.mask.object(&mut entry);
        let entry = event::note_entry(cause, NOTE, entry);
        aside::record(&self.log, &self.session, entry).await;
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self) -> Option<Open> {
        let this = self.this.upgrade()?;
        self.open.send_modify(|open| *open += 1);
        Some(Open(this))
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        // Dropped behind the end of the runtime there is nothing left that could record.
        if let (Ok(runtime), Some(open)) = (Handle::try_current(), self.hold()) {
            runtime.spawn(async move {
                let _open = open;
                work.await;
            });
        }
    }
}

impl DeedLog for DeedRecorder {
    fn begin(
        &self,
        mut entry: Map<String, Value>,
    ) -> BoxFuture<'_, Result<BegunDeed, RuntimeError>> {
        Box::pin(async move {
            let held = self.hold();
            if *self.closing.borrow() {
                return Err(RuntimeError::Unrecorded {
                    class: ErrorClass::NotFound,
                    source: "the session is closed".into(),
                });
            }
            self.mask.object(&mut entry);
            let entry = event::note_entry(None, NOTE, entry);
            let store = self.log.store();
            let appended = store.append(self.session.clone(), entry, Patience::None);
            match appended.await {
                Ok(Appended::New(record) | Appended::Before(record)) => Ok(BegunDeed {
                    number: record.sequence,
                    held: held.map(|held| Box::new(held) as Box<dyn Any + Send + Sync>),
                }),
                Err(error) => Err(RuntimeError::Unrecorded {
                    class: error.class(),
                    source: Box::new(error),
                }),
            }
        })
    }

    fn record(&self, deed: Option<u64>, entry: Map<String, Value>) -> BoxFuture<'_, ()> {
        Box::pin(self.append(deed, entry))
    }

    fn count(&self, entry: Map<String, Value>, bytes: u64) {
        if *self.closing.borrow() || !self.counted().add(entry, bytes) {
            return;
        }
        let Some(this) = self.this.upgrade() else {
            return;
        };
        let closing = self.closing();
        self.spawn(Box::pin(async move {
            tokio::select! {
                () = tokio::time::sleep(COUNTING) => {}
                () = closing => {}
            }
            this.flush().await;
        }));
    }

    fn keep(&self, work: BoxFuture<'static, ()>) {
        self.spawn(work);
    }

    fn closing(&self) -> BoxFuture<'static, ()> {
        let mut closing = self.closing.subscribe();
        Box::pin(async move {
            // An error means that the recorder is gone, which is the same.
            let _ = closing.wait_for(|closing| *closing).await;
        })
    }

    fn stream(&self) -> Option<StreamMask> {
        Some(self.mask.stream())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open -= 1);
    }
}
