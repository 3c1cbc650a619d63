//! Sleeping, waking, losing and ending a session.
//!
//! Whoever changes the sandbox holds the gate for writing, and whoever hands an action over holds
//! it for reading: an action never meets a sandbox that is just being frozen. Nobody waits for
//! actions while holding the gate, because actions wait for the gate.

use std::{sync::Arc, time::Duration};

use tokio::{sync::RwLockReadGuard, time::Instant};
use zareba_eventlog::LogError;
use zareba_protocol::RuntimeStatus;
use zareba_runtime::{RuntimeError, Sandbox, SandboxState, Support};

use crate::{
    Deed, Door, Idle, Requester, SandboxChange, SessionError, SessionState, conductor::Conductor,
    door::UnderWay, path::has_ended,
};

/// How often somebody may freeze a session again before an action gets through.
const WAKES_MAX: usize = 8;

/// How long a sandbox is looked at before it is paused.
const LOOK: Duration = Duration::from_secs(1);

/// This part of one processor is work; less is what idle programs use for their timers.
const BUSY_PART: u32 = 50;

/// Why a session ends, for its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Somebody asked for it.
    Asked,
    /// Nothing was asked of it for too long.
    Idle,
    /// It has lived as long as it may.
    LifeMax,
}

impl Why {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "closed",
            Self::Idle => "closed: it was idle for too long",
            Self::LifeMax => "closed: it reached the end of its life",
        }
    }
}

impl Conductor {
    /// The sandbox, awake for as long as the guard is held.
    pub(crate) async fn awake(
        self: &Arc<Self>,
    ) -> Result<(Arc<dyn Sandbox>, RwLockReadGuard<'_, ()>), SessionError> {
        for _ in 0..WAKES_MAX {
            let gate = self.gate.read().await;
            self.require_unclosed("use its sandbox")?;
            match (self.state(), self.sandbox()) {
                (SessionState::Paused, _) => {}
                (SessionState::Ready | SessionState::Starting, Some(sandbox)) => {
                    return Ok((sandbox, gate));
                }
                _ => return Err(self.wrong_state("use its sandbox")),
            }
            drop(gate);
            self.resume().await?;
        }
        Err(self.wrong_state("stay awake"))
    }

    pub(crate) async fn pause(self: &Arc<Self>) -> Result<(), SessionError> {
        let session = Arc::clone(self);
        self.change(async move {
            let _gate = session.gate.write().await;
            session.require_here()?;
            session.freeze().await
        })
        .await
    }

    /// Freezes it for a client: judged, recorded, done, recorded.
    pub(crate) async fn pause_for(self: &Arc<Self>, client: Requester) -> Result<(), SessionError> {
        let session = Arc::clone(self);
        self.change(async move {
            let pausing = session.pause();
            session.manage(SandboxChange::Pause, client, pausing).await
        })
        .await
    }

    /// Lets it go on for a client.
    pub(crate) async fn resume_for(
        self: &Arc<Self>,
        client: Requester,
    ) -> Result<(), SessionError> {
        let session = Arc::clone(self);
        self.change(async move {
            let resuming = session.resume();
            session
                .manage(SandboxChange::Resume, client, resuming)
                .await
        })
        .await
    }

    async fn manage(
        self: &Arc<Self>,
        change: SandboxChange,
        client: Requester,
        work: impl Future<Output = Result<(), SessionError>>,
    ) -> Result<(), SessionError> {
        self.require_here()?;
        let door = Door::of_session(self, client);
        let word = |error: &SessionError| error.class().as_str();
        door.carry_out(Deed::Manage(change), word, work).await
    }

    pub(crate) async fn resume(self: &Arc<Self>) -> Result<(), SessionError> {
        let session = Arc::clone(self);
        self.change(async move {
            let _gate = session.gate.write().await;
            session.require_unclosed("be resumed")?;
            match session.state() {
                SessionState::Paused => session.thaw().await,
                SessionState::Ready => Ok(()),
                _ => Err(session.wrong_state("be resumed")),
            }
        })
        .await
    }

    /// Wakes a sandbox that says it sleeps, whatever we believed.
    pub(crate) async fn resume_anyhow(&self) -> Result<(), SessionError> {
        self.require_unclosed("be resumed")?;
        let _gate = self.gate.write().await;
        self.require_unclosed("be resumed")?;
        match self.state() {
            SessionState::Paused | SessionState::Ready => self.thaw().await,
            _ => Err(self.wrong_state("be resumed")),
        }
    }

    /// Changes something in a task of its own: nobody can leave that half-done.
    pub(crate) async fn change(
        &self,
        work: impl Future<Output = Result<(), SessionError>> + Send + 'static,
    ) -> Result<(), SessionError> {
        let changed = tokio::spawn(work).await;
        changed.unwrap_or(Err(SessionError::ShuttingDown))
    }

    /// Does what is to be done with a session that was idle for too long, if it still is.
    pub(crate) async fn end_idleness(self: &Arc<Self>) -> Result<(), SessionError> {
        match self.idle_at() {
            Some((_, Idle::Close)) if self.is_idle() => {
                if self.state() == SessionState::Starting {
                    return Ok(());
                }
                if self.state() == SessionState::Ready && self.works().await {
                    self.postpone();
                    return Ok(());
                }
                // Asked again: a client may have come while the sandbox was looked at.
                match self.is_idle() {
                    true => self.close(Why::Idle).await,
                    false => Ok(()),
                }
            }
            Some((_, Idle::Pause)) if self.can_pause() => {
                if self.is_idle() && self.state() == SessionState::Ready && self.works().await {
                    self.postpone();
                    return Ok(());
                }
                let _gate = self.gate.write().await;
                // Asked again behind the gate: whoever came in between has made it busy.
                if self.is_idle() && self.state() == SessionState::Ready {
                    return self.freeze().await;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends it.
    pub(crate) async fn close(self: &Arc<Self>, why: Why) -> Result<(), SessionError> {
        let session = Arc::clone(self);
        self.change(async move {
            let _only = session.close_turn.lock().await;
            session.close_now(why, None).await
        })
        .await
    }

    /// Ends it for a client. The end is not refused because it cannot be recorded: it is what frees
    /// the room that a full log needs.
    pub(crate) async fn close_for(
        self: &Arc<Self>,
        end: SandboxChange,
        client: Requester,
    ) -> Result<(), SessionError> {
        let session = Arc::clone(self);
        self.change(async move {
            session.require_ours()?;
            let has_ended = || session.state() == SessionState::Closed;
            if has_ended() && end == SandboxChange::Close {
                return Ok(());
            }
            let door = Door::of_session(&session, client);
            let deed = Deed::Manage(end);
            door.judge(&deed, session.sandbox_id().ok().as_ref()).await?;
            let _only = session.close_turn.lock().await;
            session.require_ours()?;
            let begun = match has_ended() {
                true => None,
                false => door.begin(&deed).await.map_or_else(
                    |error| {
                        tracing::warn!(session = %session.id, %error, "the end of a session is not recorded");
                        None
                    },
                    Some,
                ),
            };
            session.close_now(Why::Asked, begun).await
        })
        .await
    }

    /// The caller holds the turn of those who close it. A deed that it is ends before the log does.
    async fn close_now(&self, why: Why, deed: Option<UnderWay>) -> Result<(), SessionError> {
        self.require_ours()?;
        // From here on nothing begins, and a start that is under way is given up.
        self.closing.send_replace(true);
        let mut state = self.state.subscribe();
        let _ = state
            .wait_for(|state| *state != SessionState::Starting)
            .await;
        if self.state() == SessionState::Closed {
            return Ok(());
        }
        let gate = self.gate.write().await;
        let ended = self.end_sandbox().await;
        if let Some(deed) = deed {
            let done = ended.as_ref().map_err(|error| error.class().as_str());
            deed.end_with(done.copied()).await;
        }
        if let Err(error) = ended {
            self.closing.send_replace(false);
            return Err(error);
        }
        drop(gate);
        // Each action gets its observation before the log says that this was all.
        let mut users = self.users.subscribe();
        let _ = users.wait_for(|users| *users == 0).await;
        self.deeds.close().await;
        self.record_note(why.as_str()).await;
        let (state, status) = (SessionState::Closed, RuntimeStatus::Stopped);
        Ok(self.become_with(state, status, "Runtime stopped.").await?)
    }

    /// Fails once somebody wants it to end: nothing new may reach its sandbox then.
    pub(crate) fn require_unclosed(&self, deed: &'static str) -> Result<(), SessionError> {
        self.require_here()?;
        if *self.closing.borrow() {
            return Err(SessionError::State {
                session: self.id.clone(),
                deed,
                state: SessionState::Closed,
            });
        }
        Ok(())
    }

    async fn end_sandbox(&self) -> Result<(), SessionError> {
        match self.sandbox() {
            Some(sandbox) => {
                sandbox.close().await?;
                self.take_sandbox();
                Ok(())
            }
            None => self.destroy_remains().await,
        }
    }

    /// Removes what is left of a sandbox that nobody has a handle of.
    pub(crate) async fn destroy_remains(&self) -> Result<(), SessionError> {
        let Some(runtime) = self.runtime() else {
            return Ok(());
        };
        match runtime.destroy(&self.sandbox_id()?).await {
            Ok(()) | Err(RuntimeError::NotFound { .. } | RuntimeError::Unsupported { .. }) => {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Looks whether the sandbox is gone after it did not answer, and says so.
    pub(crate) async fn notice_loss(&self) -> bool {
        let Some(sandbox) = self.sandbox() else {
            return true;
        };
        if !has_ended(&*sandbox) && self.is_listed().await {
            return false;
        }
        self.lose("The sandbox ended without being asked to.").await;
        true
    }

    pub(crate) async fn is_listed(&self) -> bool {
        let (Some(runtime), Ok(id)) = (self.runtime(), self.sandbox_id()) else {
            return false;
        };
        match runtime.list().await {
            Ok(all) => all
                .iter()
                .any(|it| it.id == id && it.state != SandboxState::Lost),
            // A backend that cannot list is believed what it says of itself.
            Err(_) => true,
        }
    }

    /// Records that the sandbox is gone, once.
    pub(crate) async fn lose(&self, message: &str) {
        if *self.closing.borrow() {
            return;
        }
        let _gate = self.gate.write().await;
        if !matches!(self.state(), SessionState::Ready | SessionState::Paused)
            || *self.closing.borrow()
            || self.is_taken().await
        {
            return;
        }
        if let Some(sandbox) = self.take_sandbox() {
            // It removes what is left, and cannot fail to be gone.
            let _ = sandbox.close().await;
        }
        if let Err(error) = self.destroy_remains().await {
            tracing::warn!(session = %self.id, %error, "cannot remove what a lost sandbox left");
        }
        let (state, status) = (SessionState::Lost, RuntimeStatus::RuntimeDisconnected);
        if let Err(error) = self.become_with(state, status, message).await {
            tracing::error!(session = %self.id, %error, "cannot write down that a session is lost");
        }
    }

    /// Whether another server has taken it, also when nobody here has noticed yet: then what is
    /// left of its sandbox is theirs.
    async fn is_taken(&self) -> bool {
        if self.is_elsewhere() {
            return true;
        }
        // Only whoever has the last version of its document can write it.
        self.common.log.is_shared()
            && matches!(self.write_down().await, Err(LogError::Conflict { .. }))
    }

    async fn freeze(&self) -> Result<(), SessionError> {
        match (self.state(), self.sandbox()) {
            (SessionState::Paused, _) => Ok(()),
            (SessionState::Ready, Some(sandbox)) => {
                sandbox.pause().await?;
                let (state, status) = (SessionState::Paused, RuntimeStatus::Stopped);
                Ok(self.become_with(state, status, "Runtime paused.").await?)
            }
            _ => Err(self.wrong_state("be paused")),
        }
    }

    async fn thaw(&self) -> Result<(), SessionError> {
        let Some(sandbox) = self.sandbox() else {
            return Err(self.wrong_state("be resumed"));
        };
        sandbox.resume().await?;
        self.touch();
        let (state, status) = (SessionState::Ready, RuntimeStatus::Ready);
        Ok(self.become_with(state, status, "Runtime resumed.").await?)
    }

    /// Whether something goes on in the sandbox though no client asks for anything: a command that
    /// has outlived its action, or a program that uses the processor. Where the backend cannot say,
    /// the observations of the session tell of commands, and nothing tells of other programs.
    async fn works(&self) -> bool {
        let Some(sandbox) = self.sandbox() else {
            return false;
        };
        let Ok(before) = sandbox.activity().await else {
            return self.outlived.is_any();
        };
        if before.has_command {
            return true;
        }
        tokio::time::sleep(LOOK).await;
        let used = sandbox.activity().await.map(|now| {
            now.has_command || now.processor.saturating_sub(before.processor) >= LOOK / BUSY_PART
        });
        used.unwrap_or_else(|_| self.outlived.is_any())
    }

    fn is_idle(&self) -> bool {
        let due = |(at, _)| at <= Instant::now();
        *self.users.borrow() == 0 && self.idle_at().is_some_and(due)
    }

    pub(crate) fn can_pause(&self) -> bool {
        let can = |runtime: Arc<dyn zareba_runtime::Runtime>| runtime.capabilities().pause;
        self.runtime().map(can) == Some(Support::Yes)
    }
}
