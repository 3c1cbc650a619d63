//! A sandbox in a container, as callers see it.

mod files;
mod limits;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use bollard::models::ContainerInspectResponse;
use serde_json::Value;
use tokio::{net::TcpStream, sync::watch};
use zareba_protocol::{ActionEvent, ErrorClass, LimitHit, ObservationEvent, RuntimeStatus};
use zareba_runtime::{
    Forwarded, RequestField, RuntimeError, Sandbox, SandboxFiles, SandboxId, Statuses, Turns,
    life::Life,
};
use zareba_wire::{
    BoxFuture,
    client::ClientError,
    output::{OutputPiece, OutputRequest, StopRequest},
    program::{ProgramConnection, ProgramRequest},
    variables::VariableChanges,
};

use crate::{
    EngineError, EngineFault, EnginePlace, Lifetime, NetworkChoice, copy,
    docker::{NAME, Shared},
    door::Link,
    engine::{Engine, ImageFound},
    groups::LimitCounters,
    keep::Fate,
    kernel::Held,
    make::cannot_start,
    monitor,
    record::Record,
    relay,
    watcher::Happened,
};

/// How long a program inside may take to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// What a sandbox is made of.
pub(crate) struct Parts {
    pub(crate) id: SandboxId,
    pub(crate) container: String,
    pub(crate) record: Record,
    /// What is known when we made it ourselves.
    pub(crate) image: Option<ImageFound>,
    pub(crate) held: Option<Held>,
    pub(crate) link: Link,
    pub(crate) shared: Arc<Shared>,
    pub(crate) engine: Engine,
    pub(crate) statuses: Arc<Statuses>,
    pub(crate) life: Life,
    pub(crate) fate: Arc<Fate>,
    pub(crate) happened: watch::Receiver<Happened>,
    /// What counts the limits that were met, where that can be read here.
    pub(crate) counters: Option<LimitCounters>,
}

/// A running container.
pub(crate) struct DockerSandbox {
    pub(crate) parts: Parts,
    ports: Vec<Forwarded>,
    turns: Turns,
    /// Of the times that memory ran out, by the Engine's count, so many were told.
    oom_told: AtomicU64,
}

impl fmt::Debug for DockerSandbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DockerSandbox")
            .field("id", &self.parts.id)
            .field("container", &self.parts.container)
            .finish_non_exhaustive()
    }
}

impl DockerSandbox {
    pub(crate) fn new(parts: Parts, container: &ContainerInspectResponse) -> Self {
        Self {
            parts,
            ports: forwarded(container),
            turns: Turns::default(),
            oom_told: AtomicU64::new(0),
        }
    }

    /// From now on it is somebody's, who may want it to go on without us.
    pub(crate) fn become_kept(
        &mut self,
        timeout: Duration,
        lifetime: Lifetime,
    ) -> Result<(), RuntimeError> {
        let parts = &mut self.parts;
        parts.record.timeout = timeout;
        parts.record.lifetime = lifetime;
        if lifetime != Lifetime::WithUs {
            let directory = parts.shared.directory.join(parts.id.as_str());
            parts.record.replace(&directory).map_err(cannot_start)?;
            parts.life.outlive();
        }
        Ok(())
    }

    async fn run(&self, action: ActionEvent) -> Result<ObservationEvent, RuntimeError> {
        let turn = self.turns.wait(&action).await;
        // Said here and not left to the executor, so that its client waits as long as it.
        let action = match action.hard_timeout() {
            Some(_) => action,
            None => action.with_timeout(self.parts.record.timeout.as_secs_f64()),
        };
        let link = self.parts.link.clone();
        let answer = self.inside("run the action", async move {
            let _turn = turn;
            link.client().execute(action).await
        });
        let mut event = answer.await?;
        self.tell_limits(&mut event.observation).await;
        Ok(event)
    }

    /// Asks the executor for something, in a task that ends when the sandbox is closed.
    async fn inside<T: Send + 'static>(
        &self,
        deed: &'static str,
        work: impl Future<Output = Result<T, ClientError>> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        self.require_running()?;
        match self.parts.life.run(work).await {
            Ok(result) => result.map_err(|error| self.explain(deed, error)),
            Err(_) => Err(self.closed()),
        }
    }

    async fn transfer<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RuntimeError>> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        self.require_running()?;
        match self.parts.life.run(work).await {
            Ok(result) => result,
            Err(_) => Err(self.closed()),
        }
    }

    fn require_running(&self) -> Result<(), RuntimeError> {
        match self.parts.statuses.current() {
            RuntimeStatus::Stopped => Err(self.closed()),
            RuntimeStatus::RuntimeDisconnected => Err(self.disconnected(None)),
            _ if self.parts.fate.is_paused() => Err(RuntimeError::Paused {
                sandbox: self.parts.id.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn closed(&self) -> RuntimeError {
        RuntimeError::Closed {
            sandbox: self.parts.id.clone(),
        }
    }

    /// How it has ended says more than how the connection broke.
    fn disconnected(&self, error: Option<ClientError>) -> RuntimeError {
        let ended = self.parts.fate.ended();
        RuntimeError::Disconnected {
            sandbox: self.parts.id.clone(),
            source: match (ended, error) {
                (Some(reason), _) => Some(Box::new(reason)),
                (None, Some(error)) => Some(Box::new(error)),
                (None, None) => None,
            },
        }
    }

    fn explain(&self, deed: &'static str, error: ClientError) -> RuntimeError {
        match error {
            ClientError::Program(error) => RuntimeError::Program(error),
            ClientError::File(error) => RuntimeError::File(error),
            ClientError::Timeout { waited } => RuntimeError::Timeout { waited },
            ClientError::InvalidRequest { problem } => RuntimeError::Invalid { message: problem },
            error => match error.class() {
                ErrorClass::Disconnected => self.disconnected(Some(error)),
                ErrorClass::Busy => RuntimeError::Busy {
                    sandbox: self.parts.id.clone(),
                    deed,
                    reason: error.to_string(),
                },
                _ => RuntimeError::Internal {
                    deed,
                    source: Box::new(error),
                },
            },
        }
    }

    /// What the Engine did not do to it.
    fn explain_engine(&self, deed: &'static str, error: EngineError) -> RuntimeError {
        match error.fault {
            EngineFault::Missing => self.disconnected(None),
            EngineFault::Conflict => RuntimeError::Busy {
                sandbox: self.parts.id.clone(),
                deed,
                reason: error.source.to_string(),
            },
            _ => RuntimeError::Internal {
                deed,
                source: Box::new(error),
            },
        }
    }

    async fn set_paused(&self, paused: bool) -> Result<(), RuntimeError> {
        match self.parts.statuses.current() {
            RuntimeStatus::Stopped => return Err(self.closed()),
            RuntimeStatus::RuntimeDisconnected => return Err(self.disconnected(None)),
            // As often as one likes.
            _ if self.parts.fate.is_paused() == paused => return Ok(()),
            _ => {}
        }
        let (deed, asked) = if paused {
            let asked = self.parts.engine.pause(&self.parts.container).await;
            ("pause a sandbox", asked)
        } else {
            let asked = self.parts.engine.unpause(&self.parts.container).await;
            ("resume a sandbox", asked)
        };
        asked.map_err(|error| self.explain_engine(deed, error))?;
        self.parts.fate.set_paused(paused);
        Ok(())
    }

    async fn connect(&self, port: u16) -> Result<TcpStream, RuntimeError> {
        self.require_running()?;
        if self.parts.record.place == EnginePlace::Elsewhere {
            return self.connect_through_engine(port).await;
        }
        let address = match &self.parts.shared.options.network {
            NetworkChoice::Host => IpAddr::V4(Ipv4Addr::LOCALHOST),
            NetworkChoice::Nothing => {
                return Err(RuntimeError::Invalid {
                    message: format!(
                        "cannot connect to port {port}: the sandbox has no network; \
                         choose one of its own"
                    ),
                });
            }
            NetworkChoice::Own(_) | NetworkChoice::Named(_) => self.address().await?,
        };
        let connected = TcpStream::connect((address, port));
        let connected = tokio::time::timeout(CONNECT_MAX, connected).await;
        let refused = |problem: String| RuntimeError::Invalid {
            message: format!("cannot connect to port {port}: {problem}"),
        };
        match connected {
            Ok(connected) => connected.map_err(|error| refused(error.to_string())),
            Err(_) => Err(refused(format!("no answer within {CONNECT_MAX:?}"))),
        }
    }

    /// Its networks are another machine's, so the way is the one to its executor. It needs none.
    async fn connect_through_engine(&self, port: u16) -> Result<TcpStream, RuntimeError> {
        let (engine, container) = (self.parts.engine.clone(), self.parts.container.clone());
        let connected = relay::connect(engine, container, port).await;
        connected.map_err(|error| RuntimeError::Invalid {
            message: format!("cannot connect to port {port}: {error}"),
        })
    }

    /// Its address on the first network that gave it one.
    async fn address(&self) -> Result<IpAddr, RuntimeError> {
        let deed = "find the address of a sandbox";
        let found = self.parts.engine.inspect(&self.parts.container).await;
        let found = found.map_err(|error| self.explain_engine(deed, error))?;
        let networks = found.network_settings.and_then(|it| it.networks);
        let mut addresses = networks
            .into_iter()
            .flatten()
            .filter_map(|(_, network)| network.ip_address?.parse().ok());
        addresses.next().ok_or_else(|| RuntimeError::Invalid {
            message: "the sandbox has no address on its network".to_owned(),
        })
    }

    /// A path inside; relative ones start in the workspace.
    fn inner(&self, path: &Path) -> PathBuf {
        self.parts.record.workspace.join(path)
    }
}

/// Ports that the Engine publishes.
fn forwarded(container: &ContainerInspectResponse) -> Vec<Forwarded> {
    let ports = container.network_settings.as_ref();
    let ports = ports.and_then(|settings| settings.ports.as_ref());
    let mut found = Vec::new();
    for (inside, bindings) in ports.into_iter().flatten() {
        let inside = inside.split('/').next().and_then(|port| port.parse().ok());
        for binding in bindings.iter().flatten() {
            let address = binding.host_ip.as_deref().and_then(|ip| ip.parse().ok());
            let port = binding
                .host_port
                .as_deref()
                .and_then(|port| port.parse().ok());
            if let (Some(inside), Some(address), Some(port)) = (inside, address, port) {
                let outside = SocketAddr::new(address, port);
                found.push(Forwarded { inside, outside });
            }
        }
    }
    found.sort_by_key(|port| (port.inside, port.outside));
    found
}

impl Sandbox for DockerSandbox {
    fn id(&self) -> &SandboxId {
        &self.parts.id
    }

    fn runtime(&self) -> &'static str {
        NAME
    }

    fn not_held(&self) -> &[RequestField] {
        &self.parts.record.not_held
    }

    fn status(&self) -> RuntimeStatus {
        self.parts.statuses.current()
    }

    fn workspace(&self) -> &Path {
        &self.parts.record.workspace
    }

    fn run_action(
        &self,
        action: ActionEvent,
    ) -> BoxFuture<'_, Result<ObservationEvent, RuntimeError>> {
        Box::pin(self.run(action))
    }

    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, RuntimeError>> {
        let link = self.parts.link.clone();
        let start = async move { link.client().start_program(&request).await };
        Box::pin(self.inside("start the program", start))
    }

    fn read_output(
        &self,
        request: OutputRequest,
    ) -> BoxFuture<'_, Result<OutputPiece, RuntimeError>> {
        let link = self.parts.link.clone();
        let read = async move { link.client().read_output(&request).await };
        Box::pin(self.inside("read the output", read))
    }

    fn stop_action(&self, request: StopRequest) -> BoxFuture<'_, Result<bool, RuntimeError>> {
        let link = self.parts.link.clone();
        let stop = async move { link.client().stop_action(&request).await };
        Box::pin(self.inside("stop the action", stop))
    }

    fn copy_to<'a>(
        &'a self,
        from: &'a Path,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        let (link, from, to) = (self.parts.link.clone(), from.to_owned(), self.inner(to));
        Box::pin(self.transfer(async move { copy::copy_in(link.client(), &from, to).await }))
    }

    fn copy_from<'a>(
        &'a self,
        from: &'a Path,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        let (link, from, to) = (self.parts.link.clone(), self.inner(from), to.to_owned());
        Box::pin(self.transfer(async move { copy::copy_out(link.client(), from, &to).await }))
    }

    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, RuntimeError>> {
        let link = self.parts.link.clone();
        Box::pin(self.inside("list files", async move {
            let path = path.as_deref().map(Path::new);
            link.client().list_files(path).await
        }))
    }

    fn files(&self) -> Result<&dyn SandboxFiles, RuntimeError> {
        Ok(self)
    }

    fn set_variables(&self, changes: VariableChanges) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let link = self.parts.link.clone();
        let set = async move { link.client().set_variables(&changes).await };
        Box::pin(self.inside("set variables", set))
    }

    fn ports(&self) -> Vec<Forwarded> {
        self.ports.clone()
    }

    fn connect_port(&self, port: u16) -> BoxFuture<'_, Result<TcpStream, RuntimeError>> {
        Box::pin(self.connect(port))
    }

    fn limits_met(&self, exit_code: i64) -> BoxFuture<'_, Vec<LimitHit>> {
        Box::pin(self.met(exit_code))
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Value, RuntimeError>> {
        Box::pin(async move {
            let described = monitor::describe(&self.parts).await;
            described.map_err(|error| self.explain_engine("inspect a sandbox", error))
        })
    }

    fn pause(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.set_paused(true))
    }

    fn resume(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(self.set_paused(false))
    }

    fn close(&self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move {
            self.parts.life.close().await;
            match self.parts.fate.take_failure() {
                None => Ok(()),
                Some(error) => Err(RuntimeError::Internal {
                    deed: "remove the sandbox",
                    source: Box::new(error),
                }),
            }
        })
    }
}
