//! Starting an executor, and owning it until it is closed.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use zareba_protocol::RuntimeStatus;
use zareba_runtime::{RuntimeError, SandboxId, SandboxSpec, Statuses, Variables};
use zareba_wire::{Endpoint, SessionKey, client::ExecutorClient};

use super::NAME;
use crate::{
    LocalOptions, NativeOptions, ServerLifetime, Walls,
    cli::new_id,
    directory::RunDirectory,
    life::{self, Farewell, Keeper, Life},
    link::Link,
    native, notice,
    process::ProcessIdentity,
    record::{Record, RecordedLifetime},
    server::{self, Order, Server, Tether},
};

/// How long an executor may take until it is ready. Its first shell reads the user's own
/// start-up file, which may take its time.
const START_MAX: Duration = Duration::from_secs(60);

/// Starts executors.
#[derive(Debug)]
pub(super) struct Launcher {
    pub(super) options: NativeOptions,
    pub(super) local: LocalOptions,
    pub(super) walls: Option<Walls>,
}

/// An executor that is ready. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) id: SandboxId,
    pub(super) workspace: PathBuf,
    pub(super) link: Link,
    pub(super) life: Life,
    fate: Arc<Fate>,
    directory: PathBuf,
    process: ProcessIdentity,
    socket: PathBuf,
    key: String,
}

/// What an executor's task has to tell, and whom: a warm one belongs to nobody yet.
#[derive(Debug, Default)]
pub(super) struct Fate {
    statuses: OnceLock<Arc<Statuses>>,
    lost: AtomicBool,
}

impl Launcher {
    /// The runtime's name.
    pub(super) fn name(&self) -> &'static str {
        if self.walls.is_some() {
            native::NAME
        } else {
            NAME
        }
    }

    /// Says that nothing is isolated, when that is so.
    pub(super) fn tell_once(&self) {
        if self.walls.is_none() {
            notice::tell_once();
        }
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.options.state_dir.join(self.name())
    }

    /// Starts an executor for a sandbox and tells of it.
    pub(super) async fn launch(
        &self,
        spec: &SandboxSpec,
        variables: &Variables,
        statuses: &Arc<Statuses>,
    ) -> Result<Started, RuntimeError> {
        let workspace = spec.workspace.as_deref();
        let fate = Fate::told_to(statuses);
        let (started, readiness) =
            self.spawn(workspace, spec.no_change_timeout, variables, fate)?;
        statuses.change(RuntimeStatus::RuntimeStarted, "Runtime started.");
        started.ready(readiness).await
    }

    /// Starts an executor for a sandbox to come.
    pub(super) async fn launch_ahead(&self) -> Result<Started, RuntimeError> {
        let none = Variables::new(Vec::new())?;
        let silence = self.local.warm_no_change_timeout;
        let (started, readiness) = self.spawn(None, silence, &none, Arc::default())?;
        started.ready(readiness).await
    }

    fn spawn(
        &self,
        workspace: Option<&Path>,
        no_change_timeout: Duration,
        variables: &Variables,
        fate: Arc<Fate>,
    ) -> Result<(Started, server::Readiness), RuntimeError> {
        let id = new_id(self.name());
        let mut directory = RunDirectory::create(&self.directory(), &id).map_err(cannot_start)?;
        let workspace = match workspace {
            Some(path) => {
                let path = std::fs::create_dir_all(path)
                    .and_then(|()| std::fs::canonicalize(path))
                    .map_err(cannot_start)?;
                if self.walls.is_some() {
                    native::check_workspace(&path, &self.options)?;
                }
                path
            }
            None => directory.make("workspace").map_err(cannot_start)?,
        };
        let tether = match self.local.lifetime {
            ServerLifetime::WithUs => Tether::Lifeline,
            ServerLifetime::KeptAlive { .. } => Tether::Free,
        };
        let spawned = server::spawn(&Order {
            program: &self.local.program,
            options: &self.options,
            directory: directory.path(),
            working_dir: &workspace,
            no_change_timeout,
            sandbox: &id,
            variables,
            tether,
            walls: self.walls,
        })
        .map_err(cannot_start)?;
        if tether == Tether::Free {
            directory.outlive();
        }
        let (life, keeper) = life::begin();
        let started = Started {
            link: link_to(&spawned.socket, &spawned.key)?,
            id,
            workspace: if self.walls.is_some() {
                native::WORKSPACE.into()
            } else {
                workspace
            },
            life,
            fate: Arc::clone(&fate),
            directory: directory.path().to_owned(),
            process: spawned.server.process.identity().clone(),
            socket: spawned.socket,
            key: spawned.key,
        };
        tokio::spawn(keep(keeper, directory, spawned.server, fate));
        Ok((started, spawned.readiness))
    }
}

impl Started {
    async fn ready(self, readiness: server::Readiness) -> Result<Self, RuntimeError> {
        match tokio::time::timeout(START_MAX, readiness.ready()).await {
            Ok(Ok(())) => Ok(self),
            Ok(Err(error)) => Err(cannot_start(error)),
            Err(_) => Err(RuntimeError::NotReady {
                sandbox: self.id,
                waited: START_MAX,
            }),
        }
    }

    /// Whether it ended by itself while nobody used it.
    pub(super) fn is_lost(&self) -> bool {
        self.fate.lost.load(Ordering::Acquire)
    }

    /// From now on its changes are told to these.
    pub(super) fn give(&self, statuses: &Arc<Statuses>) {
        let _ = self.fate.statuses.set(Arc::clone(statuses));
    }

    /// Tells of a loss that came before anybody could be told.
    pub(super) fn confirm(&self, statuses: &Statuses) {
        if self.is_lost() && statuses.current() == RuntimeStatus::Ready {
            tell_loss(statuses);
        }
    }

    /// Writes down how to find it again.
    pub(super) fn record(
        &self,
        timeout: Duration,
        local: &LocalOptions,
    ) -> Result<(), RuntimeError> {
        let record = Record {
            process: self.process.clone(),
            socket: self.socket.clone(),
            key: self.key.clone(),
            workspace: self.workspace.clone(),
            timeout,
            lifetime: match local.lifetime {
                ServerLifetime::WithUs => RecordedLifetime::WithItsOwner,
                ServerLifetime::KeptAlive { idle_timeout } => {
                    RecordedLifetime::KeptAlive { idle_timeout }
                }
            },
        };
        record.write(&self.directory).map_err(cannot_start)
    }
}

/// The way to an executor that listens on a socket.
pub(super) fn link_to(socket: &Path, key: &str) -> Result<Link, RuntimeError> {
    let key = SessionKey::new(key).map_err(cannot_start)?;
    let endpoint = Endpoint::Unix(socket.to_owned());
    Ok(Link::Request(ExecutorClient::new(endpoint, Some(key))))
}

/// Owns an executor and its directory until it is closed, or left running.
pub(super) async fn keep(
    mut keeper: Keeper,
    directory: RunDirectory,
    mut server: Server,
    fate: Arc<Fate>,
) {
    let farewell = tokio::select! {
        biased;
        farewell = keeper.farewell() => farewell,
        _ = server.process.ended() => {
            fate.lost.store(true, Ordering::Release);
            if let Some(statuses) = fate.statuses.get()
                && statuses.current() == RuntimeStatus::Ready
            {
                tell_loss(statuses);
            }
            keeper.farewell().await
        }
    };
    if farewell == Farewell::Leave && !server.process.has_ended() {
        directory.leave();
        // Somebody has to reap it, should it end before we do.
        server.process.ended().await;
        return;
    }
    keeper.emptied().await;
    server.end().await;
    forget_group(&directory).await;
    directory.remove().await;
    if let Some(statuses) = fate.statuses.get() {
        statuses.change(RuntimeStatus::Stopped, "Runtime stopped.");
    }
}

/// A supervisor that was killed or told to end has left its control groups.
pub(super) async fn forget_group(directory: &RunDirectory) {
    let id = directory
        .path()
        .file_name()
        .and_then(|name| name.to_str())
        .map(str::to_owned);
    let Some(id) = id.filter(|id| id.starts_with(native::NAME)) else {
        return;
    };
    // A panic there is logged by the runtime, and the directory goes all the same.
    let _ = tokio::task::spawn_blocking(move || native::forget_group(&id)).await;
}

impl Fate {
    /// One whose changes are told from the beginning.
    pub(super) fn told_to(statuses: &Arc<Statuses>) -> Arc<Self> {
        let fate = Self::default();
        let _ = fate.statuses.set(Arc::clone(statuses));
        Arc::new(fate)
    }
}

fn tell_loss(statuses: &Statuses) {
    let message = "The executor has ended unexpectedly.";
    statuses.change(RuntimeStatus::RuntimeDisconnected, message);
}

pub(super) fn cannot_start(error: impl std::error::Error + Send + Sync + 'static) -> RuntimeError {
    RuntimeError::Start {
        runtime: NAME,
        source: Box::new(error),
    }
}
