//! Actions that are under way, and those who wait for what comes of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;
use zareba_eventlog::{LogError, Record};

use crate::SessionError;

/// What came of an action.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It is recorded.
    Recorded(Arc<Record>),
    /// There is an observation, and no log to record it in.
    Unrecorded(Arc<str>),
}

impl Outcome {
    pub(crate) fn into_result(self) -> Result<Arc<Record>, SessionError> {
        match self {
            Self::Recorded(record) => Ok(record),
            Self::Unrecorded(reason) => Err(LogError::Io {
                source: reason.as_ref().into(),
            }
            .into()),
        }
    }
}

/// Waits for one action.
pub(crate) type Answer = watch::Receiver<Option<Outcome>>;

/// The actions of a session that are recorded and have no observation yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    by_number: Arc<Mutex<HashMap<u64, Answer>>>,
}

impl Pending {
    /// Begins an action. When the value that it gives is dropped, nobody waits for it any more.
    pub(crate) fn begin(&self, action: u64) -> (UnderWay, Answer) {
        let (told, answer) = watch::channel(None);
        self.lock().insert(action, answer.clone());
        let under_way = UnderWay {
            pending: self.clone(),
            action,
            told,
        };
        (under_way, answer)
    }

    /// The way to wait for an action, if that is under way.
    pub(crate) fn answer(&self, action: u64) -> Option<Answer> {
        self.lock().get(&action).cloned()
    }

    /// How many are under way.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Answer>> {
        self.by_number
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// An action that is under way.
#[derive(Debug)]
pub(crate) struct UnderWay {
    pending: Pending,
    pub(crate) action: u64,
    told: watch::Sender<Option<Outcome>>,
}

impl UnderWay {
    /// Tells those who wait.
    pub(crate) fn end(self, outcome: Outcome) {
        self.told.send_replace(Some(outcome));
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.pending.lock().remove(&self.action);
    }
}

/// Waits for what comes of an action; `None` when this server let go of it.
pub(crate) async fn outcome(mut answer: Answer) -> Option<Outcome> {
    let told = answer.wait_for(Option::is_some).await;
    told.ok().and_then(|outcome| outcome.clone())
}
