//! The task that owns a sandbox: notices its end, and makes one.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use zareba_protocol::RuntimeStatus;
use zareba_runtime::{
    Statuses,
    life::{Farewell, Keeper},
};

use crate::{
    EngineError, ExitReason, Lifetime, ending::Condition, record::Record, remains::Remains,
    watcher::Notice,
};

/// What is known of how a sandbox goes on, by its task and its handle.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    paused: AtomicBool,
    ended: OnceLock<ExitReason>,
    /// Why it could not be removed.
    unremoved: Mutex<Option<EngineError>>,
}

impl Fate {
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    pub(crate) fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::Release);
    }

    /// How it has ended by itself.
    pub(crate) fn ended(&self) -> Option<ExitReason> {
        self.ended.get().copied()
    }

    /// Told once.
    pub(crate) fn take_failure(&self) -> Option<EngineError> {
        let mut unremoved = self
            .unremoved
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        unremoved.take()
    }
}

/// What a sandbox's task owns.
#[derive(Debug)]
pub(crate) struct Charge {
    pub(crate) remains: Remains,
    pub(crate) container: String,
    pub(crate) notice: Notice,
    pub(crate) fate: Arc<Fate>,
    pub(crate) statuses: Arc<Statuses>,
}

/// Owns a sandbox until it is closed, or left running.
pub(crate) async fn keep(mut keeper: Keeper, mut charge: Charge) {
    let farewell = loop {
        tokio::select! {
            biased;
            farewell = keeper.farewell() => break farewell,
            () = charge.notice.stirred() => {
                if charge.look().await {
                    break keeper.farewell().await;
                }
            }
        }
    };
    if farewell == Farewell::Leave {
        // With it goes our lock: whoever finds it next may have it.
        return;
    }
    keeper.emptied().await;
    charge.close().await;
}

impl Charge {
    /// Finds out how it is; true when it has ended.
    async fn look(&self) -> bool {
        let Ok(found) = self.remains.engine.find(&self.container).await else {
            // The Engine is away. Everybody is stirred when it comes back.
            return false;
        };
        match Condition::of(found.as_ref()) {
            Condition::New | Condition::Running => self.fate.set_paused(false),
            Condition::Paused => self.fate.set_paused(true),
            Condition::Ended(reason) => {
                let _ = self.fate.ended.set(reason);
                if self.statuses.current() == RuntimeStatus::Ready {
                    let message = format!("The executor has ended unexpectedly: {reason}.");
                    self.statuses
                        .change(RuntimeStatus::RuntimeDisconnected, message);
                }
                return true;
            }
        }
        false
    }

    async fn close(self) {
        let path = self.remains.directory.path().to_owned();
        if let Err(error) = self.remains.remove().await {
            tracing::warn!(%error, "a sandbox cannot be removed, and is left to the next sweep");
            forsake(&path);
            *self
                .fate
                .unremoved
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
        self.statuses
            .change(RuntimeStatus::Stopped, "Runtime stopped.");
    }
}

/// Writes down that nobody wants it any more.
fn forsake(directory: &std::path::Path) {
    if let Some(mut record) = Record::read(directory) {
        record.lifetime = Lifetime::WithUs;
        if let Err(error) = record.write(directory) {
            tracing::warn!(%error, "a sandbox that was closed is still written down as kept");
        }
    }
}
