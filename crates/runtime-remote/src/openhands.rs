//! Sandboxes of a server that speaks OpenHands' remote runtime API.

mod api;
mod found;
mod link;
mod options;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::sync::oneshot;
use zareba_protocol::RuntimeStatus;
use zareba_runtime::{
    Capabilities, Grant, Isolation, RequestField, Runtime, RuntimeError, Sandbox, SandboxId,
    SandboxRequest, SandboxSpec, SandboxState, SandboxSummary, Statuses, Support, Variables,
    request::hold_nothing,
};
use zareba_wire::BoxFuture;

pub use options::OpenHandsOptions;

use self::{
    api::{Api, StartRequest},
    found::{Found, State},
    link::OpenHandsLink,
};
use crate::{
    Farewell, InvalidAddress,
    http::Http,
    link::LinkError,
    sandbox::{Condition, Parts, RemoteSandbox},
};

const NAME: &str = "remote";
/// Why no part of a request is sent on.
const HOLDS_NOTHING: &str = "OpenHands' API has no field for it";

/// Sandboxes of a server that speaks OpenHands' remote runtime API.
///
/// The API cannot give a sandbox a directory of this machine; a spec that asks for one is refused.
#[derive(Clone, Debug)]
pub struct OpenHandsRuntime {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: OpenHandsOptions,
    api: Arc<Api>,
}

/// What a new handle on a sandbox is like.
struct Handle {
    id: SandboxId,
    not_held: Vec<RequestField>,
    timeout: Duration,
    farewell: Farewell,
    statuses: Statuses,
}

impl OpenHandsRuntime {
    /// Takes the options; nothing is sent yet.
    ///
    /// # Errors
    /// When the address is none, or TLS cannot be set up.
    pub fn new(options: OpenHandsOptions) -> Result<Self, InvalidAddress> {
        let http = Http::new().map_err(|error| InvalidAddress {
            address: options.api_url.clone(),
            problem: format!("requests cannot be made: {error}"),
        })?;
        let api = Arc::new(Api::new(&options, http)?);
        let shared = Arc::new(Shared { options, api });
        Ok(Self { shared })
    }
}

impl Shared {
    async fn create(&self, spec: SandboxSpec) -> Result<RemoteSandbox, RuntimeError> {
        let environment = self.environment(&spec)?;
        let not_held = hold_nothing(NAME, &spec.request, HOLDS_NOTHING)?;
        let id = match spec.id {
            Some(id) => id,
            None => random_id()?,
        };
        let handle = Handle {
            id: id.clone(),
            timeout: spec.timeout,
            not_held,
            farewell: self.options.farewell,
            statuses: Statuses::new(spec.on_status),
        };
        let starting = "the server was asked for a sandbox";
        handle
            .statuses
            .change(RuntimeStatus::StartingRuntime, starting);
        let image = spec.image.or_else(|| self.options.image.clone());
        let request = StartRequest {
            session_id: id.as_str().to_owned(),
            image,
            command: self.options.command(),
            working_dir: "/openhands/code/",
            environment,
            resource_factor: self.options.resource_factor,
        };
        let found = self.api.start(&request).await.map_err(started_not)?;
        let runtime_id = found.runtime_id.clone();
        match self.link(found, handle) {
            Ok(sandbox) => sandbox.begin().await,
            Err(error) => {
                // It cannot be reached from here, but it runs.
                let stopped = self.api.stop(&runtime_id).await;
                if let Err(error) = stopped {
                    tracing::warn!(%error, runtime_id, "a sandbox could not be ended");
                }
                Err(error)
            }
        }
    }

    fn environment(
        &self,
        spec: &SandboxSpec,
    ) -> Result<serde_json::Map<String, serde_json::Value>, RuntimeError> {
        if spec.workspace.is_some() {
            return Err(RuntimeError::Unsupported {
                runtime: NAME,
                deed: "use a directory of this machine as the workspace",
            });
        }
        let variables = Variables::new(spec.environment.clone())?;
        let mut environment = serde_json::Map::new();
        let silence = spec.no_change_timeout.as_secs().max(1).to_string();
        environment.insert("NO_CHANGE_TIMEOUT_SECONDS".to_owned(), silence.into());
        for (name, value) in variables.iter() {
            environment.insert(name.to_owned(), value.into());
        }
        Ok(environment)
    }

    /// A handle on what the server told of, not yet known to answer.
    fn link(&self, found: Found, handle: Handle) -> Result<RemoteSandbox, RuntimeError> {
        let workspace = found.workspace.clone();
        let workspace = workspace.unwrap_or_else(|| self.options.workspace.clone());
        let url = self.api.trusted(&found.url).map_err(started_not)?;
        let link = OpenHandsLink::new(Arc::clone(&self.api), found, url, &self.options);
        Ok(RemoteSandbox::new(Parts {
            id: handle.id,
            runtime: NAME,
            workspace,
            timeout: Some(handle.timeout),
            not_held: handle.not_held,
            variables: self.options.variables,
            farewell: handle.farewell,
            statuses: handle.statuses,
            link: Box::new(link),
        }))
    }

    async fn attach(&self, id: SandboxId) -> Result<RemoteSandbox, RuntimeError> {
        let found = self.find(&id).await?;
        let condition = match found.state {
            State::Running | State::Starting => Condition::Awake,
            State::Paused => Condition::Asleep,
            State::Ended => return Err(RuntimeError::NotFound { sandbox: id }),
        };
        let statuses = Statuses::new(None);
        statuses.change(RuntimeStatus::RuntimeStarted, "the server has the sandbox");
        let sandbox = self.link(
            found,
            Handle {
                id,
                timeout: self.options.action_timeout,
                not_held: Vec::new(),
                farewell: Farewell::Leave,
                statuses,
            },
        )?;
        sandbox.take_up(condition).await
    }

    async fn find(&self, id: &SandboxId) -> Result<Found, RuntimeError> {
        match self.api.session(id.as_str()).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(RuntimeError::NotFound {
                sandbox: id.clone(),
            }),
            Err(error) => Err(asked_not(error)),
        }
    }

    async fn destroy(&self, id: SandboxId) -> Result<(), RuntimeError> {
        let found = self.find(&id).await?;
        if found.state == State::Ended {
            return Err(RuntimeError::NotFound { sandbox: id });
        }
        self.api.stop(&found.runtime_id).await.map_err(asked_not)
    }

    async fn list(&self) -> Result<Vec<SandboxSummary>, RuntimeError> {
        let found = self.api.list().await.map_err(asked_not)?;
        let summary = |found: Found| {
            Some(SandboxSummary {
                id: SandboxId::new(found.session_id?)?,
                runtime: NAME,
                state: match found.state {
                    State::Starting | State::Running => SandboxState::Running,
                    State::Paused => SandboxState::Paused,
                    State::Ended => SandboxState::Lost,
                },
                image: None,
                // The API does not say.
                created: SystemTime::UNIX_EPOCH,
            })
        };
        Ok(found.into_iter().filter_map(summary).collect())
    }
}

impl Runtime for OpenHandsRuntime {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            isolation: Isolation::Remote,
            pause: Support::Yes,
            checkpoint: Support::No,
            attach: Support::Yes,
            changes: Support::No,
        }
    }

    fn grant(&self, request: &SandboxRequest) -> Result<Grant, RuntimeError> {
        Ok(Grant {
            not_held: hold_nothing(NAME, request, HOLDS_NOTHING)?,
            ..Grant::default()
        })
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
                Err(error) => Err(started_not(error)),
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

fn random_id() -> Result<SandboxId, RuntimeError> {
    let name = format!("remote-{:032x}", rand::random::<u128>());
    SandboxId::new(name).ok_or_else(|| RuntimeError::Invalid {
        message: "a random name was no name".to_owned(),
    })
}

fn started_not(error: impl std::error::Error + Send + Sync + 'static) -> RuntimeError {
    RuntimeError::Start {
        runtime: NAME,
        source: Box::new(error),
    }
}

fn asked_not(error: LinkError) -> RuntimeError {
    match error {
        LinkError::Timeout { waited } => RuntimeError::Timeout { waited },
        error => RuntimeError::Internal {
            deed: "ask the server for its sandboxes",
            source: Box::new(error),
        },
    }
}
