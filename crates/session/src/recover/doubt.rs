//! Actions that had no observation when their server ended: asked for again, or answered.

use std::sync::Arc;

use zareba_eventlog::{LogError, Record};
use zareba_protocol::{
    Action, ActionEvent, ErrorClass, ObservationEvent, ObservationKind, RunCommand,
};

use crate::{conductor::Conductor, event, pending::UnderWay, tools};

/// An action of which nobody knows what came of it.
pub(super) struct InDoubt {
    /// `None` when it cannot be read any more.
    record: Option<Arc<Record>>,
    under_way: UnderWay,
}

impl Conductor {
    /// The actions with these numbers, under way from now on.
    pub(super) async fn in_doubt(&self, unanswered: &[u64]) -> Result<Vec<InDoubt>, LogError> {
        let mut in_doubt = Vec::with_capacity(unanswered.len());
        for number in unanswered {
            let read = self.common.log.store().read(self.id.clone(), *number, 1);
            let record = match read.await {
                Ok(records) => records.into_iter().next(),
                Err(error @ LogError::Damaged { .. }) => {
                    tracing::error!(session = %self.id, %error, "cannot read an action that was under way");
                    None
                }
                Err(error) => return Err(error),
            };
            let (under_way, _) = self.pending.begin(*number, None);
            in_doubt.push(InDoubt { record, under_way });
        }
        Ok(in_doubt)
    }

    /// Hands over what has no observation, in the order of its numbers, before anything new.
    pub(super) async fn hand_over_again(self: Arc<Self>, in_doubt: Vec<InDoubt>) {
        for InDoubt { record, under_way } in in_doubt {
            let session = Arc::clone(&self);
            let in_use = self.begin_use();
            let action = match &record {
                Some(record) => event::recorded_action(record),
                None => Ok(None),
            };
            match action {
                // A tool runs as often as it is called, and nobody knows whether it has.
                Ok(Some(action))
                    if matches!(action.action, Action::CallTool(_) | Action::CallToolMcp(_)) =>
                {
                    self.finish_in_doubt(under_way).await;
                }
                Ok(None) | Err(_) if record.as_deref().is_some_and(tools::is_call) => {
                    self.finish_in_doubt(under_way).await;
                }
                Ok(Some(action)) => {
                    let turn = self.turns.wait(&action).await;
                    let client = record.as_deref().and_then(event::recorded_requester);
                    let requester = self.requester(client);
                    tokio::spawn(async move {
                        let _in_use = in_use;
                        session.finish(under_way, action, requester, turn).await;
                    });
                }
                Ok(None) | Err(_) => {
                    let is_readable = record.is_some();
                    tokio::spawn(async move {
                        let _in_use = in_use;
                        session.finish_unknown(under_way, is_readable).await;
                    });
                }
            }
        }
        self.recovered.send_replace(true);
    }

    /// Answers a call of a tool that was under way when a server ended.
    async fn finish_in_doubt(&self, under_way: UnderWay) {
        let answer = tools::unknown("the server ended while it ran");
        if let Some(outcome) = self.record_answer(under_way.action, &answer).await {
            under_way.end(outcome);
        }
    }

    /// Answers an action that the log does not hold whole, because it had a secret in it, was
    /// very large or is damaged: with what came of it, if it has reached the executor, and else by
    /// saying that it was not run. Of one that cannot be read nobody can say that: calls of tools
    /// do not reach the executor.
    async fn finish_unknown(self: &Arc<Self>, under_way: UnderWay, is_readable: bool) {
        // The name is what the executor knows it by. Should it not, this runs in its place.
        let mark = format!(": not run: {}", self.once_name(under_way.action));
        let probe = RunCommand {
            is_static: true,
            hidden: true,
            ..RunCommand::new(mark.clone())
        };
        let probe = ActionEvent {
            once: Some(self.once_name(under_way.action)),
            ..Action::Run(probe).into()
        };
        let Some(answer) = self.run_inside(probe, None).await else {
            return;
        };
        let answer = match (is_answer_to(&answer, &mark), is_readable) {
            (true, true) => event::failure(
                ErrorClass::Disconnected.as_str(),
                "ERROR: The action was NOT run: the server ended before it was handed over. Ask for it again.",
            ),
            (true, false) => event::failure(
                ErrorClass::Disconnected.as_str(),
                "ERROR: What came of the action is unknown: its record is damaged. It was not run in the sandbox, but may have called a tool; look before you ask for it again.",
            ),
            (false, _) => answer,
        };
        if let Some(outcome) = self.record_answer(under_way.action, &answer).await {
            under_way.end(outcome);
        }
    }
}

fn is_answer_to(answer: &ObservationEvent, command: &str) -> bool {
    match &answer.observation.kind {
        ObservationKind::Run(output) => output.command == command,
        _ => false,
    }
}
