//! The runtime `docker`.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use tokio::sync::OnceCell;
use zareba_protocol::RuntimeStatus;
use zareba_runtime::{
    Capabilities, Grant, Isolation, PoolCounts, RequestField, Runtime, RuntimeError, Sandbox,
    SandboxId, SandboxRequest, SandboxSpec, SandboxSummary, Statuses, Support, request::Shortfall,
};
use zareba_wire::BoxFuture;

use crate::{
    DockerOptions, EngineReport, ExitReason, ImageBuilder, LogQuery, Logs, Measured,
    asked::{self, Answer},
    build::Line,
    directory::instance,
    ending::Condition,
    engine::Engine,
    found,
    make::{cannot_start, make},
    monitor, openhands,
    program::StaticProgram,
    request::OWNER_LABEL,
    warm::WarmPool,
    watcher::Watcher,
};

pub(crate) const NAME: &str = "docker";

/// Runs executors in containers of a Docker Engine.
///
/// Sandboxes live on as long as their handles, or longer when they are to be kept alive.
#[derive(Debug)]
pub struct DockerRuntime {
    shared: Arc<Shared>,
    warm: WarmPool,
    /// What killed processes left was looked for.
    swept: OnceCell<()>,
}

/// What the runtime and its sandboxes share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: DockerOptions,
    /// Where sandboxes have their directories.
    pub(crate) directory: PathBuf,
    /// The name of this installation.
    pub(crate) owner: String,
    /// What our program is, and the volume of the Engine that has it, where it had to be sent.
    pub(crate) digest: OnceCell<String>,
    pub(crate) delivered: OnceLock<String>,
    /// Builds for clients.
    pub(crate) builds: Line,
    engine: Arc<OnceCell<Engine>>,
    watcher: Arc<OnceLock<Watcher>>,
}

impl DockerRuntime {
    /// Takes the options; the Engine is not asked anything yet.
    ///
    /// # Errors
    /// When the state directory cannot be used.
    pub fn new(options: DockerOptions) -> Result<Self, RuntimeError> {
        let directory = options.state_dir.join(NAME);
        let owner = instance(&directory).map_err(cannot_start)?;
        let shared = Arc::new(Shared {
            options,
            directory,
            owner,
            digest: OnceCell::new(),
            delivered: OnceLock::new(),
            builds: Line::default(),
            engine: Arc::default(),
            watcher: Arc::default(),
        });
        Ok(Self {
            warm: WarmPool::new(Arc::clone(&shared)),
            shared,
            swept: OnceCell::new(),
        })
    }

    /// Starts sandboxes until as many wait as were asked for. After the first one that is made,
    /// they are started by themselves.
    ///
    /// # Errors
    /// When one does not start.
    pub async fn warm_up(&self) -> Result<(), RuntimeError> {
        self.sweep_once().await?;
        self.warm.fill().await
    }

    /// Closes the sandboxes that wait, and returns when they are gone; no more are started.
    pub async fn cool_down(&self) {
        self.warm.empty().await;
    }

    /// Removes what ended or killed processes of this installation have left behind, and kept
    /// sandboxes that were idle for too long; nobody else's (DK-6). What a killed process left is
    /// also removed before the first sandbox is made. Returns how many were removed.
    ///
    /// # Errors
    /// When the Engine or the state directory cannot be used.
    pub async fn reap(&self) -> Result<usize, RuntimeError> {
        found::reap(&self.shared).await
    }

    /// Stops a kept sandbox without removing it; [`attach`](Runtime::attach) starts it again, with
    /// the files that lie on this machine or in volumes.
    ///
    /// # Errors
    /// When there is none of that name, or the Engine cannot stop it.
    pub async fn stop(&self, sandbox: &SandboxId) -> Result<(), RuntimeError> {
        found::stop(&self.shared, sandbox).await
    }

    /// What the executor of a sandbox has written to its log.
    ///
    /// # Errors
    /// When there is none of that name, or the Engine cannot be asked.
    pub async fn logs(&self, sandbox: &SandboxId, query: LogQuery) -> Result<Logs, RuntimeError> {
        monitor::logs(&self.shared, sandbox, query).await
    }

    /// What a sandbox uses now.
    ///
    /// # Errors
    /// When there is none of that name, or the Engine cannot be asked.
    pub async fn measure(&self, sandbox: &SandboxId) -> Result<Measured, RuntimeError> {
        monitor::measure(&self.shared, sandbox).await
    }

    /// How a sandbox has ended; `None` when it has not.
    ///
    /// # Errors
    /// When there is none of that name, or the Engine cannot be asked.
    pub async fn ended(&self, sandbox: &SandboxId) -> Result<Option<ExitReason>, RuntimeError> {
        let (_, container) = found::look_up(&self.shared, sandbox).await?;
        Ok(match Condition::of(Some(&container)) {
            Condition::Ended(reason) => Some(reason),
            Condition::New | Condition::Running | Condition::Paused => None,
        })
    }

    /// Looks whether the program can run in any image: it must be static. Asks no Engine.
    ///
    /// # Errors
    /// When it cannot; the cause says why.
    pub fn check_program(&self) -> Result<(), RuntimeError> {
        let checked = StaticProgram::check(&self.shared.options.program);
        checked.map(drop).map_err(cannot_start)
    }

    /// What the Engine is like, and what is wrong with it.
    ///
    /// # Errors
    /// When it cannot be asked; the error says why and what to do.
    pub async fn probe(&self) -> Result<EngineReport, RuntimeError> {
        monitor::probe(&self.shared).await
    }

    /// Makes the image `tag`, which an unmodified OpenHands can start in place of its own runtime
    /// image, from any base image that has a shell. Returns its id.
    ///
    /// # Errors
    /// When the base image cannot be had, or the Engine cannot make another of it.
    pub async fn make_openhands_image(
        &self,
        base: &str,
        tag: &str,
    ) -> Result<String, RuntimeError> {
        openhands::make_image(&self.shared, base, tag).await
    }

    /// Builds images on the same Engine, within the same options, for somebody who shares it
    /// with others; [`ImageBuilder::for_operator`] is for whoever runs this.
    pub fn image_builder(&self) -> ImageBuilder {
        ImageBuilder::new(Arc::clone(&self.shared))
    }

    async fn sweep_once(&self) -> Result<(), RuntimeError> {
        let sweep = || async { found::sweep(&self.shared).await.map(drop) };
        self.swept.get_or_try_init(sweep).await.copied()
    }

    async fn start(&self, spec: SandboxSpec) -> Result<Arc<dyn Sandbox>, RuntimeError> {
        self.sweep_once().await?;
        let mut answer = asked::answer(&self.shared.options, &spec.request)?;
        require_bounded_workspace(&spec, &mut answer)?;
        if let Some(sandbox) = self.warm.take(&spec).await? {
            return Ok(Arc::new(sandbox));
        }
        let shared = self.shared.asked(&spec.request, answer.options);
        let statuses = Arc::new(Statuses::new(spec.on_status.clone()));
        let (timeout, lifetime) = (spec.timeout, self.shared.options.lifetime);
        let making = make(shared, spec, Arc::clone(&statuses), answer.not_held);
        let making = tokio::spawn(making);
        let made = making.await.map_err(cannot_start)?;
        match made {
            Ok(mut sandbox) => {
                // Not in the task: a caller that went away, or was killed, gets no sandbox that
                // would go on without it.
                sandbox.become_kept(timeout, lifetime)?;
                Ok(Arc::new(sandbox))
            }
            Err(error) => {
                // One that makes no sense was never begun.
                if statuses.current() != RuntimeStatus::Stopped {
                    statuses.change(RuntimeStatus::Error, error.to_string());
                }
                Err(error)
            }
        }
    }
}

/// Only an empty workspace has a bound of its own.
fn require_bounded_workspace(spec: &SandboxSpec, answer: &mut Answer) -> Result<(), RuntimeError> {
    if spec.request.disk_bytes.is_none() || spec.workspace.is_none() {
        return Ok(());
    }
    let mut shortfall = Shortfall::new(NAME, spec.request.strictness);
    let reason = "a workspace that is given has no bound";
    let remedy = "leave it out, leave out the workspace, or use the runtime `native`";
    shortfall.lacks(RequestField::Disk, reason, remedy)?;
    answer.not_held.extend(shortfall.into_fields());
    Ok(())
}

impl Shared {
    /// The same for a sandbox of which something is asked: with its options, and with the same
    /// Engine, directory and name.
    pub(crate) fn asked(
        self: &Arc<Self>,
        request: &SandboxRequest,
        options: DockerOptions,
    ) -> Arc<Self> {
        if *request == SandboxRequest::default() {
            return Arc::clone(self);
        }
        Arc::new(Self {
            options,
            directory: self.directory.clone(),
            owner: self.owner.clone(),
            digest: self.digest.clone(),
            delivered: self.delivered.clone(),
            builds: Line::default(),
            engine: Arc::clone(&self.engine),
            watcher: Arc::clone(&self.watcher),
        })
    }

    /// The Engine, which is greeted at the first time.
    pub(crate) async fn engine(&self) -> Result<Engine, RuntimeError> {
        let connected = self
            .engine
            .get_or_try_init(|| Engine::connect(&self.options.engine))
            .await;
        connected.cloned().map_err(cannot_start)
    }

    /// Whoever watches our containers.
    pub(crate) fn watcher(&self, engine: &Engine) -> &Watcher {
        self.watcher
            .get_or_init(|| Watcher::begin(engine.clone(), self.owner_label()))
    }

    /// The label of everything that is ours.
    pub(crate) fn owner_label(&self) -> String {
        format!("{OWNER_LABEL}={}", self.owner)
    }
}

impl Runtime for DockerRuntime {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            isolation: Isolation::Container,
            pause: Support::Yes,
            checkpoint: Support::No,
            attach: Support::Yes,
            changes: Support::No,
        }
    }

    fn create(&self, spec: SandboxSpec) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        Box::pin(self.start(spec))
    }

    fn reserve(&self, spec: &SandboxSpec) -> Option<SandboxId> {
        self.warm.reserve(spec)
    }

    fn grant(&self, request: &SandboxRequest) -> Result<Grant, RuntimeError> {
        asked::answer(&self.shared.options, request).map(|answer| answer.grant())
    }

    fn pool(&self) -> Option<PoolCounts> {
        self.warm.counts()
    }

    /// Finds a container of this installation, whichever process has started it. The handle may be
    /// dropped without ending it; closing ends it for everybody. One that was stopped and is to be
    /// kept alive is started again.
    fn attach(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        let sandbox = sandbox.clone();
        Box::pin(async move {
            let found = found::find(&self.shared, sandbox).await?;
            Ok(Arc::new(found) as Arc<dyn Sandbox>)
        })
    }

    fn destroy(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let sandbox = sandbox.clone();
        Box::pin(async move { found::destroy(&self.shared, sandbox).await })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<SandboxSummary>, RuntimeError>> {
        Box::pin(found::list(&self.shared))
    }
}
