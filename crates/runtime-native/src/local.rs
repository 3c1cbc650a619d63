//! The runtime `local`: `zareba executor` as a process of its own, reached over HTTP.
//!
//! `launch` starts one and owns it, `warm` keeps some started ahead, `found` finds those again
//! that another process has left running, and ends those that nobody wants any more.

mod found;
mod launch;
mod warm;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use zareba_egress::{Policy, Rule};
use zareba_protocol::RuntimeStatus;
use zareba_runtime::{
    Capabilities, Grant, Isolation, PoolCounts, Runtime, RuntimeError, Sandbox, SandboxId,
    SandboxRequest, SandboxSpec, SandboxSummary, Statuses, Support, Variables,
};
use zareba_wire::BoxFuture;

use self::{
    launch::{Launcher, Started},
    warm::WarmPool,
};
use crate::{
    LocalOptions, NativeOptions, ServerLifetime, Walls,
    cli::failed,
    sandbox::{NativeSandbox, Parts},
    spawner::Spawner,
};

pub(crate) const NAME: &str = "local";

/// Runs executors as processes of this machine, without walls.
///
/// Dropping it ends the executors that it keeps warm; sandboxes live on as long as their handles.
#[derive(Debug)]
pub struct LocalRuntime {
    launcher: Arc<Launcher>,
    warm: WarmPool,
    /// What killed processes left was looked for.
    swept: OnceLock<()>,
}

impl LocalRuntime {
    /// Takes the options; nothing is started yet. Warm executors are started by
    /// [`Self::warm_up`], and after the first sandbox by themselves.
    pub fn new(options: NativeOptions, local: LocalOptions) -> Self {
        Self::behind(options, local, None)
    }

    /// The same, with or without walls.
    pub(crate) fn behind(
        options: NativeOptions,
        local: LocalOptions,
        walls: Option<Walls>,
    ) -> Self {
        let launcher = Arc::new(Launcher {
            spawner: Arc::new(Spawner::new(&options.state_dir)),
            options,
            local,
            walls,
            rules: None,
        });
        Self::of(launcher)
    }

    fn of(launcher: Arc<Launcher>) -> Self {
        Self {
            warm: WarmPool::new(&launcher),
            launcher,
            swept: OnceLock::new(),
        }
    }

    /// The same with an operator's rules for sandboxes that ask for a filtered network.
    pub(crate) fn ruled_by(self, rules: Policy) -> Self {
        let launcher = &self.launcher;
        Self::of(Arc::new(Launcher {
            spawner: Arc::clone(&launcher.spawner),
            options: launcher.options.clone(),
            local: launcher.local.clone(),
            walls: launcher.walls.clone(),
            rules: Some(rules),
        }))
    }

    /// Starts executors until as many wait as were asked for, and what makes sandboxes start fast.
    ///
    /// # Errors
    /// When one does not start.
    pub async fn warm_up(&self) -> Result<(), RuntimeError> {
        self.sweep_once().await?;
        self.launcher.stand_by().await;
        self.warm.fill().await
    }

    /// Ends the executors that wait, and returns when they are gone; no more are started.
    pub async fn cool_down(&self) {
        self.warm.empty().await;
    }

    /// Ends kept executors that were idle for too long, and removes what ended or killed ones
    /// have left behind. Done once by itself before the first sandbox is made. Returns how many
    /// were removed.
    ///
    /// # Errors
    /// When the state directory cannot be used.
    pub async fn reap(&self) -> Result<usize, RuntimeError> {
        found::reap(&self.directory()).await
    }

    fn directory(&self) -> PathBuf {
        self.launcher.directory()
    }

    async fn sweep_once(&self) -> Result<(), RuntimeError> {
        if self.swept.set(()).is_ok() {
            self.reap().await?;
        }
        Ok(())
    }

    async fn start(&self, spec: SandboxSpec) -> Result<Arc<dyn Sandbox>, RuntimeError> {
        let variables = Variables::new(spec.environment.clone())?;
        let decided = self.launcher.decide(&spec.request)?;
        self.launcher.tell_once();
        self.sweep_once().await?;
        let statuses = Arc::new(Statuses::new(spec.on_status.clone()));
        statuses.change(RuntimeStatus::StartingRuntime, "Starting runtime...");
        let mut started = match self.warm.take(&spec) {
            Some(started) => {
                started.give(&statuses);
                statuses.change(RuntimeStatus::RuntimeStarted, "Runtime started.");
                started
            }
            None => self
                .launcher
                .launch(&spec, decided, &variables, &statuses)
                .await
                .map_err(|error| failed(&statuses, error))?,
        };
        let recorded = started.record(spec.timeout, &self.launcher.local);
        recorded.map_err(|error| failed(&statuses, error))?;
        if let ServerLifetime::KeptAlive { .. } = self.launcher.local.lifetime {
            started.life.outlive();
        }
        statuses.change(RuntimeStatus::Ready, "Runtime is ready.");
        started.confirm(&statuses);
        Ok(Arc::new(self.sandbox(started, &spec, statuses)))
    }

    fn sandbox(
        &self,
        started: Started,
        spec: &SandboxSpec,
        statuses: Arc<Statuses>,
    ) -> NativeSandbox {
        NativeSandbox::new(Parts {
            id: started.id,
            runtime: self.launcher.name(),
            workspace: started.workspace,
            timeout: spec.timeout,
            not_held: started.not_held,
            statuses,
            link: started.link,
            life: started.life,
            enclosure: started.enclosure,
        })
    }
}

/// Whether one of these rules lets through all that another one does; one that cannot be read does not.
pub(crate) fn rules_cover(rules: &[String], rule: &str) -> bool {
    let read = |text: &String| Rule::parse(text).ok();
    Rule::parse(rule).is_ok_and(|asked| {
        let mut rules = rules.iter().filter_map(read);
        rules.any(|own| own.allows_all_of(&asked))
    })
}

impl Runtime for LocalRuntime {
    fn name(&self) -> &'static str {
        NAME
    }

    fn destroy(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        let sandbox = sandbox.clone();
        Box::pin(async move { found::destroy(&self.directory(), sandbox).await })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<SandboxSummary>, RuntimeError>> {
        let found = found::list(&self.directory(), self.launcher.name());
        Box::pin(std::future::ready(found))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            isolation: Isolation::None,
            pause: Support::No,
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
        self.launcher.decide(request).map(|decided| decided.grant)
    }

    fn covers_rule(&self, rule: &str) -> bool {
        self.launcher.covers_rule(rule)
    }

    fn rules_cover(&self, rules: &[String], rule: &str) -> bool {
        rules_cover(rules, rule)
    }

    fn pool(&self) -> Option<PoolCounts> {
        self.warm.counts()
    }

    /// Finds an executor of this user, whichever process has started it. The handle may be
    /// dropped without ending it; closing ends it for everybody.
    fn attach(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        let sandbox = sandbox.clone();
        Box::pin(async move {
            self.launcher.tell_once();
            let name = self.launcher.name();
            let parts = found::find(&self.directory(), sandbox, name).await?;
            Ok(Arc::new(NativeSandbox::new(parts)) as Arc<dyn Sandbox>)
        })
    }
}
