//! Sandboxes of another server of ours: each is a session there.

mod changes;
mod files;
mod link;
mod port;
mod programs;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::sync::oneshot;
use zareba_client::{
    Bytes, Client, ClientError, Cpus, CreateSession, ErrorCode, Network, PageQuery, Resources,
    Seconds, Session, SessionLimits, SessionState, Setup, WorkspaceMode as ApiWorkspaceMode,
};
use zareba_protocol::{RuntimeStatus, SessionId};
use zareba_runtime::{
    Capabilities, Grant, Isolation, RequestField, Runtime, RuntimeError, Sandbox, SandboxId,
    SandboxRequest, SandboxSpec, SandboxState, SandboxSummary, Statuses, Strictness, Support,
    Variables, WorkspaceMode,
};
use zareba_wire::BoxFuture;

use self::link::ZarebaLink;
use crate::{
    Farewell, VariableStore,
    sandbox::{Condition, Parts, RemoteSandbox},
};

const NAME: &str = "remote";
/// Sessions that are listed; more are not looked at.
const LISTED_MAX: usize = 10_000;

/// Sandboxes of another server of ours.
#[derive(Clone, Debug)]
pub struct ZarebaRuntime {
    shared: Arc<Shared>,
}

/// What an operator says about another server of ours.
#[derive(Clone, Debug)]
pub struct ZarebaOptions {
    /// The runtime that sessions have there; `None` is the server's own choice.
    pub runtime: Option<String>,
    /// Whose limit counts for how long an action may take that does not say so itself.
    pub timeout: TimeLimit,
    /// Whose limit counts for how long a command may be silent.
    pub no_change_timeout: TimeLimit,
    /// How long an action may take in a sandbox that was found again; `None` is as the server says.
    pub action_timeout: Option<Duration>,
    /// When sessions go to sleep and when they end; what is left out is as the server says.
    pub limits: SessionLimits,
    /// Labels of the sessions.
    pub labels: BTreeMap<String, String>,
    /// What becomes of a sandbox when its handle is dropped.
    pub farewell: Farewell,
}

impl Default for ZarebaOptions {
    fn default() -> Self {
        Self {
            runtime: None,
            timeout: TimeLimit::OfSpec,
            no_change_timeout: TimeLimit::OfSpec,
            action_timeout: Some(Duration::from_secs(120)),
            limits: SessionLimits::default(),
            labels: BTreeMap::new(),
            farewell: Farewell::Close,
        }
    }
}

/// Whose limit in time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// That of the spec: the server is told of it.
    OfSpec,
    /// That of the server's operator: the server is told of none.
    OfServer,
}

impl TimeLimit {
    fn told(self, of_spec: Duration) -> Option<Duration> {
        (self == Self::OfSpec).then_some(of_spec)
    }
}

#[derive(Debug)]
struct Shared {
    client: Client,
    options: ZarebaOptions,
}

impl ZarebaRuntime {
    /// Uses the server of a client; nothing is sent yet.
    pub fn new(client: Client, options: ZarebaOptions) -> Self {
        Self {
            shared: Arc::new(Shared { client, options }),
        }
    }

    /// Its sandboxes, each with the session that it is.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn sessions(&self) -> Result<Vec<(SandboxSummary, Session)>, RuntimeError> {
        self.shared.sessions().await
    }
}

impl ZarebaOptions {
    /// The session that a server is asked for.
    ///
    /// # Errors
    /// When no server can be told of a part of the spec.
    pub fn session(&self, spec: SandboxSpec) -> Result<CreateSession, RuntimeError> {
        let variables = Variables::new(spec.environment)?;
        let id = spec.id.map(|id| SessionId::new(id.as_str())).transpose();
        let id = id.map_err(|error| RuntimeError::Invalid {
            message: error.to_string(),
        })?;
        let workspace = spec
            .workspace
            .map(|path| path.into_os_string().into_string());
        let workspace = workspace.transpose().map_err(|_| RuntimeError::Invalid {
            message: "the path of the workspace is not UTF-8".to_owned(),
        })?;
        let SandboxRequest {
            network,
            memory_bytes,
            cpu_millis,
            pids,
            disk_bytes,
            workspace_mode,
            user,
            mounts,
            plugins,
            strictness,
        } = spec.request;
        let pairs = variables.iter();
        let no_change_timeout = self.no_change_timeout.told(spec.no_change_timeout);
        // Every field by its name: one that is added to the API is decided about here.
        Ok(CreateSession {
            network: network.map(|network| Network {
                mode: network.mode,
                allow: network.allow,
                deny: network.deny,
            }),
            resources: Resources {
                memory: memory_bytes.map(Bytes),
                cpus: cpu_millis.map(Cpus::of_millis),
                pids,
                disk: disk_bytes.map(Bytes),
            },
            workspace_mode: workspace_mode.map(|mode| match mode {
                WorkspaceMode::ReadOnly => ApiWorkspaceMode::ReadOnly,
                WorkspaceMode::CopyOnWrite => ApiWorkspaceMode::CopyOnWrite,
                WorkspaceMode::ReadWrite => ApiWorkspaceMode::ReadWrite,
            }),
            user,
            mounts,
            plugins,
            best_effort: strictness == Strictness::BestEffort,
            id,
            runtime: self.runtime.clone(),
            image: spec.image,
            workspace,
            environment: pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            secrets: BTreeMap::new(),
            labels: self.labels.clone(),
            no_change_timeout: no_change_timeout.map(Seconds::from),
            timeout: self.timeout.told(spec.timeout).map(Seconds::from),
            limits: self.limits,
            // Whoever uses this sandbox sets it up.
            setup: Setup::Nothing,
        })
    }
}

impl Shared {
    async fn create(&self, spec: SandboxSpec) -> Result<RemoteSandbox, RuntimeError> {
        let timeout = self.options.timeout.told(spec.timeout);
        let statuses = Statuses::new(spec.on_status.clone());
        let new = self.options.session(spec)?;
        let starting = "the server was asked for a session";
        statuses.change(RuntimeStatus::StartingRuntime, starting);
        let session = self.client.create_session(new).await.map_err(started_not)?;
        let id = sandbox_id(&session.id)?;
        let farewell = self.options.farewell;
        let sandbox = self.handle(id, &session, timeout, farewell, statuses);
        sandbox.begin().await
    }

    fn handle(
        &self,
        id: SandboxId,
        session: &Session,
        timeout: Option<Duration>,
        farewell: Farewell,
        statuses: Statuses,
    ) -> RemoteSandbox {
        RemoteSandbox::new(Parts {
            id,
            runtime: NAME,
            workspace: session.workspace.clone().into(),
            timeout,
            not_held: session
                .not_held
                .iter()
                .filter_map(|name| RequestField::named(name))
                .collect(),
            variables: VariableStore::DefaultShell,
            farewell,
            statuses,
            link: Box::new(ZarebaLink::new(self.client.clone(), session.id.clone())),
        })
    }

    async fn attach(&self, id: SandboxId) -> Result<RemoteSandbox, RuntimeError> {
        let session = self.find(&id).await?;
        let condition = match session.state {
            SessionState::Starting | SessionState::Ready => Condition::Awake,
            SessionState::Paused => Condition::Asleep,
            SessionState::Failed | SessionState::Lost | SessionState::Closed => {
                return Err(RuntimeError::NotFound { sandbox: id });
            }
        };
        let (timeout, statuses) = (self.options.action_timeout, Statuses::new(None));
        let sandbox = self.handle(id, &session, timeout, Farewell::Leave, statuses);
        sandbox.take_up(condition).await
    }

    async fn find(&self, id: &SandboxId) -> Result<Session, RuntimeError> {
        let missing = || RuntimeError::NotFound {
            sandbox: id.clone(),
        };
        let name = SessionId::new(id.as_str()).map_err(|_| missing())?;
        match self.client.session(&name).await {
            Err(error) if Client::is_missing(&error) => Err(missing()),
            result => result.map_err(asked_not),
        }
    }

    async fn destroy(&self, id: SandboxId) -> Result<(), RuntimeError> {
        let session = self.find(&id).await?;
        if session.state == SessionState::Closed {
            return Err(RuntimeError::NotFound { sandbox: id });
        }
        let ended = self.client.delete_session(&session.id).await;
        ended.map_err(asked_not)
    }

    async fn list(&self) -> Result<Vec<SandboxSummary>, RuntimeError> {
        let sessions = self.sessions().await?.into_iter();
        Ok(sessions.map(|(summary, _)| summary).collect())
    }

    async fn sessions(&self) -> Result<Vec<(SandboxSummary, Session)>, RuntimeError> {
        let mut found = Vec::new();
        let mut page = PageQuery::default();
        while found.len() < LISTED_MAX {
            let sessions = self.client.sessions(&page).await.map_err(asked_not)?;
            let living = sessions.sessions.into_iter();
            found.extend(living.filter_map(|session| Some((summary(&session)?, session))));
            match sessions.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        Ok(found)
    }
}

fn summary(session: &Session) -> Option<SandboxSummary> {
    let state = match session.state {
        SessionState::Starting | SessionState::Ready => SandboxState::Running,
        SessionState::Paused => SandboxState::Paused,
        SessionState::Failed | SessionState::Lost => SandboxState::Lost,
        SessionState::Closed => return None,
    };
    Some(SandboxSummary {
        id: SandboxId::new(session.id.as_str())?,
        runtime: NAME,
        state,
        image: session.image.clone(),
        created: session.created.into(),
    })
}

impl Runtime for ZarebaRuntime {
    fn name(&self) -> &'static str {
        NAME
    }

    /// What the other server's runtime cannot do it says when it is asked.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            isolation: Isolation::Remote,
            pause: Support::Yes,
            checkpoint: Support::No,
            attach: Support::Yes,
            changes: Support::Yes,
        }
    }

    /// The other server decides, and says so when it is asked.
    fn grant(&self, _request: &SandboxRequest) -> Result<Grant, RuntimeError> {
        Ok(Grant::default())
    }

    fn create(&self, spec: SandboxSpec) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let (sender, created) = oneshot::channel();
            // In a task of its own: when nobody waits any more, what was made is ended.
            tokio::spawn(async move {
                if let Err(Ok(unwanted)) = sender.send(shared.create(spec).await) {
                    unwanted.end().await;
                }
            });
            match created.await {
                Ok(sandbox) => Ok(Arc::new(sandbox?) as Arc<dyn Sandbox>),
                Err(error) => Err(RuntimeError::Start {
                    runtime: NAME,
                    source: Box::new(error),
                }),
            }
        })
    }

    fn attach(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        let sandbox = sandbox.clone();
        Box::pin(async move {
            let attached = self.shared.attach(sandbox).await?;
            Ok(Arc::new(attached) as Arc<dyn Sandbox>)
        })
    }

    fn destroy(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.shared.destroy(sandbox.clone()))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<SandboxSummary>, RuntimeError>> {
        Box::pin(self.shared.list())
    }
}

fn sandbox_id(session: &SessionId) -> Result<SandboxId, RuntimeError> {
    SandboxId::new(session.as_str()).ok_or_else(|| RuntimeError::Invalid {
        message: format!("the session `{session}` cannot name a sandbox"),
    })
}

fn started_not(error: ClientError) -> RuntimeError {
    use zareba_protocol::ErrorClass::{Invalid, Unsupported};
    let is_forbidden = error.code() == Some(ErrorCode::Forbidden);
    match error.class() {
        class if is_forbidden || matches!(class, Invalid | Unsupported) => {
            let hint = match &error {
                ClientError::Refused {
                    hint: Some(hint), ..
                } => format!("; {hint}"),
                _ => String::new(),
            };
            RuntimeError::Invalid {
                message: format!("the server makes no such session: {error}{hint}"),
            }
        }
        _ => RuntimeError::Start {
            runtime: NAME,
            source: Box::new(error),
        },
    }
}

fn asked_not(error: ClientError) -> RuntimeError {
    match error {
        ClientError::Timeout { waited } => RuntimeError::Timeout { waited },
        error => RuntimeError::Internal {
            deed: "ask the server for its sandboxes",
            source: Box::new(error),
        },
    }
}
