//! Sandboxes for commands: one that is made, used and ended with everything that runs in it, and
//! those that live on.
//!
//! `backend` turns settings into runtimes, `walls` and `docker` into what stands around a sandbox;
//! `place` says where everything is kept; `fleet` finds sandboxes again.

mod backend;
mod docker;
mod fleet;
mod place;
mod walls;

use std::{sync::Arc, time::Duration};

use tokio::{runtime, time::timeout};
use zareba_config::{Configuration, RuntimeKind, Settings};
use zareba_protocol::ErrorClass;
use zareba_runtime::{RuntimeError, Sandbox, SandboxSpec};
use zareba_runtime_native::ServerLifetime;
use zareba_session::{AdmittedSandbox, AllowAll, Requester, Unkept};

use crate::{
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    offspring,
    signals::Signals,
};

pub(crate) use backend::{Backend, Place};
pub(crate) use fleet::{Fleet, Member};

/// How long a sandbox may take to end before we end without it.
const CLOSE: Duration = Duration::from_secs(5);

/// How long file work that is under way may take after that.
pub(crate) const LAST_WORK: Duration = Duration::from_secs(1);

/// Makes a sandbox, lets `work` use it and ends it, also when a signal ends us: then nothing
/// of the sandbox is left either, and the exit code is the one that shells show for it.
pub(crate) fn within(
    context: &Context,
    configuration: &Configuration,
    work: impl AsyncFnOnce(Arc<dyn Sandbox>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let settings = &configuration.settings;
    let place = Place::new(context, settings);
    offspring::adopt_orphans();
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start")?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::watch()?;
        let backend = place.chosen(settings.runtime.kind, ServerLifetime::WithUs)?;
        let sandbox = tokio::select! {
            made = backend.runtime().create(spec(settings)) => {
                admitted(made.map_err(|error| not_started(settings.runtime.kind, &error))?)
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

/// The same for a sandbox that could not be made. Going on without walls is never done by itself,
/// so it is said how.
pub(crate) fn not_started(kind: RuntimeKind, error: &RuntimeError) -> Failure {
    let failure = failure(error);
    match (kind, error) {
        (RuntimeKind::Native, _) if failure.exit() == Exit::Start => {
            failure.hint("`--runtime cli` runs commands here, without any isolation")
        }
        (RuntimeKind::Docker, RuntimeError::Image { .. })
            if error.class() == ErrorClass::NotFound =>
        {
            failure.hint("`docker pull` fetches it, and so does `--set docker.pull=missing`")
        }
        (RuntimeKind::Docker, RuntimeError::Invalid { .. }) => {
            failure.hint("the settings in `[docker]` say otherwise, if you like: docs/docker.md")
        }
        _ => failure,
    }
}

/// What a sandbox shall be like, as the settings say it.
pub(crate) fn spec(settings: &Settings) -> SandboxSpec {
    let variables = settings.env.iter();
    SandboxSpec {
        id: None,
        image: settings.runtime.image.clone(),
        workspace: settings.runtime.workspace.clone(),
        environment: variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        no_change_timeout: settings.shell.no_change_timeout,
        timeout: settings.shell.timeout,
        on_status: None,
    }
}

/// A sandbox in the hands of the person at this machine: what is done to it is judged as a server
/// judges it. Nothing is recorded, because the event log has one writer, the server.
pub(crate) fn admitted(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Sandbox> {
    let (guard, log) = (Arc::new(AllowAll), Arc::new(Unkept));
    Arc::new(AdmittedSandbox::new(sandbox, guard, log, Requester::cli()))
}

async fn close(sandbox: Arc<dyn Sandbox>) {
    match timeout(CLOSE, sandbox.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot end the sandbox"),
        Err(_) => tracing::warn!("the sandbox took too long to end"),
    }
}
