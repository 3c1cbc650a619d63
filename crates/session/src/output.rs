//! The output of an action while it runs, and its end before its time.
//!
//! The executor keeps it and is asked for more when the reader has room, so that a slow reader
//! holds up nothing. Not recorded: what an agent is told of the output is in the observation.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::json;
use zareba_eventlog::EntryKind;
use zareba_runtime::RuntimeError;
use zareba_wire::output::{
    OUTPUT_WAIT_MAX, OutputPiece, OutputRequest, OutputState, StopMeans, StopRequest,
};

use crate::{Deed, Door, Requester, SessionError, conductor::Conductor, event};

/// Reads what an action writes to its terminal, as it comes, until the action has its observation.
pub struct ActionOutput {
    session: Arc<Conductor>,
    name: String,
    /// Bytes that were read or skipped.
    offset: u64,
    skipped: u64,
    /// Ends with the action's observation.
    answered: BoxFuture<'static, ()>,
    progress: Progress,
    /// How long to wait for more.
    patience: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// There may be more.
    Reading,
    /// The action has its observation, and some output may be left.
    Answered,
    /// Everything was read.
    Whole,
    /// The executor does not have the output, or no longer.
    Lost,
}

impl ActionOutput {
    /// Reads the output of a recorded action from its beginning.
    pub(crate) async fn of(session: Arc<Conductor>, action: u64) -> Result<Self, SessionError> {
        let store = session.common.log.store();
        let asked = store.read(session.id.clone(), action, 1).await?;
        if asked.first().map(|record| record.kind) != Some(EntryKind::Action) {
            let (session, sequence) = (session.id.clone(), action);
            return Err(SessionError::NoAction { session, sequence });
        }
        let waiting = Arc::clone(&session);
        let answered = async move {
            // Without an answer another server has the action, and its executor knows the rest.
            let _ = waiting.answer(action).await;
        };
        Ok(Self {
            name: session.once_name(action),
            session,
            offset: 0,
            skipped: 0,
            answered: answered.boxed(),
            progress: Progress::Reading,
            patience: OUTPUT_WAIT_MAX,
        })
    }

    /// The next bytes; `None` at the end. May be dropped and called again.
    ///
    /// # Errors
    /// When the sandbox cannot be asked. The output can be read again from its beginning.
    pub async fn next(&mut self) -> Result<Option<Bytes>, SessionError> {
        while matches!(self.progress, Progress::Reading | Progress::Answered) {
            let wait = match self.progress {
                Progress::Reading => self.patience,
                _ => Duration::ZERO,
            };
            let asked = OutputRequest {
                action: self.name.clone(),
                from: self.offset,
                wait,
            };
            let read = read(&self.session, asked);
            let piece = tokio::select! {
                biased;
                piece = read => piece?,
                () = &mut self.answered, if self.progress == Progress::Reading => {
                    self.progress = Progress::Answered;
                    continue;
                }
            };
            let length = piece.bytes.len() as u64;
            self.skipped += piece.next.saturating_sub(self.offset + length);
            self.offset = piece.next;
            self.progress = match (self.progress, piece.state) {
                (_, OutputState::Ended) => Progress::Whole,
                (Progress::Answered, OutputState::Unknown) => Progress::Lost,
                (progress, _) => progress,
            };
            if !piece.bytes.is_empty() {
                return Ok(Some(piece.bytes));
            }
            if self.progress == Progress::Reading && self.patience.is_zero() {
                break;
            }
        }
        Ok(None)
    }

    /// Waits no longer: what there is now is the end.
    pub fn hurry(&mut self) {
        self.patience = Duration::ZERO;
    }

    /// Whether everything was read that the action has written, but for what was
    /// [skipped](Self::skipped).
    pub fn is_whole(&self) -> bool {
        self.progress == Progress::Whole
    }

    /// Bytes that were written and not kept, because there were too many.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl Conductor {
    /// Asks the guard about what goes the session's own way and not through the door.
    pub(crate) async fn judge(
        self: &Arc<Self>,
        deed: &Deed,
        requester: &Requester,
    ) -> Result<(), SessionError> {
        let door = Door::of_session(self, requester.clone());
        let sandbox = self.sandbox_id()?;
        Ok(door.judge(deed, Some(&sandbox)).await?)
    }

    /// Brings an action to its end before its time. One that has ended stays as it is.
    pub(crate) async fn stop_action(
        self: &Arc<Self>,
        action: u64,
        means: StopMeans,
        requester: &Requester,
    ) -> Result<(), SessionError> {
        if self.pending.answer(action).is_none() {
            // Also tells of a number that no action has.
            return ActionOutput::of(Arc::clone(self), action).await.map(drop);
        }
        let deed = Deed::StopAction {
            action: action.to_string(),
            means,
        };
        self.judge(&deed, requester).await?;
        let said = event::object(json!({ "means": means.as_str(), "by": requester.to_value() }));
        let note = event::note_entry(Some(action), "stopped", said);
        self.record_aside(note).await;
        // Calls of tools are ours to end, commands the executor's.
        self.pending.stop(action);
        let (sandbox, _gate) = self.awake().await?;
        let asked = StopRequest {
            action: self.once_name(action),
            means,
        };
        sandbox.stop_action(asked).await?;
        Ok(())
    }
}

async fn read(session: &Arc<Conductor>, asked: OutputRequest) -> Result<OutputPiece, SessionError> {
    loop {
        let sandbox = {
            let (sandbox, _gate) = session.awake().await?;
            sandbox
        };
        match sandbox.read_output(asked.clone()).await {
            // A frozen executor answers later. The wait is bounded, so this is no busy loop.
            Err(RuntimeError::Timeout { .. }) => {}
            answered => return Ok(answered?),
        }
    }
}

impl std::fmt::Debug for ActionOutput {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ActionOutput")
            .field("name", &self.name)
            .field("offset", &self.offset)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}
