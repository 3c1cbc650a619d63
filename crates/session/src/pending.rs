//! Actions that are under way, and those who wait for what comes of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::watch;
use zareba_eventlog::{LogError, Record};
use zareba_protocol::ActionEvent;

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
    by_number: Arc<Mutex<HashMap<u64, Known>>>,
}

/// What is known of one that is under way.
#[derive(Debug)]
struct Known {
    answer: Answer,
    /// As it was asked for, by a caller of this server.
    action: Option<Arc<ActionEvent>>,
    /// How many wait for it.
    waiting: usize,
    /// Somebody has asked for it and waited.
    was_awaited: bool,
    /// Nobody wants it any more.
    stop: watch::Sender<bool>,
}

/// Counts as waiting for an action until it is dropped.
#[derive(Debug)]
pub(crate) struct Waits {
    pending: Pending,
    action: u64,
    /// Not so for one that somebody else has recorded and is about to begin.
    is_counted: bool,
}

impl Pending {
    /// Begins an action. When the value that it gives is dropped, nobody waits for it any more.
    pub(crate) fn begin(
        &self,
        number: u64,
        action: Option<Arc<ActionEvent>>,
    ) -> (UnderWay, Answer) {
        let (told, answer) = watch::channel(None);
        let known = Known {
            answer: answer.clone(),
            action,
            waiting: 0,
            was_awaited: false,
            stop: watch::Sender::new(false),
        };
        self.lock().insert(number, known);
        let under_way = UnderWay {
            pending: self.clone(),
            action: number,
            told,
        };
        (under_way, answer)
    }

    /// The way to wait for an action, if that is under way.
    pub(crate) fn answer(&self, action: u64) -> Option<Answer> {
        self.lock().get(&action).map(|known| known.answer.clone())
    }

    /// Counts somebody in who has asked for an action and waits for what comes of it.
    pub(crate) fn await_own(&self, action: u64) -> Waits {
        if let Some(known) = self.lock().get_mut(&action) {
            known.was_awaited = true;
        }
        self.wait(action)
    }

    /// Counts somebody in who waits for an action, whoever has asked for it.
    pub(crate) fn wait(&self, action: u64) -> Waits {
        let is_counted = match self.lock().get_mut(&action) {
            Some(known) => {
                known.waiting += 1;
                true
            }
            None => false,
        };
        Waits {
            pending: self.clone(),
            action,
            is_counted,
        }
    }

    /// The first of those that were asked for before a number and that `is_meant`, if its askers
    /// have waited for it and went away. What was only handed in is not meant for anybody to wait.
    pub(crate) fn abandoned(
        &self,
        before: u64,
        is_meant: impl Fn(&ActionEvent) -> bool,
    ) -> Option<u64> {
        let known = self.lock();
        let (number, first) = known
            .iter()
            .filter(|(number, known)| {
                **number < before && known.action.as_deref().is_some_and(&is_meant)
            })
            .min_by_key(|(number, _)| **number)?;
        (first.was_awaited && first.waiting == 0).then_some(*number)
    }

    /// Says that nobody wants an action any more. Those that can be stopped are.
    pub(crate) fn stop(&self, action: u64) {
        if let Some(known) = self.lock().get(&action) {
            known.stop.send_replace(true);
        }
    }

    /// Waits until nobody wants an action any more, perhaps for ever.
    pub(crate) async fn stopped(&self, action: u64) {
        let stop = self.lock().get(&action).map(|it| it.stop.subscribe());
        let is_stopped = match stop {
            Some(mut stop) => stop.wait_for(|stop| *stop).await.is_ok(),
            None => false,
        };
        if !is_stopped {
            std::future::pending().await
        }
    }

    /// How many are under way.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Known>> {
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

impl Drop for Waits {
    fn drop(&mut self) {
        if self.is_counted
            && let Some(known) = self.pending.lock().get_mut(&self.action)
        {
            known.waiting -= 1;
        }
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
