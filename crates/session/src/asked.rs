//! Who walks the path of an action.
//!
//! Whoever waits for an action walks it, which spares the way to another task and back. Should
//! they go away half-way, a task of the session's goes on from there; and what nobody waits for is
//! walked by such a task from the beginning.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use tokio::{runtime::Handle, sync::oneshot};
use tracing::Instrument as _;
use zareba_eventlog::{EntryKind, Record};
use zareba_wire::Owned;

use crate::{
    ActionRequest, SessionError,
    conductor::Conductor,
    path::{Begun, Origin},
    pending::{self, Outcome, Waits},
    tools::{CallGuard, is_call_action},
};

/// An action that was asked for. Once its [`answer`](Self::answer) is waited for, it is recorded
/// and run; dropped then, it goes on all the same. Only a call of a tool is stopped, unless it has
/// a key by which somebody may ask again, or it was [left](Self::leave).
#[derive(Debug)]
pub struct Asked {
    conductor: Arc<Conductor>,
    errand: Errand,
    told: Arc<OnceLock<Told>>,
    /// What the errand has found, if that is not the end of the action.
    known: Option<Known>,
}

/// What is known of an action once it is recorded.
#[derive(Debug)]
struct Told {
    number: u64,
    /// Whoever asked is counted as waiting until they go away.
    _waits: Waits,
    /// What stops a call of a tool then.
    guard: Option<CallGuard>,
}

/// Why somebody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// For what comes of it: without them, the next command on its shell need not wait for it.
    Owner,
    /// To have it done, whether or not they hear of it.
    Follower,
}

/// How far a path was walked.
enum Walked {
    /// To its end.
    Ended(Outcome),
    /// It is left to the server that comes after us.
    Left,
    /// Somebody else walks it, or did.
    Known(Known),
}

/// An action that was there before.
#[derive(Clone, Debug)]
struct Known {
    number: u64,
    /// How to wait for its observation, when it is under way here.
    answer: Option<pending::Answer>,
}

impl Asked {
    /// The number of its record, once there is one.
    pub fn number(&self) -> Option<u64> {
        self.told.get().map(|told| told.number)
    }

    /// Waits for it no longer, while it goes on: somebody will ask for it by its number.
    pub fn leave(self) {
        if let Some(guard) = self.told.get().and_then(|told| told.guard.as_ref()) {
            guard.keep();
        }
    }

    /// Waits for the record of its observation. May be dropped and called again until it has
    /// answered.
    ///
    /// # Errors
    /// Without a [`number`](Self::number), because no action was recorded: state, key, log.
    /// With one, when the log cannot be read or written.
    pub async fn answer(&mut self) -> Result<Arc<Record>, SessionError> {
        // Kept: whoever goes away while another one walks, and comes back, walks no second time.
        let known = match &self.known {
            Some(known) => known,
            None => match (&mut self.errand).await? {
                Walked::Ended(outcome) => return outcome.into_result(),
                Walked::Left => return Err(SessionError::ShuttingDown),
                Walked::Known(known) => self.known.insert(known),
            },
        };
        match &known.answer {
            Some(answer) => outcome(answer.clone()).await,
            None => self.conductor.answer(known.number).await,
        }
    }
}

impl Conductor {
    /// Has an action recorded and run by whoever waits for it.
    pub(crate) fn ask(self: &Arc<Self>, request: ActionRequest, asker: Asker) -> Asked {
        let told = Arc::new(OnceLock::new());
        let span = self.span(&request);
        let walk = Arc::clone(self).walk(request, asker, Arc::clone(&told));
        Asked {
            conductor: Arc::clone(self),
            errand: Errand {
                work: Owned::new(Box::pin(walk.instrument(span))),
                runtime: None,
            },
            told,
            known: None,
        }
    }

    async fn walk(
        self: Arc<Self>,
        request: ActionRequest,
        asker: Asker,
        told: Arc<OnceLock<Told>>,
    ) -> Result<Walked, SessionError> {
        let is_stoppable = request.key.is_none() && is_call_action(&request.action.action);
        // Whoever asks in a loop and is refused at once each time lets others run all the same.
        tokio::task::consume_budget().await;
        let begun = self.begin(request, Origin::Caller).await?;
        let number = begun.record.sequence;
        let waits = match asker {
            Asker::Owner => self.pending.await_own(number),
            Asker::Follower => self.pending.wait(number),
        };
        let _ = told.set(Told {
            number,
            _waits: waits,
            guard: is_stoppable.then(|| CallGuard::new(&self, number)),
        });
        // From now on only theirs: it goes when they do.
        drop(told);
        Ok(match begun.rest {
            None => Walked::Known(Known {
                number,
                answer: begun.answer,
            }),
            Some(rest) => match self.end(rest).await {
                Some(outcome) => Walked::Ended(outcome),
                None => Walked::Left,
            },
        })
    }

    /// Records an action, and has it run by a task of the session's.
    pub(crate) async fn accept(
        self: &Arc<Self>,
        request: ActionRequest,
        origin: Origin,
    ) -> Result<Begun, SessionError> {
        let (accepted, told) = oneshot::channel();
        let span = self.span(&request);
        let session = Arc::clone(self);
        let walk = async move {
            let mut begun = session.begin(request, origin).await;
            let rest = begun.as_mut().ok().and_then(|begun| begun.rest.take());
            let _ = accepted.send(begun);
            if let Some(rest) = rest {
                session.end(rest).await;
            }
        };
        tokio::spawn(walk.instrument(span));
        // The task never goes without an answer, unless it panics or the program ends.
        told.await.unwrap_or(Err(SessionError::ShuttingDown))
    }

    /// Waits for the observation of an action that is recorded.
    pub(crate) async fn answer(&self, action: u64) -> Result<Arc<Record>, SessionError> {
        let _waits = self.pending.wait(action);
        if let Some(answer) = self.pending.answer(action) {
            return outcome(answer).await;
        }
        let store = self.common.log.store();
        if let Some(record) = store.answer(self.id.clone(), action).await? {
            return Ok(record);
        }
        let asked = store.read(self.id.clone(), action, 1).await?;
        if asked.first().map(|record| record.kind) != Some(EntryKind::Action) {
            return Err(SessionError::NoAction {
                session: self.id.clone(),
                sequence: action,
            });
        }
        // Nobody here runs it; perhaps another server does.
        let mut events = self.common.log.subscribe(self.id.clone(), action);
        loop {
            let record = events.next().await?;
            if record.kind == EntryKind::Observation && record.cause == Some(action) {
                return Ok(record);
            }
        }
    }

    fn span(&self, request: &ActionRequest) -> tracing::Span {
        let kind = request.action.action.kind();
        tracing::info_span!("session.run", session = %self.id, action = kind)
    }
}

async fn outcome(answer: pending::Answer) -> Result<Arc<Record>, SessionError> {
    match pending::outcome(answer).await {
        Some(outcome) => outcome.into_result(),
        None => Err(SessionError::ShuttingDown),
    }
}

/// The way of an action along its path.
type Walk = dyn Future<Output = Result<Walked, SessionError>> + Send;

/// Work that goes on in a task of its own when whoever polls it goes away.
struct Errand {
    work: Owned<Walk>,
    /// Where it goes on; nowhere as long as it was never polled, and so has not begun.
    runtime: Option<Handle>,
}

impl Future for Errand {
    type Output = Result<Walked, SessionError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.runtime.is_none() {
            self.runtime = Handle::try_current().ok();
        }
        let polled = self.work.poll(context);
        polled.unwrap_or(Poll::Ready(Err(SessionError::ShuttingDown)))
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        if let (Some(work), Some(runtime)) = (self.work.take(), &self.runtime) {
            runtime.spawn(work);
        }
    }
}

impl std::fmt::Debug for Errand {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Errand").finish_non_exhaustive()
    }
}
