//! Starting an executor, and owning it until it is closed.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use zareba_egress::Policy;
use zareba_image::{ImageError, ImageStore};
use zareba_protocol::{ErrorClass, RuntimeStatus};
use zareba_runtime::{
    Grant, RequestField, RuntimeError, SandboxId, SandboxRequest, SandboxSpec, Statuses, Variables,
    life::{self, Farewell, Keeper, Life},
    notes::Draft,
    request::grant_without_walls,
};
use zareba_wire::{Endpoint, SessionKey, client::ExecutorClient};

use super::NAME;
use crate::{
    LocalOptions, NativeOptions, ServerLifetime, Walls,
    cli::new_id,
    directory::{DirectoryError, RunDirectory},
    link::Link,
    native::{self, Enclosure},
    notice,
    process::ProcessIdentity,
    record::{Record, RecordedLifetime},
    server::{self, Order, Server, Tether, Tie},
    spawner::Spawner,
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
    /// Those of the operator, for sandboxes that ask for a filtered network.
    pub(super) rules: Option<Policy>,
    pub(super) spawner: Arc<Spawner>,
}

/// An executor that is ready. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) id: SandboxId,
    pub(super) workspace: PathBuf,
    pub(super) link: Link,
    pub(super) life: Life,
    /// What can be done to it from outside, when it has walls.
    pub(super) enclosure: Option<Arc<Enclosure>>,
    pub(super) not_held: Vec<RequestField>,
    image: Option<String>,
    tie: Option<Tie>,
    draft: Option<Draft>,
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

/// What an executor is asked for.
struct Wanted<'a> {
    id: Option<&'a SandboxId>,
    image: Option<&'a str>,
    workspace: Option<&'a Path>,
    no_change_timeout: Duration,
    variables: &'a Variables,
    decided: Decided,
}

/// What stands around a sandbox, and what of its request that comes to.
pub(super) struct Decided {
    walls: Option<Walls>,
    pub(super) grant: Grant,
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

    /// Decides what a request gets.
    pub(super) fn decide(&self, request: &SandboxRequest) -> Result<Decided, RuntimeError> {
        let Some(walls) = &self.walls else {
            return Ok(Decided {
                walls: None,
                grant: grant_without_walls(NAME, request)?,
            });
        };
        let answer = native::answer(walls, self.rules.as_ref(), request)?;
        Ok(Decided {
            grant: answer.grant(),
            walls: Some(answer.walls),
        })
    }

    /// Whether a request comes to what every sandbox has.
    pub(super) fn is_usual(&self, request: &SandboxRequest) -> bool {
        let decided = self.decide(request);
        decided.is_ok_and(|it| it.walls == self.walls && it.grant.not_held.is_empty())
    }

    pub(super) fn covers_rule(&self, rule: &str) -> bool {
        let covers = |walls| native::covers_rule(walls, self.rules.as_ref(), rule);
        self.walls.as_ref().is_none_or(covers)
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.options.state_dir.join(self.name())
    }

    /// Begins what starts sandboxes and makes what they share, so that the first of them need not wait
    /// for it.
    pub(super) async fn stand_by(&self) {
        if self.walls.is_some() {
            self.spawner.stand_by(&self.local.program);
            let state = self.options.state_dir.clone();
            // By this process, and not by one that might outlive it and the directory.
            let _ = tokio::task::spawn_blocking(move || native::lay_ground(&state)).await;
        }
    }

    /// Starts an executor for a sandbox and tells of it.
    pub(super) async fn launch(
        &self,
        spec: &SandboxSpec,
        decided: Decided,
        variables: &Variables,
        statuses: &Arc<Statuses>,
    ) -> Result<Started, RuntimeError> {
        let wanted = Wanted {
            id: spec.id.as_ref(),
            image: spec.image.as_deref(),
            workspace: spec.workspace.as_deref(),
            no_change_timeout: spec.no_change_timeout,
            variables,
            decided,
        };
        let (mut started, readiness) = self.spawn(&wanted, Fate::told_to(statuses))?;
        statuses.change(RuntimeStatus::RuntimeStarted, "Runtime started.");
        // While it starts.
        started.draft = Some(started.write_down(spec.timeout, &self.local)?);
        started.ready(readiness).await
    }

    /// Starts an executor for a sandbox to come.
    pub(super) async fn launch_ahead(&self) -> Result<Started, RuntimeError> {
        let wanted = Wanted {
            id: None,
            image: None,
            workspace: None,
            no_change_timeout: self.local.warm_no_change_timeout,
            variables: &Variables::new(Vec::new())?,
            decided: self.decide(&SandboxRequest::default())?,
        };
        let (started, readiness) = self.spawn(&wanted, Arc::default())?;
        started.ready(readiness).await
    }

    fn spawn(
        &self,
        wanted: &Wanted<'_>,
        fate: Arc<Fate>,
    ) -> Result<(Started, server::Readiness), RuntimeError> {
        let id = wanted.id.cloned().unwrap_or_else(|| new_id(self.name()));
        if let Some(image) = wanted.image {
            self.check_image(image)?;
        }
        let mut directory = self.make_directory(&id)?;
        let workspace = match wanted.workspace {
            Some(path) => Some(self.find_workspace(path)?),
            // Behind walls an empty one is part of what the sandbox sees.
            None if self.walls.is_some() => None,
            None => Some(directory.make("workspace").map_err(cannot_start)?),
        };
        let tether = match self.local.lifetime {
            ServerLifetime::WithUs => Tether::Lifeline,
            ServerLifetime::KeptAlive { .. } => Tether::Free,
        };
        let spawned = server::spawn(&Order {
            program: &self.local.program,
            options: &self.options,
            directory: directory.path(),
            working_dir: workspace.as_deref(),
            no_change_timeout: wanted.no_change_timeout,
            sandbox: &id,
            variables: wanted.variables,
            image: wanted.image,
            tether,
            walls: wanted.decided.walls.clone(),
            spawner: &self.spawner,
        })
        .map_err(cannot_start)?;
        if tether == Tether::Free {
            directory.outlive();
        }
        let (life, keeper) = life::begin();
        let started = Started {
            link: link_to(&spawned.socket, &spawned.key)?,
            id,
            workspace: workspace
                .filter(|_| self.walls.is_none())
                .unwrap_or_else(|| native::WORKSPACE.into()),
            life,
            enclosure: Enclosure::of(self.name(), directory.path()),
            not_held: wanted.decided.grant.not_held.clone(),
            image: wanted.image.map(str::to_owned),
            tie: spawned.tie,
            draft: None,
            fate: Arc::clone(&fate),
            directory: directory.path().to_owned(),
            process: spawned.server.process.identity().clone(),
            socket: spawned.socket,
            key: spawned.key,
        };
        tokio::spawn(keep(keeper, directory, spawned.server, fate));
        Ok((started, spawned.readiness))
    }

    fn make_directory(&self, id: &SandboxId) -> Result<RunDirectory, RuntimeError> {
        match RunDirectory::create(&self.directory(), id) {
            Err(DirectoryError::Exists) => Err(RuntimeError::Invalid {
                message: format!(
                    "there is a sandbox `{id}` already; remove it or choose another name"
                ),
            }),
            made => made.map_err(cannot_start),
        }
    }

    /// The supervisor looks again, and holds it then; this is for a better answer.
    fn check_image(&self, image: &str) -> Result<(), RuntimeError> {
        if self.walls.is_none() {
            return Err(RuntimeError::Unsupported {
                runtime: self.name(),
                deed: "use an image",
            });
        }
        let found = ImageStore::open(&self.options.images).and_then(|store| store.find(image));
        found.map(drop).map_err(|error| RuntimeError::Image {
            image: image.to_owned(),
            class: match error {
                ImageError::Unknown { .. } => ErrorClass::NotFound,
                ImageError::BadName(_) | ImageError::Ambiguous { .. } => ErrorClass::Invalid,
                _ => ErrorClass::Internal,
            },
            source: Box::new(error),
        })
    }

    fn find_workspace(&self, path: &Path) -> Result<PathBuf, RuntimeError> {
        if self.walls.is_some() {
            native::check_workspace(path, &self.options)?;
            return Ok(path.to_owned());
        }
        std::fs::create_dir_all(path)
            .and_then(|()| std::fs::canonicalize(path))
            .map_err(cannot_start)
    }
}

impl Started {
    async fn ready(self, readiness: server::Readiness) -> Result<Self, RuntimeError> {
        // Before it can be asked for anything, so that the first who asks need not.
        let connect = self.link.connect_ahead();
        match tokio::time::timeout(START_MAX, readiness.ready(connect)).await {
            Ok(Ok(())) => {
                if let Some(enclosure) = self.enclosure.clone() {
                    // Ahead of the first action, and off the path of whoever waits for us.
                    tokio::task::spawn_blocking(move || enclosure.open());
                }
                Ok(self)
            }
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
            tell_loss(statuses, &self.directory);
        }
    }

    /// Lets others find it, and lets it live on if it shall.
    pub(super) fn record(
        &mut self,
        timeout: Duration,
        local: &LocalOptions,
    ) -> Result<(), RuntimeError> {
        let draft = match self.draft.take() {
            Some(draft) => draft,
            None => self.write_down(timeout, local)?,
        };
        draft.publish().map_err(cannot_start)?;
        match self.tie.take() {
            Some(tie) => tie.release().map_err(cannot_start),
            None => Ok(()),
        }
    }

    /// Writes down how to find it again.
    fn write_down(&self, timeout: Duration, local: &LocalOptions) -> Result<Draft, RuntimeError> {
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
            not_held: self.not_held.clone(),
            image: self.image.clone(),
            created: SystemTime::now(),
        };
        record.draft(&self.directory).map_err(cannot_start)
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
                tell_loss(statuses, directory.path());
            }
            reap_orphan(directory.path().to_owned()).await;
            keeper.farewell().await
        }
    };
    if farewell == Farewell::Leave && !server.process.has_ended() {
        let place = directory.path().to_owned();
        directory.leave();
        // Somebody has to reap it, should it end before we do.
        server.process.ended().await;
        reap_orphan(place).await;
        return;
    }
    keeper.emptied().await;
    if server.end().await {
        reap_orphan(directory.path().to_owned()).await;
    }
    directory.remove().await;
    if let Some(statuses) = fate.statuses.get() {
        statuses.change(RuntimeStatus::Stopped, "Runtime stopped.");
    }
}

/// Of a sandbox that has ended with its supervisor: what its first process left in our table.
async fn reap_orphan(directory: PathBuf) {
    // When the runtime ends first, so do we.
    let _ = tokio::task::spawn_blocking(move || native::reap_orphan(&directory)).await;
}

impl Fate {
    /// One whose changes are told from the beginning.
    pub(super) fn told_to(statuses: &Arc<Statuses>) -> Arc<Self> {
        let fate = Self::default();
        let _ = fate.statuses.set(Arc::clone(statuses));
        Arc::new(fate)
    }
}

fn tell_loss(statuses: &Statuses, directory: &Path) {
    let reason = native::ended_for_limit(directory);
    let message = reason.map_or_else(
        || "The executor has ended unexpectedly.".to_owned(),
        |reason| format!("The sandbox has ended: {reason}."),
    );
    statuses.change(RuntimeStatus::RuntimeDisconnected, message);
}

pub(super) fn cannot_start(error: impl std::error::Error + Send + Sync + 'static) -> RuntimeError {
    RuntimeError::Start {
        runtime: NAME,
        source: Box::new(error),
    }
}
