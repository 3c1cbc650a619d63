//! A sandbox for one command: made, used, and ended with everything that runs in it.

use std::{sync::Arc, time::Duration};

use tempfile::TempDir;
use tokio::{runtime, time::timeout};
use zareba_config::{Configuration, FileScope as ScopeSetting, RuntimeKind, Settings};
use zareba_confine::Network;
use zareba_executor::{FileScope, Linting};
use zareba_runtime::{Runtime, RuntimeError, Sandbox, SandboxSpec};
use zareba_runtime_native::{
    CliRuntime, LocalOptions, LocalRuntime, NativeOptions, NativeRuntime, ServerLifetime, Usage,
    VariableStore, Walls, WorkspaceMode,
};

use crate::{
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    offspring,
    signals::Signals,
};

/// How long a sandbox may take to end before we end without it.
const CLOSE: Duration = Duration::from_secs(5);

/// How long file work that is under way may take after that.
const LAST_WORK: Duration = Duration::from_secs(1);

/// What a sandbox may do and use when nobody says otherwise.
const WALLS: Walls = Walls {
    workspace: WorkspaceMode::CopyOnWrite,
    network: Network::None,
    usage: Usage {
        memory_bytes: 2 * 1024 * 1024 * 1024,
        pids: 512,
        cpu_millis: 2000,
    },
};

/// Makes a sandbox, lets `work` use it and ends it, also when a signal ends us: then nothing
/// of the sandbox is left either, and the exit code is the one that shells show for it.
pub(crate) fn within(
    context: &Context,
    configuration: &Configuration,
    work: impl AsyncFnOnce(Arc<dyn Sandbox>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let state = tempfile::Builder::new()
        .prefix("zareba-")
        .tempdir()
        .or_fail(Exit::Start, "cannot make a place for the sandbox")?;
    offspring::adopt_orphans();
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start")?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::watch()?;
        let backend = backend(context, &configuration.settings, &state)?;
        let sandbox = tokio::select! {
            made = backend.create(spec(&configuration.settings, &state)) => {
                made.map_err(|error| failure(&error))?
            }
            signal = signals.next() => return Ok(Exit::Command(128 + signal)),
        };
        let outcome = tokio::select! {
            outcome = work(Arc::clone(&sandbox)) => outcome,
            signal = signals.next() => Ok(Exit::Command(128 + signal)),
        };
        close(sandbox).await;
        outcome
    });
    runtime.shutdown_timeout(LAST_WORK);
    offspring::kill_all();
    outcome
}

/// What a failure of the runtime means for us.
pub(crate) fn failure(error: &RuntimeError) -> Failure {
    let exit = match error {
        RuntimeError::Start { .. } | RuntimeError::NotReady { .. } => Exit::Start,
        RuntimeError::Invalid { .. } => Exit::Usage,
        RuntimeError::NotFound { .. }
        | RuntimeError::Disconnected { .. }
        | RuntimeError::Closed { .. }
        | RuntimeError::Timeout { .. } => Exit::Lost,
        _ => Exit::Failure,
    };
    let failure = Failure::of(exit, error);
    match exit {
        Exit::Start => failure.hint("`zareba doctor` says what this machine can do"),
        _ => failure,
    }
}

async fn close(sandbox: Arc<dyn Sandbox>) {
    match timeout(CLOSE, sandbox.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot end the sandbox"),
        Err(_) => tracing::warn!("the sandbox took too long to end"),
    }
}

fn backend(
    context: &Context,
    settings: &Settings,
    state: &TempDir,
) -> Result<Arc<dyn Runtime>, Failure> {
    let inherited = context.environment.iter();
    let options = NativeOptions {
        state_dir: state.path().to_owned(),
        environment: inherited
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        shell: settings.shell.program.clone(),
        scope: match settings.files.scope {
            ScopeSetting::Anywhere => FileScope::WholeFilesystem,
            ScopeSetting::Workspace => FileScope::WorkingDirectory,
        },
        linting: if settings.files.auto_lint {
            Linting::On
        } else {
            Linting::Off
        },
        variables: VariableStore::DefaultShell,
    };
    match settings.runtime.kind {
        RuntimeKind::Cli => Ok(Arc::new(CliRuntime::new(options))),
        RuntimeKind::Local => Ok(Arc::new(LocalRuntime::new(options, local(settings)?))),
        RuntimeKind::Native => Ok(Arc::new(NativeRuntime::new(
            options,
            local(settings)?,
            WALLS,
        ))),
        other => Err(Failure::new(
            Exit::Start,
            format!(
                "the runtime `{}` is not part of this version",
                other.as_str()
            ),
        )
        .hint("use `--runtime native`, or `cli` or `local`, which do not isolate")),
    }
}

/// One server for one command: none is kept for later.
fn local(settings: &Settings) -> Result<LocalOptions, Failure> {
    let program = std::env::current_exe().or_fail(Exit::Start, "cannot find our own program")?;
    Ok(LocalOptions {
        program,
        warm_servers: 0,
        warm_no_change_timeout: settings.shell.no_change_timeout,
        lifetime: ServerLifetime::WithUs,
    })
}

fn spec(settings: &Settings, state: &TempDir) -> SandboxSpec {
    let variables = settings.env.iter();
    // A short path of our own, since people will read it in every other line.
    let fresh = || state.path().join("workspace");
    SandboxSpec {
        workspace: Some(settings.runtime.workspace.clone().unwrap_or_else(fresh)),
        environment: variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        no_change_timeout: settings.shell.no_change_timeout,
        timeout: settings.shell.timeout,
        on_status: None,
    }
}
