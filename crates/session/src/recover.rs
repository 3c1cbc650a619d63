//! Taking up the sessions of an earlier server.

mod doubt;

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use zareba_eventlog::{Document, LogError, Selection};
use zareba_protocol::{ErrorClass, RuntimeStatus, SessionId};
use zareba_runtime::{RuntimeError, Sandbox};

use crate::{
    Owner, Recovery, SessionError, SessionState,
    conductor::{Beginning, Common, Conductor, Ending},
    document::{self, SessionDocument},
    event, lease,
    live::Live,
    recall, shelf,
};

/// Sessions that are taken up at once.
const AT_ONCE: usize = 16;

/// The first and the longest wait before a backend that does not answer is asked again.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// How a session of an earlier server was found.
enum Found {
    Ended(Ended),
    /// Another server has it, or nobody can read what is written about it.
    LeftAlone,
    Lost {
        in_doubt: usize,
    },
    Running {
        in_doubt: usize,
    },
}

/// One that had ended before.
#[derive(Debug)]
struct Ended {
    created: Timestamp,
    session: SessionId,
    owner: Owner,
    state: SessionState,
}

/// Whose sessions are taken up.
#[derive(Clone, Copy)]
pub(crate) enum Whose<'a> {
    /// Those that none of these servers has, which may still be there.
    NotOf(&'a BTreeSet<String>),
    /// Those of a server that is gone.
    Of(&'a str),
}

/// What came of taking sessions up.
#[derive(Debug, Default)]
pub(crate) struct TakenUp {
    pub(crate) recovery: Recovery,
    /// Sessions that could not be taken up, while others could.
    pub(crate) failed: usize,
    ended: Vec<Ended>,
}

impl TakenUp {
    fn count(&mut self, found: Found) {
        match found {
            Found::Ended(one) => self.ended.push(one),
            Found::LeftAlone => {}
            Found::Lost { in_doubt } => {
                self.recovery.lost += 1;
                self.recovery.in_doubt += in_doubt;
            }
            Found::Running { in_doubt } => {
                self.recovery.found += 1;
                self.recovery.in_doubt += in_doubt;
            }
        }
    }
}

/// Takes up all sessions that had not ended, and that no other server has. One that cannot be
/// taken up does not keep the others from it: they may have our name already.
///
/// # Errors
/// When the log itself cannot be used.
pub(crate) async fn all(
    whose: Whose<'_>,
    common: &Arc<Common>,
    live: &Arc<Live>,
) -> Result<TakenUp, SessionError> {
    let mut taken_up = TakenUp::default();
    let mut after = None;
    let mut unusable = None;
    loop {
        let documents = page(whose, after, common).await?;
        let is_last = documents.len() < shelf::PAGE;
        after = documents.last().map(|last| last.name.name.clone());
        let mut found = stream::iter(documents)
            .map(|document| one(document, whose, common, live))
            .buffer_unordered(AT_ONCE);
        while let Some(found) = found.next().await {
            match found {
                Ok(found) => taken_up.count(found),
                Err(error) if is_about_one(&error) => taken_up.failed += 1,
                Err(error) => unusable = unusable.or(Some(error)),
            }
        }
        if is_last {
            break;
        }
    }
    if let Some(error) = unusable {
        return Err(error);
    }
    count_ended(&mut taken_up.ended, common, live);
    Ok(taken_up)
}

/// Whether an error says nothing about other sessions.
fn is_about_one(error: &SessionError) -> bool {
    !matches!(
        error,
        SessionError::Log(
            LogError::Full
                | LogError::NoSpace
                | LogError::Unavailable { .. }
                | LogError::ReadOnly
                | LogError::Closed
        )
    )
}

/// Counts those that had ended before, in the order in which they were made.
fn count_ended(ended: &mut [Ended], common: &Arc<Common>, live: &Arc<Live>) {
    ended.sort_by_key(|one| one.created);
    let outdated = ended
        .iter()
        .flat_map(|one| live.end(&one.session, &one.owner, one.state));
    let outdated: Vec<SessionId> = outdated.collect();
    if !outdated.is_empty() {
        shelf::remove_later(outdated, Arc::clone(common), Arc::downgrade(live));
    }
}

async fn page(
    whose: Whose<'_>,
    after: Option<String>,
    common: &Common,
) -> Result<Vec<Document>, LogError> {
    let (field, text) = match whose {
        Whose::NotOf(_) => (document::OWNER, None),
        Whose::Of(holder) => (document::HOLDER, Some(holder.to_owned())),
    };
    let selection = Selection {
        kind: document::KIND,
        field,
        text,
        after,
        limit: shelf::PAGE,
    };
    common.log.store().select(selection).await
}

async fn one(
    document: Document,
    whose: Whose<'_>,
    common: &Arc<Common>,
    live: &Arc<Live>,
) -> Result<Found, SessionError> {
    let name = document.name.name.clone();
    let found = find(document, whose, common, live).await;
    found.inspect_err(|error| {
        let error = event::chain(error);
        tracing::error!(session = name, error, "cannot take up a session");
    })
}

async fn find(
    document: Document,
    whose: Whose<'_>,
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
        return Ok(Found::LeftAlone);
    };
    let state = written.state;
    if state.has_ended() {
        return Ok(Found::Ended(Ended {
            created: written.created,
            session: id,
            owner: written.owner,
            state,
        }));
    }
    if let (Whose::NotOf(others), Some(holder)) = (whose, &written.holder)
        && (others.contains(holder) || has_come(holder, common).await?)
    {
        return Ok(Found::LeftAlone);
    }
    // Taken up by an attempt that could not be finished.
    if live.get(&id).is_some_and(|known| !known.is_elsewhere()) {
        return Ok(Found::LeftAlone);
    }
    let beginning = Beginning {
        mask: recall::mask(&id, &written, common).await,
        id,
        document: written,
        version: Some(document.version),
    };
    let session = Conductor::new(beginning, Arc::clone(common), Arc::downgrade(live)).await?;
    let session = Arc::new(session);
    // Where several servers could take it, the one whose name is written down has it.
    if common.log.is_shared() {
        match session.write_down().await {
            Err(LogError::Conflict { .. }) => return Ok(Found::LeftAlone),
            written => written?,
        }
    }
    let unanswered = common.log.store().unanswered(session.id.clone()).await?;
    if state == SessionState::Starting {
        return session.undo_start(&unanswered).await;
    }
    let found = session.find_sandbox(unanswered, live).await?;
    match session.is_elsewhere() {
        true => Ok(Found::LeftAlone),
        false => Ok(found),
    }
}

/// Whether another server has come since those that are there were listed.
async fn has_come(holder: &str, common: &Common) -> Result<bool, LogError> {
    if !common.log.is_shared() || common.lease.holder() == holder {
        return Ok(false);
    }
    lease::is_there(holder, common).await
}

impl Conductor {
    /// Goes on with its sandbox, now or as soon as that can be reached; or it is lost.
    async fn find_sandbox(
        self: &Arc<Self>,
        unanswered: Vec<u64>,
        live: &Arc<Live>,
    ) -> Result<Found, SessionError> {
        let in_doubt = unanswered.len();
        match self.attach().await {
            Ok(sandbox) => self.take_up(sandbox, &unanswered, live).await?,
            Err(error) if self.is_gone(&error).await => {
                return self.give_up(&error, &unanswered).await;
            }
            Err(error) => {
                tracing::warn!(session = %self.id, error = event::chain(&error), "cannot reach a sandbox yet");
                self.recovered.send_replace(false);
                self.is_away.send_replace(true);
                if self.restore(live) {
                    tokio::spawn(Arc::clone(self).reach_again(unanswered, Arc::downgrade(live)));
                }
            }
        }
        Ok(Found::Running { in_doubt })
    }

    /// Whether a sandbox that did not answer is no more. A backend that is only down says nothing
    /// about that.
    async fn is_gone(&self, error: &SessionError) -> bool {
        match error {
            SessionError::Runtime(
                RuntimeError::NotFound { .. }
                | RuntimeError::Closed { .. }
                | RuntimeError::Unsupported { .. },
            ) => true,
            SessionError::Runtime(_) => !self.is_listed().await,
            // There is no such runtime here, and there will be none.
            _ => true,
        }
    }

    /// Asks for the sandbox until there is an answer, less and less often.
    async fn reach_again(self: Arc<Self>, unanswered: Vec<u64>, live: Weak<Live>) {
        let mut wait = RETRY_FIRST;
        let mut ending = self.common.ending.subscribe();
        loop {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = ending.wait_for(|ending| *ending != Ending::No) => return,
            }
            let is_over = self.state().has_ended() || self.is_elsewhere();
            let Some(live) = live.upgrade().filter(|_| !is_over) else {
                return;
            };
            wait = (wait * 2).min(RETRY_MAX);
            let done = match self.attach().await {
                Ok(sandbox) => {
                    let _gate = self.gate.write().await;
                    // Somebody ends it, and may fail to.
                    if *self.closing.borrow() {
                        continue;
                    }
                    self.is_away.send_replace(false);
                    let taken_up = self.take_up(sandbox, &unanswered, &live).await;
                    if let Err(error) = taken_up {
                        tracing::warn!(session = %self.id, error = event::chain(&error), "cannot take up a session yet");
                        self.is_away.send_replace(true);
                        continue;
                    }
                    return;
                }
                Err(error) if self.is_gone(&error).await => {
                    self.is_away.send_replace(false);
                    let given_up = self.give_up(&error, &unanswered).await;
                    self.recovered.send_replace(true);
                    given_up.map(drop)
                }
                Err(_) => continue,
            };
            if let Err(error) = done {
                tracing::error!(session = %self.id, %error, "cannot take up a session");
            }
            return;
        }
    }

    /// Makes it one of this server's; `false` when that has lost its name, and so the session,
    /// while it was being taken up.
    fn restore(self: &Arc<Self>, live: &Live) -> bool {
        live.restore(self);
        // Looked at afterwards: whoever changes the name then finds it there.
        let is_ours = !self.is_elsewhere() && self.is_held_by(&self.common.lease.holder());
        if self.common.log.is_shared() && !is_ours {
            self.let_go(live);
            return false;
        }
        true
    }

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
        // Without a runtime of that name here, there may be somebody's files elsewhere.
        let is_ours = matches!(error, SessionError::Runtime(_));
        if is_ours && let Err(error) = self.destroy_remains().await {
            tracing::warn!(session = %self.id, %error, "cannot remove what a lost sandbox left");
        }
        tracing::warn!(session = %self.id, error = event::chain(error), "a sandbox was lost");
        let text = format!("The sandbox was lost: {}.", event::told(error));
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
        // First what may fail: then it can be tried again.
        let in_doubt = self.in_doubt(unanswered).await?;
        self.set_sandbox(sandbox);
        self.restore_tools();
        self.record_note("recovered").await;
        if self.secrets_are_unknown() {
            tracing::warn!(session = %self.id, "the secrets of a session are not known here: it can only be read and closed");
            self.record_note("taken up by a server that does not know its secrets")
                .await;
        }
        self.recovered.send_replace(in_doubt.is_empty());
        if self.restore(live) && !in_doubt.is_empty() {
            tokio::spawn(Arc::clone(self).hand_over_again(in_doubt));
        }
        Ok(())
    }
}
