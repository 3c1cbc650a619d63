//! Sandboxes of the program under test, made through the runtimes as a server makes them.
//!
//! The subjects are timed one at a time from a thread that waits, so everything here blocks.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail, ensure};
use tempfile::TempDir;
use tokio::task::JoinSet;
use zareba_executor::{FileScope, Linting};
use zareba_protocol::{Action, ObservationKind, RunCommand};
use zareba_runtime::{Runtime, Sandbox, SandboxRequest, SandboxSpec, Strictness};
use zareba_runtime_docker::{DockerOptions, DockerRuntime, EngineAddress};
use zareba_runtime_native::{
    CliRuntime, DiskLimit, LocalOptions, LocalRuntime, NativeOptions, NativeRuntime, Reachable,
    ServerLifetime, SystemMode, Usage, Walls, WorkspaceMode,
};

use crate::executor::Program;

/// How long a command may be silent.
const SILENCE: Duration = Duration::from_secs(10);
/// How long a command may take: filling a sandbox with processes is the longest one.
const COMMAND_MAX: Duration = Duration::from_secs(60);
/// How many sandboxes are closed at a time when there are many.
const CLOSED_AT_ONCE: usize = 32;

const GIBIBYTE: u64 = 1024 * 1024 * 1024;

/// A runtime with a state directory of its own.
#[derive(Debug)]
pub(crate) struct Sandboxes<R> {
    // In this order: what the runtime still has goes with the threads, and the directory last.
    runtime: Arc<R>,
    threads: tokio::runtime::Runtime,
    _state: TempDir,
}

impl Sandboxes<NativeRuntime> {
    /// With the walls that the program has by default, and so many sandboxes started ahead.
    pub(crate) fn behind_walls(program: &Program, warm: usize) -> anyhow::Result<Self> {
        Self::new(program, |options, local| {
            let warm = LocalOptions {
                warm_servers: warm,
                ..local
            };
            NativeRuntime::new(options, warm, walls())
        })
    }
}

impl Sandboxes<LocalRuntime> {
    /// The same executor without anything around it.
    pub(crate) fn without_walls(program: &Program) -> anyhow::Result<Self> {
        Self::new(program, LocalRuntime::new)
    }
}

impl Sandboxes<CliRuntime> {
    /// In this very process.
    pub(crate) fn in_this_process(program: &Program) -> anyhow::Result<Self> {
        Self::new(program, |options, _| CliRuntime::new(options))
    }
}

impl Sandboxes<DockerRuntime> {
    /// In containers of an Engine with this image, as hard as they are by default.
    pub(crate) fn in_containers(
        program: &Program,
        engine: EngineAddress,
        image: &str,
        warm: usize,
    ) -> anyhow::Result<Self> {
        let state = state_in(program)?;
        let (place, binary) = (state.path().to_owned(), program.binary.clone());
        let mut options = DockerOptions::hardened(engine, place, binary);
        options.image = Some(image.to_owned());
        options.warm.sandboxes = warm;
        options.warm.no_change_timeout = SILENCE;
        let runtime = DockerRuntime::new(options).context("cannot use the runtime `docker`")?;
        Self::with(runtime, state)
    }
}

impl<R: Runtime + 'static> Sandboxes<R> {
    fn new(
        program: &Program,
        make: impl FnOnce(NativeOptions, LocalOptions) -> R,
    ) -> anyhow::Result<Self> {
        let state = state_in(program)?;
        let options = NativeOptions {
            state_dir: state.path().to_owned(),
            images: state.path().join("images"),
            environment: environment(program),
            shell: None,
            scope: FileScope::WholeFilesystem,
            linting: Linting::Off,
        };
        let local = LocalOptions {
            program: program.binary.clone(),
            warm_servers: 0,
            warm_no_change_timeout: SILENCE,
            lifetime: ServerLifetime::WithUs,
        };
        Self::with(make(options, local), state)
    }

    fn with(runtime: R, state: TempDir) -> anyhow::Result<Self> {
        Ok(Self {
            runtime: Arc::new(runtime),
            threads: tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()?,
            _state: state,
        })
    }

    pub(crate) fn runtime(&self) -> &R {
        &self.runtime
    }

    /// Waits for something that the runtime or a sandbox does.
    pub(crate) fn wait<F: Future>(&self, work: F) -> F::Output {
        self.threads.block_on(work)
    }

    /// A new sandbox, with nothing asked of it yet.
    pub(crate) fn create(&self) -> anyhow::Result<Arc<dyn Sandbox>> {
        self.wait(create(&*self.runtime))
    }

    /// A new sandbox that has answered.
    pub(crate) fn create_and_ask(&self) -> anyhow::Result<Arc<dyn Sandbox>> {
        self.wait(create_and_ask(&*self.runtime))
    }

    /// So many at once; returns when the last one has answered.
    pub(crate) fn create_at_once(&self, count: usize) -> anyhow::Result<Vec<Arc<dyn Sandbox>>> {
        self.wait(async {
            let mut starting = JoinSet::new();
            for _ in 0..count {
                let runtime = Arc::clone(&self.runtime);
                starting.spawn(async move { create_and_ask(&*runtime).await });
            }
            starting.join_all().await.into_iter().collect()
        })
    }

    /// Runs a command and requires its answer.
    pub(crate) fn ask(
        &self,
        sandbox: &dyn Sandbox,
        command: &str,
        answer: &str,
    ) -> anyhow::Result<()> {
        self.wait(ask(sandbox, command, answer))
    }

    /// Starts so many processes in it that do nothing until they are killed.
    pub(crate) fn fill(&self, sandbox: &dyn Sandbox, processes: usize) -> anyhow::Result<()> {
        // A command of its own group would be told of by the shell when it ends.
        let start =
            format!("(for ((n = 0; n < {processes}; n++)); do sleep 1000 & done); echo full");
        self.ask(sandbox, &start, "full")
    }

    /// Ends it, and returns when it is gone.
    pub(crate) fn close(&self, sandbox: &dyn Sandbox) -> anyhow::Result<()> {
        self.wait(sandbox.close()).context("cannot close a sandbox")
    }

    /// Ends all of them, some at a time.
    pub(crate) fn close_all(&self, sandboxes: &[Arc<dyn Sandbox>]) -> anyhow::Result<()> {
        for some in sandboxes.chunks(CLOSED_AT_ONCE) {
            let closed = self.wait(async {
                let mut closing = JoinSet::new();
                for sandbox in some {
                    let sandbox = Arc::clone(sandbox);
                    closing.spawn(async move { sandbox.close().await });
                }
                closing.join_all().await
            });
            for closed in closed {
                closed.context("cannot close a sandbox")?;
            }
        }
        Ok(())
    }
}

/// Short, because the path of a Unix socket is limited.
fn state_in(program: &Program) -> anyhow::Result<TempDir> {
    Ok(tempfile::Builder::new()
        .prefix("s")
        .tempdir_in(&program.scratch)?)
}

async fn create(runtime: &impl Runtime) -> anyhow::Result<Arc<dyn Sandbox>> {
    let spec = SandboxSpec {
        id: None,
        image: None,
        workspace: None,
        environment: Vec::new(),
        no_change_timeout: SILENCE,
        timeout: COMMAND_MAX,
        request: SandboxRequest::default(),
        on_status: None,
    };
    let created = runtime.create(spec).await;
    created.context("cannot create a sandbox")
}

async fn create_and_ask(runtime: &impl Runtime) -> anyhow::Result<Arc<dyn Sandbox>> {
    let sandbox = create(runtime).await?;
    ask(&*sandbox, "echo hi", "hi").await?;
    Ok(sandbox)
}

async fn ask(sandbox: &dyn Sandbox, command: &str, answer: &str) -> anyhow::Result<()> {
    let action = Action::Run(RunCommand::new(command)).into();
    let observation = sandbox.run_action(action).await?.observation;
    let ObservationKind::Run(output) = &observation.kind else {
        bail!("`{command}` could not be run: {}", observation.content);
    };
    ensure!(
        output.metadata.exit_code == 0 && observation.content == answer,
        "`{command}` ended with {}: {}",
        output.metadata.exit_code,
        observation.content
    );
    Ok(())
}

/// What the settings say when nobody sets anything.
fn walls() -> Walls {
    Walls {
        workspace: WorkspaceMode::CopyOnWrite,
        system: SystemMode::CopyOnWrite,
        guarded: Vec::new(),
        home_tools: zareba_runtime_native::HomeAccess::Hidden,
        network: Reachable::Nothing,
        usage: Usage {
            memory_bytes: 2 * GIBIBYTE,
            pids: 512,
            cpu_millis: 2000,
            disk: DiskLimit {
                bytes: 4 * GIBIBYTE,
                inodes: 200_000,
            },
        },
        strictness: Strictness::Strict,
    }
}

/// What shells without walls inherit: as little as those behind walls.
fn environment(program: &Program) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    vec![
        ("PATH".into(), path),
        ("HOME".into(), program.home.clone().into()),
        ("USER".into(), program.user.clone().into()),
        ("LANG".into(), "C.UTF-8".into()),
    ]
}
