//! Taking up the sessions of an earlier server.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use zareba_eventlog::{Document, Record};
use zareba_protocol::{
    Action, ActionEvent, ErrorClass, ObservationEvent, ObservationKind, RunCommand, RuntimeStatus,
    SessionId,
};
use zareba_runtime::{RuntimeError, Sandbox};

use crate::{
    Recovery, SessionError, SessionState,
    conductor::{Beginning, Common, Conductor},
    document::{self, SessionDocument},
    event,
    live::Live,
    mask::Mask,
    pending::UnderWay,
};

/// Sessions that are taken up at once.
const AT_ONCE: usize = 16;

/// How a session of an earlier server was found.
enum Found {
    Ended,
    Lost { in_doubt: usize },
    Running { in_doubt: usize },
}

/// Takes up all sessions that had not ended.
pub(crate) async fn all(common: &Arc<Common>, live: &Arc<Live>) -> Result<Recovery, SessionError> {
    let documents = common.log.store().list(document::KIND).await?;
    let mut found = stream::iter(documents)
        .map(|document| one(document, common, live))
        .buffer_unordered(AT_ONCE);
    let mut recovery = Recovery::default();
    while let Some(found) = found.next().await {
        match found? {
            Found::Ended => {}
            Found::Lost { in_doubt } => {
                recovery.lost += 1;
                recovery.in_doubt += in_doubt;
            }
            Found::Running { in_doubt } => {
                recovery.found += 1;
                recovery.in_doubt += in_doubt;
            }
        }
    }
    Ok(recovery)
}

async fn one(
    document: Document,
    common: &Arc<Common>,
    live: &Arc<Live>,
) -> Result<Found, SessionError> {
    let name = document.name.name.clone();
    let read = SessionDocument::from_value(document.value);
    let (Ok(id), Ok(written)) = (SessionId::new(name.clone()), read) else {
        // Perhaps of a newer version of us; to be left alone.
        tracing::warn!(
            session = name,
            "cannot read what is written down about a session"
        );
        return Ok(Found::Ended);
    };
    let state = written.state;
    if matches!(
        state,
        SessionState::Closed | SessionState::Failed | SessionState::Lost
    ) {
        return Ok(Found::Ended);
    }
    let beginning = Beginning {
        id,
        document: written,
        version: document.version,
        mask: Mask::default(),
    };
    let session = Conductor::new(beginning, Arc::clone(common), Arc::downgrade(live)).await?;
    let session = Arc::new(session);
    let unanswered = common.log.store().unanswered(session.id.clone()).await?;
    if state == SessionState::Starting {
        return session.undo_start(&unanswered).await;
    }
    match session.attach().await {
        Ok(sandbox) => {
            session.take_up(sandbox, &unanswered, live).await?;
            Ok(Found::Running {
                in_doubt: unanswered.len(),
            })
        }
        Err(error) => session.give_up(&error, &unanswered).await,
    }
}

impl Conductor {
    async fn attach(&self) -> Result<Arc<dyn Sandbox>, SessionError> {
        let runtime = self.runtime().ok_or_else(|| SessionError::Invalid {
            message: format!("the server has no runtime `{}`", self.facts.runtime),
        })?;
        Ok(runtime.attach(&self.sandbox_id()?).await?)
    }

    /// A start that was under way is undone: nobody knows how far it had come.
    async fn undo_start(&self, unanswered: &[u64]) -> Result<Found, SessionError> {
        if let Err(error) = self.destroy_remains().await {
            tracing::warn!(session = %self.id, %error, "cannot remove a sandbox that was being started");
        }
        let text = "The server ended while the session was being started.";
        self.answer_all(unanswered, text).await;
        let (state, status) = (SessionState::Failed, RuntimeStatus::Error);
        self.become_with(state, status, text).await?;
        let in_doubt = unanswered.len();
        Ok(Found::Lost { in_doubt })
    }

    /// The sandbox cannot be had any more.
    async fn give_up(
        &self,
        error: &SessionError,
        unanswered: &[u64],
    ) -> Result<Found, SessionError> {
        // What only cannot be reached now may have somebody's files in it.
        let is_gone = matches!(
            error,
            SessionError::Runtime(
                RuntimeError::NotFound { .. }
                    | RuntimeError::Closed { .. }
                    | RuntimeError::Unsupported { .. }
            )
        );
        if is_gone && let Err(error) = self.destroy_remains().await {
            tracing::warn!(session = %self.id, %error, "cannot remove what a lost sandbox left");
        }
        let text = format!("The sandbox was lost: {}.", event::chain(error));
        self.answer_all(unanswered, &text).await;
        let (state, status) = (SessionState::Lost, RuntimeStatus::RuntimeDisconnected);
        self.become_with(state, status, &text).await?;
        let in_doubt = unanswered.len();
        Ok(Found::Lost { in_doubt })
    }

    async fn answer_all(&self, unanswered: &[u64], text: &str) {
        let answer = event::failure(
            ErrorClass::Disconnected.as_str(),
            format!("ERROR: {text} Nobody knows how far the action had come."),
        );
        for action in unanswered {
            self.record_answer(*action, &answer).await;
        }
    }

    /// Goes on with a sandbox that was found, and with the actions that were under way in it.
    async fn take_up(
        self: &Arc<Self>,
        sandbox: Arc<dyn Sandbox>,
        unanswered: &[u64],
        live: &Live,
    ) -> Result<(), SessionError> {
        self.set_sandbox(sandbox);
        self.record_note("recovered").await;
        if !self.facts.secret_names.is_empty() {
            tracing::warn!(session = %self.id, "secrets of a recovered session are not known, and not masked");
            self.record_note("secrets are not masked any more: their values were not kept")
                .await;
        }
        let mut records = Vec::with_capacity(unanswered.len());
        for number in unanswered {
            let read = self.common.log.store().read(self.id.clone(), *number, 1);
            if let Some(record) = read.await?.into_iter().next() {
                let (under_way, _) = self.pending.begin(*number);
                records.push((record, under_way));
            }
        }
        self.recovered.send_replace(records.is_empty());
        live.restore(self);
        if !records.is_empty() {
            tokio::spawn(Arc::clone(self).hand_over_again(records));
        }
        Ok(())
    }

    /// Hands over what has no observation, in the order of its numbers, before anything new.
    async fn hand_over_again(self: Arc<Self>, records: Vec<(Arc<Record>, UnderWay)>) {
        for (record, under_way) in records {
            let session = Arc::clone(&self);
            let in_use = self.begin_use();
            match event::recorded_action(&record) {
                Ok(Some(action)) => {
                    let turn = self.turns.wait(&action).await;
                    tokio::spawn(async move {
                        let _in_use = in_use;
                        session.finish(under_way, action, turn).await;
                    });
                }
                Ok(None) | Err(_) => {
                    tokio::spawn(async move {
                        let _in_use = in_use;
                        session.finish_unknown(under_way).await;
                    });
                }
            }
        }
        self.recovered.send_replace(true);
    }

    /// Answers an action that the log does not hold whole, because it had a secret in it or was
    /// very large: with what came of it, if it has reached the executor, and else by saying that
    /// it was not run.
    async fn finish_unknown(self: &Arc<Self>, under_way: UnderWay) {
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
        let answer = if is_answer_to(&answer, &mark) {
            event::failure(
                ErrorClass::Disconnected.as_str(),
                "ERROR: The action was NOT run: the server ended before it was handed over. Ask for it again.",
            )
        } else {
            answer
        };
        let outcome = self.record_answer(under_way.action, &answer).await;
        under_way.end(outcome);
    }
}

fn is_answer_to(answer: &ObservationEvent, command: &str) -> bool {
    match &answer.observation.kind {
        ObservationKind::Run(output) => output.command == command,
        _ => false,
    }
}
