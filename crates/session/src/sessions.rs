//! [`Sessions`]: all sessions of one server.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, OnceLock, PoisonError},
    time::Duration,
};

use tokio::sync::watch;
use zareba_eventlog::{EventLog, Health};
use zareba_protocol::SessionId;
use zareba_runtime::Runtime;

use crate::{
    Guard, Home, Idle, NewSession, Owner, Permissions, Secret, Session, SessionError, SessionInfo,
    SessionState, ToolSource,
    conductor::{Common, Conductor, Ending},
    create,
    lease::{self, Lease},
    live::Live,
    recall, shelf, timer,
};

/// The runtimes that sessions may choose from, by name.
pub type Runtimes = BTreeMap<String, Arc<dyn Runtime>>;

/// What all sessions have in common.
#[derive(Clone)]
pub struct SessionsOptions {
    /// Where they may run.
    pub runtimes: Runtimes,
    /// The one that is meant when none is named.
    pub default_runtime: String,
    /// What judges their actions.
    pub guard: Arc<dyn Guard>,
    /// How long nothing may be asked of a session.
    pub idle_timeout: Duration,
    /// What happens then.
    pub when_idle: Idle,
    /// How long a session may live.
    pub life_max: Option<Duration>,
    /// How long a command may be silent before the agent is told.
    pub no_change_timeout: Duration,
    /// How long an action may take that does not say so itself.
    pub timeout: Duration,
    /// Sessions that are not closed, of everyone.
    pub sessions_max: usize,
    /// Sessions that are not closed, of one owner.
    pub owner_sessions_max: usize,
    /// Directories of this machine that a session may be given as its workspace, with all that is
    /// below them.
    pub workspaces: Vec<PathBuf>,
    /// What may be asked of a sandbox beyond what its runtime's settings give.
    pub permissions: Permissions,
    /// Secrets of the operator that programs of sessions can come by, such as those of tool
    /// servers. Every session hides them like its own.
    pub hidden: Vec<Secret>,
}

/// How long those may take who are told that nobody waits for anything any more.
const LAST_WORK: Duration = Duration::from_secs(5);

/// What was found at a start after an end that was not in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Sessions whose sandbox runs on.
    pub found: usize,
    /// Sessions whose sandbox is gone.
    pub lost: usize,
    /// Actions that had no observation yet.
    pub in_doubt: usize,
}

/// All sessions of one server. Cloning it gives another handle.
#[derive(Clone)]
pub struct Sessions {
    common: Arc<Common>,
    live: Arc<Live>,
}

impl Sessions {
    /// Takes up the sessions of the log: finds their sandboxes again, or records them as lost, and
    /// sees to it that every action has its observation.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn start(
        log: EventLog,
        options: SessionsOptions,
    ) -> Result<(Self, Recovery), SessionError> {
        Self::begin_life(log, options, None).await
    }

    /// The same for a server with a directory of its own. After it was killed it knows its own
    /// sessions again at once, where several servers share the log, and hides their secrets.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn start_in(
        home: Home,
        log: EventLog,
        options: SessionsOptions,
    ) -> Result<(Self, Recovery), SessionError> {
        Self::begin_life(log, options, Some(home)).await
    }

    async fn begin_life(
        log: EventLog,
        options: SessionsOptions,
        home: Option<Home>,
    ) -> Result<(Self, Recovery), SessionError> {
        let common = Arc::new(Common {
            options: Arc::new(options),
            log,
            ending: watch::Sender::new(Ending::No),
            lease: Lease::new(home.as_ref()).await,
            home,
            taken_up: watch::Sender::new(false),
            tool_source: OnceLock::new(),
        });
        let live = Arc::new(Live::default());
        let others = lease::begin(&common).await?;
        if common.log.is_shared() {
            tokio::spawn(lease::keep(Arc::clone(&common), Arc::downgrade(&live)));
        }
        let mut health = common.log.store().health();
        let taking_up = recall::take_up(others, Arc::clone(&common), Arc::clone(&live));
        // A task of its own: it may have to wait until the log can be written, and the server not.
        let recovery = tokio::select! {
            biased;
            recovery = tokio::spawn(taking_up) => recovery.unwrap_or(Err(SessionError::ShuttingDown))?,
            _ = health.wait_for(|health| *health != Health::Durable) => Recovery::default(),
        };
        tokio::spawn(timer::watch(Arc::downgrade(&live)));
        Ok((Self { common, live }, recovery))
    }

    /// A name for a session that nobody has, and perhaps a sandbox that is started already. Whoever
    /// creates the session under it within a minute gets that sandbox.
    ///
    /// # Errors
    /// When it wants a runtime that there is not.
    pub fn choose_name(&self, new: &NewSession) -> Result<SessionId, SessionError> {
        create::choose_name(new, &self.common)
    }

    /// Makes a session and returns once it is recorded; its state tells when it is ready.
    ///
    /// # Errors
    /// When the request makes no sense, a limit is reached or it cannot be recorded.
    pub async fn create(
        &self,
        new: NewSession,
        owner: Owner,
    ) -> Result<Arc<Session>, SessionError> {
        self.begin(new, owner).await.map(Session::of)
    }

    /// Makes a session and returns once it is ready.
    ///
    /// # Errors
    /// As [`create`](Self::create), and when it could not be started.
    pub async fn create_ready(
        &self,
        new: NewSession,
        owner: Owner,
    ) -> Result<Arc<Session>, SessionError> {
        let session = self.begin(new, owner).await?;
        let mut states = session.state.subscribe();
        let state = states
            .wait_for(|state| *state != SessionState::Starting)
            .await;
        if state.is_ok_and(|state| *state != SessionState::Failed) {
            return Ok(Session::of(session));
        }
        let failure = &session.failure;
        let failure = failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        Err(failure.unwrap_or_else(|| session.wrong_state("be started")))
    }

    /// The session with a name, also one that is closed.
    ///
    /// # Errors
    /// When there is none.
    pub async fn get(&self, session: &SessionId) -> Result<Arc<Session>, SessionError> {
        let found = shelf::find(session, &self.common, &self.live).await?;
        Ok(Session::of(found))
    }

    /// The session with an id, as long as it has not ended. Asks no database.
    pub fn open(&self, session: &SessionId) -> Option<Arc<Session>> {
        self.live.get(session).map(Session::of)
    }

    /// The session that one of all owners calls so; none when several do.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn named(&self, name: &SessionId) -> Result<Option<Arc<Session>>, SessionError> {
        let found = shelf::named(name, &self.common, &self.live).await?;
        Ok(found.map(Session::of))
    }

    /// Sessions by id: of one owner or of everyone, behind a name, at most `limit`.
    pub async fn list(
        &self,
        owner: Option<&Owner>,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Vec<SessionInfo> {
        let listed = shelf::list(owner, after, limit, &self.common, &self.live).await;
        listed.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot list the sessions");
            Vec::new()
        })
    }

    /// How many sessions there are, by how they are. Kept in memory: asking costs nothing.
    pub fn counts(&self) -> BTreeMap<SessionState, usize> {
        self.live.counts()
    }

    /// How many sessions an owner has that have not ended. Kept in memory as well.
    pub fn open_count(&self, owner: &Owner) -> usize {
        self.live.open_count(owner)
    }

    /// Closes a session and removes its log. Its name is not given away again.
    ///
    /// # Errors
    /// When there is none, or it cannot be ended.
    pub async fn remove(&self, session: &SessionId) -> Result<(), SessionError> {
        shelf::remove(session, &self.common, &self.live).await
    }

    /// Has every session get tools from there, beside those that are added to it. The first one to
    /// be told stays.
    pub fn set_tool_source(&self, source: Arc<dyn ToolSource>) {
        let _ = self.common.tool_source.set(source);
    }

    /// What sessions are recorded in.
    pub fn log(&self) -> &EventLog {
        &self.common.log
    }

    /// What all sessions have in common.
    pub fn options(&self) -> &SessionsOptions {
        &self.common.options
    }

    /// Ends in order: takes no more actions, waits for those under way at most `patience` and a
    /// moment, and lets go of the sandboxes, which run on. What came of an action and cannot be
    /// recorded now is recorded by the server that comes next.
    pub async fn shut_down(&self, patience: Duration) {
        self.common.ending.send_replace(Ending::Draining);
        let sessions = self.live.all();
        let unused = async || {
            for session in &sessions {
                let mut users = session.users.subscribe();
                let _ = users.wait_for(|users| *users == 0).await;
            }
        };
        let drained = tokio::time::timeout(patience, unused()).await.is_ok();
        self.common.ending.send_replace(Ending::LettingGo);
        if !drained && tokio::time::timeout(LAST_WORK, unused()).await.is_err() {
            tracing::warn!("some actions are left without a word; they are asked for again");
        }
        futures_util::future::join_all(sessions.iter().map(|session| session.deeds.close())).await;
        for session in sessions {
            let state = session.state();
            if matches!(state, SessionState::Ready | SessionState::Paused)
                && let Err(error) = session.write_down().await
            {
                tracing::warn!(session = %session.id, %error, "cannot write a session down");
            }
            session.take_sandbox();
        }
        self.live.clear();
        lease::end(&self.common).await;
        if let Some(home) = &self.common.home {
            home.release();
        }
    }

    async fn begin(&self, new: NewSession, owner: Owner) -> Result<Arc<Conductor>, SessionError> {
        if *self.common.ending.borrow() != Ending::No {
            return Err(SessionError::ShuttingDown);
        }
        let (common, live) = (Arc::clone(&self.common), Arc::clone(&self.live));
        // A task of its own: a caller who goes away leaves no half-made session.
        let made = tokio::spawn(create::session(new, owner, common, live)).await;
        made.unwrap_or(Err(SessionError::ShuttingDown))
    }
}

impl std::fmt::Debug for SessionsOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runtimes: Vec<&String> = self.runtimes.keys().collect();
        formatter
            .debug_struct("SessionsOptions")
            .field("runtimes", &runtimes)
            .field("default_runtime", &self.default_runtime)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Sessions").finish_non_exhaustive()
    }
}
