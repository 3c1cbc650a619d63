//! The runtime `cli`: the executor in this process.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use zareba_executor::{
    Executor, ExecutorOptions, StartExecutorError, User, UserError, shell_environment,
};
use zareba_protocol::RuntimeStatus;
use zareba_runtime::{
    Capabilities, Grant, Isolation, Runtime, RuntimeError, Sandbox, SandboxId, SandboxRequest,
    SandboxSpec, Statuses, Support, Variables,
    life::{self, Keeper},
    request::grant_without_walls,
};
use zareba_wire::BoxFuture;

use crate::{
    NativeOptions,
    directory::{DirectoryError, RunDirectory},
    link::Link,
    local::rules_cover,
    members::MARK,
    notice,
    sandbox::{NativeSandbox, Parts},
};

const NAME: &str = "cli";

/// Runs the executor in this process, without walls.
#[derive(Debug)]
pub struct CliRuntime {
    options: NativeOptions,
    /// What killed processes left was looked for.
    swept: OnceLock<()>,
}

/// Why the executor could not be started here.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    User(#[from] UserError),
    #[error(transparent)]
    Executor(#[from] StartExecutorError),
}

impl From<StartError> for RuntimeError {
    fn from(error: StartError) -> Self {
        Self::Start {
            runtime: NAME,
            source: Box::new(error),
        }
    }
}

impl CliRuntime {
    /// Takes the options; nothing is started yet.
    pub fn new(options: NativeOptions) -> Self {
        Self {
            options,
            swept: OnceLock::new(),
        }
    }

    /// Removes what killed processes have left behind. Done once by itself before the first
    /// sandbox is made.
    ///
    /// # Errors
    /// When the state directory cannot be used.
    pub fn reap(&self) -> Result<(), RuntimeError> {
        let abandoned = RunDirectory::abandoned(&self.directory()).map_err(StartError::from)?;
        drop(abandoned);
        Ok(())
    }

    fn directory(&self) -> PathBuf {
        self.options.state_dir.join(NAME)
    }

    async fn start(&self, spec: SandboxSpec) -> Result<Arc<dyn Sandbox>, RuntimeError> {
        let variables = Variables::new(spec.environment.clone())?;
        let not_held = self.grant(&spec.request)?.not_held;
        notice::tell_once();
        if self.swept.set(()).is_ok() {
            self.reap()?;
        }
        let statuses = Arc::new(Statuses::new(spec.on_status.clone()));
        statuses.change(RuntimeStatus::StartingRuntime, "Starting runtime...");
        let id = new_id(NAME);
        let prepared = self.prepare(&id, &spec, &variables);
        let (directory, options) = prepared.map_err(|error| failed(&statuses, error.into()))?;
        let workspace = options.working_dir.clone();
        let executor = Executor::start(options).await;
        let executor =
            executor.map_err(|error| failed(&statuses, StartError::from(error).into()))?;
        let executor = Arc::new(executor);
        let link = Link::Call(Arc::downgrade(&executor));
        let (life, keeper) = life::begin();
        tokio::spawn(keep(keeper, executor, directory, Arc::clone(&statuses)));
        statuses.change(RuntimeStatus::RuntimeStarted, "Runtime started.");
        statuses.change(RuntimeStatus::Ready, "Runtime is ready.");
        Ok(Arc::new(NativeSandbox::new(Parts {
            id,
            runtime: NAME,
            workspace: std::fs::canonicalize(&workspace).unwrap_or(workspace),
            timeout: spec.timeout,
            not_held,
            statuses,
            link,
            life,
            enclosure: None,
        })))
    }

    fn prepare(
        &self,
        id: &SandboxId,
        spec: &SandboxSpec,
        variables: &Variables,
    ) -> Result<(RunDirectory, ExecutorOptions), StartError> {
        let directory = RunDirectory::create(&self.directory(), id)?;
        let working_dir = match &spec.workspace {
            Some(path) => path.clone(),
            None => directory.make("workspace")?,
        };
        let user = User::current()?;
        let mark = (MARK.into(), id.as_str().into());
        let added = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .chain([mark]);
        let environment = shell_environment(self.options.environment.clone(), added, &user);
        let options = ExecutorOptions {
            working_dir,
            user,
            environment,
            shell: self.options.shell.clone(),
            no_change_timeout: spec.no_change_timeout,
            timeout: spec.timeout,
            scope: self.options.scope,
            linting: self.options.linting,
            // Ours, so that it goes when the sandbox is closed and not when the last handle is.
            state_dir: Some(directory.make("state")?),
        };
        Ok((directory, options))
    }
}

impl Runtime for CliRuntime {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            isolation: Isolation::None,
            pause: Support::No,
            checkpoint: Support::No,
            attach: Support::No,
            changes: Support::No,
        }
    }

    fn rules_cover(&self, rules: &[String], rule: &str) -> bool {
        rules_cover(rules, rule)
    }

    fn grant(&self, request: &SandboxRequest) -> Result<Grant, RuntimeError> {
        grant_without_walls(NAME, request)
    }

    fn create(&self, spec: SandboxSpec) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        Box::pin(self.start(spec))
    }
}

/// A name that there never was.
#[expect(
    clippy::expect_used,
    reason = "the prefix and hexadecimal digits are all allowed"
)]
pub(crate) fn new_id(prefix: &str) -> SandboxId {
    // Short, because it stands in the path of a socket: 128 bits in 26 letters and digits.
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut number = rand::random::<u128>();
    let mut name = format!("{prefix}-");
    for _ in 0..26 {
        name.push(char::from(DIGITS[(number % 32) as usize]));
        number /= 32;
    }
    SandboxId::new(name).expect("a name of the right form")
}

/// Tells that there will be no sandbox.
pub(crate) fn failed(statuses: &Statuses, error: RuntimeError) -> RuntimeError {
    statuses.change(RuntimeStatus::Error, error.to_string());
    error
}

/// Owns a sandbox's executor and directory until it is closed.
async fn keep(
    mut keeper: Keeper,
    executor: Arc<Executor>,
    directory: RunDirectory,
    statuses: Arc<Statuses>,
) {
    keeper.farewell().await;
    keeper.emptied().await;
    executor.shut_down().await;
    drop(executor);
    directory.remove().await;
    statuses.change(RuntimeStatus::Stopped, "Runtime stopped.");
}
