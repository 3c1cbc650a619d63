//! [`Conductor`]: what a session is made of, and how it changes.
//!
//! Handles share it, and so do the tasks that it owns: one per action, one that starts it, one
//! that listens to its sandbox. Nothing here knows what an action means.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use tokio::{
    sync::{Mutex as Exclusive, RwLock, Semaphore, watch},
    time::Instant,
};
use zareba_eventlog::{EventLog, Expected, Health, LogError};
use zareba_protocol::{RuntimeStatus, SessionId};
use zareba_runtime::{Grant, Runtime, Sandbox, SandboxId, SandboxRequest, Turns};

use crate::{
    Home, Idle, Owner, SessionError, SessionInfo, SessionLimits, SessionState, SessionsOptions,
    Terminals,
    document::{self, SessionDocument},
    door::DeedRecorder,
    event,
    lease::Lease,
    live::Live,
    mask::Mask,
    outlived::Outlived,
    path::ACTIONS_MAX,
    pending::Pending,
    shelf,
    tools::{ToolSource, Toolbox},
};

/// What all sessions of a server share.
pub(crate) struct Common {
    pub(crate) options: Arc<SessionsOptions>,
    pub(crate) log: EventLog,
    pub(crate) ending: watch::Sender<Ending>,
    /// This server among those that share the log.
    pub(crate) lease: Lease,
    /// What it keeps for itself.
    pub(crate) home: Option<Home>,
    /// The sessions of its last life are taken up, as far as they can be.
    pub(crate) taken_up: watch::Sender<bool>,
    /// Where tools come from that every session has.
    pub(crate) tool_source: OnceLock<Arc<dyn ToolSource>>,
}

/// How far the server is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// It is not.
    No,
    /// It takes nothing new.
    Draining,
    /// It waits for nothing: what is under way is left to its sandbox.
    LettingGo,
}

/// What never changes about a session.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) owner: Owner,
    pub(crate) name: Option<SessionId>,
    pub(crate) runtime: String,
    pub(crate) image: Option<String>,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) created: Timestamp,
    pub(crate) request: SandboxRequest,
    pub(crate) grant: Grant,
    pub(crate) secret_names: Vec<String>,
}

/// One session.
pub(crate) struct Conductor {
    pub(crate) id: SessionId,
    pub(crate) common: Arc<Common>,
    pub(crate) live: Weak<Live>,
    pub(crate) facts: Facts,
    pub(crate) mask: Mask,
    /// What is done to its sandbox beside actions, for its log.
    pub(crate) deeds: Arc<DeedRecorder>,
    pub(crate) terminals: Terminals,
    pub(crate) tools: Toolbox,
    pub(crate) pending: Pending,
    pub(crate) turns: Turns,
    pub(crate) outlived: Outlived,
    /// Read while an action is handed over, written while the sandbox changes.
    pub(crate) gate: RwLock<()>,
    /// Held by the one who ends it.
    pub(crate) close_turn: Exclusive<()>,
    /// Somebody wants it to end.
    pub(crate) closing: watch::Sender<bool>,
    /// Places for actions that are under way or wait for that.
    pub(crate) places: Arc<Semaphore>,
    /// Another server has it: here it can only be read.
    pub(crate) elsewhere: AtomicBool,
    /// It has secrets, and nobody here knows what to hide.
    secrets_unknown: bool,
    /// Its sandbox was not found yet, because its backend does not answer.
    pub(crate) is_away: watch::Sender<bool>,
    /// Actions of an earlier server are handed over.
    pub(crate) recovered: watch::Sender<bool>,
    /// How many use it now.
    pub(crate) users: watch::Sender<usize>,
    /// Why it could not be started, until somebody has been told.
    pub(crate) failure: Mutex<Option<SessionError>>,
    pub(crate) state: watch::Sender<SessionState>,
    now: Mutex<Now>,
    /// The version of its document, once there is one.
    document: Exclusive<Option<u64>>,
    next_event: watch::Receiver<u64>,
    born: Birth,
}

/// What changes about a session.
struct Now {
    status: RuntimeStatus,
    message: String,
    directory: String,
    last_active: Timestamp,
    last_used: Instant,
    limits: SessionLimits,
    labels: BTreeMap<String, String>,
    /// The server that it is written down with.
    holder: Option<String>,
    /// The timer has done what was due, and looks again then.
    not_due_before: Option<Instant>,
    sandbox: Option<Arc<dyn Sandbox>>,
    /// How it is counted among those that have ended.
    ended_as: Option<SessionState>,
}

/// A session as it is made or found.
pub(crate) struct Beginning {
    pub(crate) id: SessionId,
    pub(crate) document: SessionDocument,
    /// `None` for one that is not written down yet.
    pub(crate) version: Option<u64>,
    /// `None` when it has secrets that are not known here.
    pub(crate) mask: Option<Mask>,
}

/// Counts as use as long as it is held.
pub(crate) struct InUse(Arc<Conductor>);

impl Conductor {
    /// Takes up a session that is written down, or is just about to be.
    pub(crate) async fn new(
        beginning: Beginning,
        common: Arc<Common>,
        live: Weak<Live>,
    ) -> Result<Self, LogError> {
        let Beginning {
            id,
            document,
            version,
            mask,
        } = beginning;
        let secrets_unknown = mask.is_none();
        let mask = mask.unwrap_or_default();
        let deeds = DeedRecorder::new(common.log.clone(), id.clone(), mask.clone());
        let next_event = common.log.store().end(id.clone()).await?;
        let now = Now {
            status: document.status,
            message: document.message,
            directory: document.directory,
            last_active: document.last_active,
            last_used: Instant::now(),
            limits: document.limits,
            labels: document.labels,
            holder: document.holder,
            not_due_before: None,
            sandbox: None,
            ended_as: document.state.has_ended().then_some(document.state),
        };
        Ok(Self {
            id,
            live,
            deeds,
            terminals: Terminals::new(mask.clone()),
            tools: Toolbox::new(document.tools),
            mask,
            facts: Facts {
                owner: document.owner,
                name: document.name,
                runtime: document.runtime,
                image: document.image,
                workspace: document.workspace,
                created: document.created,
                request: document.request,
                grant: document.grant,
                secret_names: document.secret_names,
            },
            pending: Pending::default(),
            turns: Turns::default(),
            outlived: Outlived::default(),
            gate: RwLock::new(()),
            close_turn: Exclusive::new(()),
            closing: watch::Sender::new(false),
            places: Arc::new(Semaphore::new(ACTIONS_MAX)),
            elsewhere: AtomicBool::new(false),
            secrets_unknown,
            is_away: watch::Sender::new(false),
            recovered: watch::Sender::new(true),
            users: watch::Sender::new(0),
            failure: Mutex::new(None),
            state: watch::Sender::new(document.state),
            now: Mutex::new(now),
            document: Exclusive::new(version),
            next_event,
            born: Birth::of(document.created),
            common,
        })
    }

    pub(crate) fn state(&self) -> SessionState {
        *self.state.borrow()
    }

    pub(crate) fn info(&self) -> SessionInfo {
        let now = self.now();
        SessionInfo {
            id: self.id.clone(),
            name: self.facts.name.clone(),
            owner: self.facts.owner.clone(),
            runtime: self.facts.runtime.clone(),
            image: self.facts.image.clone(),
            state: self.state(),
            status: now.status,
            message: now.message.clone(),
            labels: now.labels.clone(),
            workspace: now.directory.clone(),
            created: self.facts.created,
            last_active: now.last_active,
            limits: now.limits,
            grant: self.facts.grant.clone(),
            next_event: *self.next_event.borrow(),
        }
    }

    /// The runtime that it runs in, as long as the server has one of that name.
    pub(crate) fn runtime(&self) -> Option<Arc<dyn Runtime>> {
        let runtimes = &self.common.options.runtimes;
        runtimes.get(&self.facts.runtime).cloned()
    }

    /// Its sandbox's name, which is its own.
    pub(crate) fn sandbox_id(&self) -> Result<SandboxId, SessionError> {
        let name = self.id.as_str();
        SandboxId::new(name).ok_or_else(|| SessionError::Invalid {
            message: format!("`{name}` cannot name a sandbox"),
        })
    }

    pub(crate) fn sandbox(&self) -> Option<Arc<dyn Sandbox>> {
        self.now().sandbox.clone()
    }

    /// Takes a sandbox, which says where to work.
    pub(crate) fn set_sandbox(&self, sandbox: Arc<dyn Sandbox>) {
        let directory = sandbox.workspace().to_string_lossy().into_owned();
        let mut now = self.now();
        now.directory = directory;
        now.sandbox = Some(sandbox);
    }

    /// Lets go of the sandbox.
    pub(crate) fn take_sandbox(&self) -> Option<Arc<dyn Sandbox>> {
        self.now().sandbox.take()
    }

    /// It is being used now.
    pub(crate) fn touch(&self) {
        let mut now = self.now();
        now.last_active = Timestamp::now();
        now.last_used = Instant::now();
    }

    /// Something goes on in it: it is not idle for another while, though no client uses it.
    pub(crate) fn postpone(&self) {
        self.now().last_used = Instant::now();
    }

    /// It is being used until the value is dropped.
    pub(crate) fn begin_use(self: &Arc<Self>) -> InUse {
        self.touch();
        self.users.send_modify(|users| *users += 1);
        InUse(Arc::clone(self))
    }

    /// When it will have been idle for too long, and what is to be done then.
    pub(crate) fn idle_at(&self) -> Option<(Instant, Idle)> {
        let limits = self.limits().within(&self.common.options);
        let (what, timeout) = (limits.when_idle?, limits.idle_timeout?);
        let since = match *self.users.borrow() {
            0 => self.now().last_used,
            _ => Instant::now(),
        };
        let at = since.checked_add(timeout)?;
        (what != Idle::Stay).then_some((at, what))
    }

    /// When it ends, used or not.
    pub(crate) fn ends_at(&self) -> Option<Instant> {
        let life = self.limits().within(&self.common.options).life_max?;
        self.born.deadline(life)
    }

    /// How long it has lived.
    pub(crate) fn age(&self) -> Duration {
        self.born.age()
    }

    /// When it goes to sleep and when it ends, as that was asked for.
    pub(crate) fn limits(&self) -> SessionLimits {
        self.now().limits
    }

    /// Takes other limits, and labels if there are some, and returns those of before.
    pub(crate) fn replace(
        &self,
        limits: SessionLimits,
        labels: Option<BTreeMap<String, String>>,
    ) -> (SessionLimits, BTreeMap<String, String>) {
        let mut now = self.now();
        // What was due is due at another time now.
        now.not_due_before = None;
        let before = std::mem::replace(&mut now.limits, limits);
        let labels = labels.unwrap_or_else(|| now.labels.clone());
        (before, std::mem::replace(&mut now.labels, labels))
    }

    pub(crate) fn not_due_before(&self) -> Option<Instant> {
        self.now().not_due_before
    }

    pub(crate) fn set_not_due_before(&self, at: Instant) {
        self.now().not_due_before = Some(at);
    }

    /// Takes a state and writes it down.
    pub(crate) async fn become_state(&self, state: SessionState) -> Result<(), LogError> {
        self.state.send_replace(state);
        let written = self.write_down().await;
        if state.has_ended()
            && written.is_ok()
            && let Some(home) = &self.common.home
        {
            home.forget(&self.id).await;
        }
        if let Some(live) = self.live.upgrade() {
            match state {
                SessionState::Failed | SessionState::Lost | SessionState::Closed => {
                    self.count_as(state, &live, written.is_ok());
                }
                // From now on it can be idle.
                SessionState::Ready => live.changed.notify_one(),
                SessionState::Starting | SessionState::Paused => {}
            }
        }
        written
    }

    /// Has it counted among those that have ended.
    fn count_as(&self, state: SessionState, live: &Live, is_written: bool) {
        let owner = &self.facts.owner;
        let before = self.now().ended_as;
        if let Some(before) = before {
            // What could not be written was changed by somebody else, who counts it.
            if is_written {
                self.now().ended_as = Some(state);
                live.recount(&self.id, owner, before, Some(state));
            }
            return;
        }
        self.now().ended_as = Some(state);
        let outdated = live.end(&self.id, owner, state);
        if !outdated.is_empty() {
            shelf::remove_later(outdated, Arc::clone(&self.common), self.live.clone());
        }
    }

    /// Writes down that it is removed, unless somebody has written anything else meanwhile.
    pub(crate) async fn leave_tombstone(&self) -> Result<(), LogError> {
        let version = self.document.lock().await;
        let (store, name) = (self.common.log.store(), document::name(&self.id));
        let tombstone = document::tombstone();
        store.put(name, tombstone, expected(*version)).await?;
        let before = self.now().ended_as.take();
        if let (Some(live), Some(before)) = (self.live.upgrade(), before) {
            live.recount(&self.id, &self.facts.owner, before, None);
        }
        Ok(())
    }

    /// Writes down how it is now.
    pub(crate) async fn write_down(&self) -> Result<(), LogError> {
        let mut version = self.document.lock().await;
        let document = self.to_document();
        let value = document.to_value()?;
        let (store, name) = (self.common.log.store(), document::name(&self.id));
        let written = store.put(name, value, expected(*version)).await?;
        *version = Some(written.version);
        self.now().holder.clone_from(&document.holder);
        // Let go while it was written: what has our name all the same is taken up again.
        if let Some(holder) = document.holder.filter(|_| self.is_elsewhere()) {
            self.common.lease.look_again(holder);
        }
        Ok(())
    }

    /// Whether it is written down with the name of a server.
    pub(crate) fn is_held_by(&self, holder: &str) -> bool {
        self.now().holder.as_deref() == Some(holder)
    }

    /// Leaves it to another server, which has it or will take it.
    pub(crate) fn let_go(&self, live: &Live) {
        self.elsewhere.store(true, Ordering::Relaxed);
        live.withdraw(&self.id);
        self.take_sandbox();
        // Nobody waits for what is not done here.
        self.recovered.send_replace(true);
    }

    pub(crate) fn is_elsewhere(&self) -> bool {
        self.elsewhere.load(Ordering::Relaxed)
    }

    /// Takes a state together with the status that comes with it, records that, and writes the
    /// session down. Whoever sees the state sees the status.
    pub(crate) async fn become_with(
        &self,
        state: SessionState,
        status: RuntimeStatus,
        message: &str,
    ) -> Result<(), LogError> {
        self.set_status(status, message);
        self.state.send_replace(state);
        self.record_status(status, message).await;
        self.become_state(state).await
    }

    /// Fails where its sandbox cannot be reached, whatever its state.
    pub(crate) fn require_here(&self) -> Result<(), SessionError> {
        let session = || self.id.clone();
        self.require_ours()?;
        if self.secrets_unknown {
            return Err(SessionError::SecretsUnknown { session: session() });
        }
        if *self.is_away.borrow() {
            return Err(SessionError::Away { session: session() });
        }
        Ok(())
    }

    /// Fails where another server has it, or had it and this one has not taken it up yet.
    pub(crate) fn require_ours(&self) -> Result<(), SessionError> {
        if !self.is_elsewhere() {
            return Ok(());
        }
        let session = self.id.clone();
        let is_taken_up = *self.common.taken_up.borrow();
        let is_shared = self.common.log.is_shared();
        if is_taken_up && is_shared && !self.is_held_by(&self.common.lease.holder()) {
            return Err(SessionError::HeldElsewhere { session });
        }
        let reason = match &*self.common.log.store().health().borrow() {
            Health::NotDurable { reason, .. } => event::without_paths(reason),
            Health::Durable if is_taken_up && is_shared => {
                "that failed, for a reason that is in the server's own log, and is tried again"
                    .to_owned()
            }
            Health::Durable if is_taken_up => {
                "that failed when the server started, whose own log says why".to_owned()
            }
            Health::Durable => "it is about to be; try again".to_owned(),
        };
        Err(SessionError::NotTakenUp { session, reason })
    }

    pub(crate) fn secrets_are_unknown(&self) -> bool {
        self.secrets_unknown
    }

    pub(crate) fn wrong_state(&self, deed: &'static str) -> SessionError {
        SessionError::State {
            session: self.id.clone(),
            deed,
            state: self.state(),
        }
    }

    pub(crate) fn set_status(&self, status: RuntimeStatus, message: &str) {
        let mut now = self.now();
        now.status = status;
        now.message = self.mask.text(message).into_owned();
    }

    fn to_document(&self) -> SessionDocument {
        let (now, facts) = (self.now(), &self.facts);
        SessionDocument {
            owner: facts.owner.clone(),
            name: facts.name.clone(),
            runtime: facts.runtime.clone(),
            image: facts.image.clone(),
            workspace: facts.workspace.clone(),
            directory: now.directory.clone(),
            labels: now.labels.clone(),
            created: facts.created,
            last_active: now.last_active,
            limits: now.limits,
            request: facts.request.clone(),
            grant: facts.grant.clone(),
            state: self.state(),
            status: now.status,
            message: now.message.clone(),
            secret_names: facts.secret_names.clone(),
            holder: (!self.state().has_ended()).then(|| self.common.lease.holder()),
            tools: self.tools.kept(),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Conductor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Conductor")
            .field("id", &self.id)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.touch();
        self.0.users.send_modify(|users| *users -= 1);
    }
}

/// What must be true of a document that was last written in a version.
fn expected(version: Option<u64>) -> Expected {
    version.map_or(Expected::Absent, Expected::Version)
}

/// When a session was made. Only its age at the start of this server is taken from the wall's clock: from
/// then on that may jump as it likes.
struct Birth {
    age_then: Duration,
    then: Instant,
}

impl Birth {
    fn of(created: Timestamp) -> Self {
        let age = Timestamp::now().duration_since(created);
        Self {
            age_then: Duration::try_from(age).unwrap_or_default(),
            then: Instant::now(),
        }
    }

    fn age(&self) -> Duration {
        self.age_then.saturating_add(self.then.elapsed())
    }

    /// When a life ends.
    fn deadline(&self, life: Duration) -> Option<Instant> {
        self.then.checked_add(life.saturating_sub(self.age_then))
    }
}
