//! Sandboxes for commands: one that is made, used and ended with everything that runs in it, and
//! those that live on.
//!
//! `backend` turns settings into runtimes, `walls` and `docker` into what stands around a sandbox;
//! `place` says where everything is kept; `fleet` finds sandboxes again.

mod about;
mod asked;
mod backend;
mod docker;
mod fleet;
mod names;
mod place;
mod unread;
mod walls;

use std::{error::Error, sync::Arc, time::Duration};

use tokio::{runtime, time::timeout};
use zareba_client::{ClientError, Sent};
use zareba_config::{Configuration, RuntimeKind, Settings};
use zareba_confine::{Restriction, Step};
use zareba_protocol::ErrorClass;
use zareba_runtime::{RuntimeError, Sandbox, SandboxId, SandboxRequest, SandboxSpec};
use zareba_runtime_native::ServerLifetime;
use zareba_session::{AdmittedSandbox, AllowAll, Requester, Surface, Unkept};

use crate::{
    arguments::LifeArguments,
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    offspring, quote,
    signals::Signals,
};

pub(crate) use about::of_settings as about;
pub(crate) use asked::{asked_spec, server_options, tell_not_held};
pub(crate) use backend::{Backend, Place};
pub(crate) use fleet::{Fleet, Member};

/// How long a sandbox may take to end before we end without it.
const CLOSE: Duration = Duration::from_secs(5);

/// Steps of the isolation that stand for all that machines refuse: others have the same remedies.
const REFUSED: [Step; 5] = [
    Step::Namespaces,
    Step::Proc,
    Step::Entry,
    Step::Seccomp,
    Step::HandShake,
];

/// The status of a server for a name that is taken.
const CONFLICT: u16 = 409;

/// How long file work that is under way may take after that.
pub(crate) const LAST_WORK: Duration = Duration::from_secs(1);

/// Makes a sandbox, lets `work` use it and ends it, also when a signal ends us: then nothing
/// of the sandbox is left either, and the exit code is the one that shells show for it.
pub(crate) fn within(
    context: &Context,
    configuration: &Configuration,
    work: impl AsyncFnOnce(Arc<dyn Sandbox>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    within_wanted(context, configuration, Wanted::default(), work)
}

/// The same with what else is known of the sandbox.
pub(crate) fn within_wanted(
    context: &Context,
    configuration: &Configuration,
    wanted: Wanted<'_>,
    work: impl AsyncFnOnce(Arc<dyn Sandbox>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    within_named(context, configuration, wanted, async |sandbox, signals| {
        tokio::select! {
            outcome = work(sandbox) => outcome,
            signal = signals.next() => Ok(Exit::Command(128 + signal)),
        }
    })
}

/// What else is known of a sandbox before it is made.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// Its name; without one it gets a new one.
    pub(crate) name: Option<SandboxId>,
    /// The command that it is made for.
    pub(crate) command: &'a [String],
    /// When it ends, where that can be said.
    pub(crate) life: LifeArguments,
}

/// The same with a name for the sandbox, and with work that takes signals itself.
pub(crate) fn within_named(
    context: &Context,
    configuration: &Configuration,
    wanted: Wanted<'_>,
    work: impl AsyncFnOnce(Arc<dyn Sandbox>, &mut Signals) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let settings = &configuration.settings;
    let Wanted {
        name,
        command,
        life,
    } = wanted;
    require_server_for(context, &life)?;
    require_workspace(context, settings)?;
    let place = Place::new(context, settings);
    offspring::adopt_orphans();
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start")?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::watch()?;
        let told = server_options(configuration, &life);
        // Before the backend, which may need a key: a wish that cannot hold needs none.
        let spec = spec_named(context, configuration, name)?;
        let backend = place.chosen(settings.runtime.kind, ServerLifetime::WithUs, told)?;
        let sandbox = tokio::select! {
            made = backend.runtime().create(spec) => {
                admitted(context.surface, made.map_err(|error| not_started(settings.runtime.kind, &error))?)
            }
            signal = signals.next() => return Ok(Exit::Command(128 + signal)),
        };
        tell_not_held(&*sandbox);
        note(context, settings, &*sandbox, command);
        let outcome = work(Arc::clone(&sandbox), &mut signals).await;
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
        RuntimeError::Invalid { .. } | RuntimeError::Unhonoured { .. } => Exit::Usage,
        RuntimeError::NotFound { .. }
        | RuntimeError::Disconnected { .. }
        | RuntimeError::Closed { .. }
        | RuntimeError::Timeout { .. } => Exit::Lost,
        _ => Exit::Failure,
    };
    let exit = match error {
        RuntimeError::Image { .. } if is_named_wrongly(error) => Exit::Usage,
        _ => exit,
    };
    let failure = Failure::of(exit, error);
    if let Some((status, hint)) = refused_by_server(error) {
        // A name that is taken.
        let failure = if status == CONFLICT {
            failure.ending_with(Exit::Usage)
        } else {
            failure
        };
        return hint.into_iter().fold(failure, Failure::hint);
    }
    if is_server_away(error) {
        return failure.hint("is `zareba serve` running there, and is this its address?");
    }
    if let RuntimeError::Unhonoured { remedy, .. } = error {
        return failure.hint(remedy.as_str());
    }
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
        (RuntimeKind::Native, _) if walls_were_refused(error) => {
            failure.hint("`--runtime cli` runs commands here, without any isolation")
        }
        (RuntimeKind::Docker, RuntimeError::Image { .. })
            if error.class() == ErrorClass::NotFound =>
        {
            failure.hint("`docker pull` fetches it, and so does `--set docker.pull=missing`")
        }
        (RuntimeKind::Docker, RuntimeError::Invalid { .. }) => {
            failure.hint("docs/docker.md explains the settings of `[docker]`")
        }
        _ => failure,
    }
}

fn is_named_wrongly(error: &RuntimeError) -> bool {
    matches!(error.class(), ErrorClass::NotFound | ErrorClass::Invalid)
}

/// What a server has answered instead of a sandbox: the status, and what to do about it.
fn refused_by_server(error: &RuntimeError) -> Option<(u16, Option<&String>)> {
    let refusal = causes(error).find_map(|cause| cause.downcast_ref::<ClientError>())?;
    match refusal {
        ClientError::Refused { status, hint, .. } => Some((*status, hint.as_ref())),
        _ => None,
    }
}

/// Whether nothing could be sent to a server.
fn is_server_away(error: &RuntimeError) -> bool {
    causes(error).any(|cause| {
        let cause = cause.downcast_ref::<ClientError>();
        matches!(cause, Some(ClientError::Unreachable { sent: Sent::No, .. }))
    })
}

/// Whether this machine has refused a step of the isolation, and nothing else was wrong. The
/// process that isolates prints the step's remedy, which reaches us with its words.
fn walls_were_refused(error: &RuntimeError) -> bool {
    let steps = REFUSED.map(Step::remedy);
    let switches = Restriction::ALL.map(Restriction::remedy);
    let refused = |text: &str| {
        let mut remedies = steps.iter().chain(&switches);
        remedies.any(|remedy| text.contains(remedy))
    };
    causes(error).any(|cause| refused(&cause.to_string()))
}

fn causes(error: &RuntimeError) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |error| {
        (*error).source()
    })
}

/// Refuses limits to the life of a sandbox where nothing would keep them: beside a sandbox of this machine
/// no process waits for its end.
pub(crate) fn require_server_for(context: &Context, life: &LifeArguments) -> Result<(), Failure> {
    let Some(flag) = life.first_flag().filter(|_| context.server().is_none()) else {
        return Ok(());
    };
    let message = format!("`{flag}` is for sandboxes of a server");
    Err(Failure::new(Exit::Usage, message).hint(
        "name one by `--server`, which `zareba serve` starts; sandboxes of this machine live until \
         `zareba stop`, and `run --timeout` bounds a command",
    ))
}

/// Refuses a workspace that does not exist: more likely a slip than a wish.
pub(crate) fn require_workspace(context: &Context, settings: &Settings) -> Result<(), Failure> {
    let Some(directory) = settings.runtime.workspace.as_deref() else {
        return Ok(());
    };
    if context.server().is_some() {
        return Ok(());
    }
    let shown = directory.display();
    match std::fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => {
            let message = format!("the workspace `{shown}` is not a directory");
            Err(Failure::new(Exit::Usage, message).hint("name the directory that the file is in"))
        }
        Err(error) => Err(Failure::of(Exit::Usage, &error)
            .while_doing(format!("cannot use the workspace `{shown}`"))
            .hint(format!(
                "`mkdir -p {}` makes it",
                quote::quote(&shown.to_string())
            ))),
    }
}

/// A name that was typed for a new sandbox.
pub(crate) fn new_name(name: &str) -> Result<SandboxId, Failure> {
    SandboxId::new(name).ok_or_else(|| {
        let message = format!("`{name}` is no name for a sandbox");
        Failure::new(Exit::Usage, message).hint("use 1 to 64 letters, digits, `-` and `_`")
    })
}

/// The same with a name: this one, or for a sandbox of this machine one that can be typed.
pub(crate) fn spec_named(
    context: &Context,
    configuration: &Configuration,
    name: Option<SandboxId>,
) -> Result<SandboxSpec, Failure> {
    let new = || match context.server() {
        Some(_) => None,
        None => names::new_name(),
    };
    Ok(SandboxSpec {
        id: name.or_else(new),
        ..asked_spec(context, configuration)?
    })
}

/// Writes down what a sandbox of this machine was made with.
pub(crate) fn note(
    context: &Context,
    settings: &Settings,
    sandbox: &dyn Sandbox,
    command: &[String],
) {
    if context.server().is_some() || settings.runtime.kind == RuntimeKind::Cli {
        return;
    }
    let place = Place::new(context, settings);
    let directory = place.state().join(sandbox.runtime());
    about::write(&directory.join(sandbox.id().as_str()), settings, command);
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
        request: SandboxRequest::default(),
        on_status: None,
    }
}

/// A sandbox in the hands of the person at this machine: what is done to it is judged as a server
/// judges it. Nothing is recorded, because the event log has one writer, the server.
pub(crate) fn admitted(surface: Surface, sandbox: Arc<dyn Sandbox>) -> Arc<dyn Sandbox> {
    let (guard, log) = (Arc::new(AllowAll), Arc::new(Unkept));
    let requester = Requester {
        surface,
        ..Requester::cli()
    };
    Arc::new(AdmittedSandbox::new(sandbox, guard, log, requester))
}

async fn close(sandbox: Arc<dyn Sandbox>) {
    match timeout(CLOSE, sandbox.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot end the sandbox"),
        Err(_) => tracing::warn!("the sandbox took too long to end"),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => sources(&path, found),
                false => found.push(path),
            }
        }
    }

    /// A command that held a sandbox as its runtime made it would pass the guard.
    #[test]
    fn every_sandbox_that_a_command_makes_or_finds_is_admitted() {
        let mut files = Vec::new();
        sources(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut files,
        );
        let this = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sandbox.rs");
        let mut handles = 0;
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let text = match file == this {
                true => text.split("#[cfg(test)]").next().unwrap(),
                false => &text,
            };
            let count = |word: &str| text.matches(word).count();
            let made = count("runtime().create(") + count("runtime().attach(");
            let admitted = count("admitted(") - count("fn admitted(");
            assert!(made <= admitted, "{}", file.display());
            handles += made;
        }
        assert!(handles >= 4, "how are sandboxes made now?");
    }
}
