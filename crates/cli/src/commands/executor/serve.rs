//! The life of an executor: prepare, start, serve, stop, leave nothing behind.

use std::{fs::File, sync::Arc, time::Duration};

use rustix::process::{DumpableBehavior, Signal, set_dumpable_behavior};
use serde_json::json;
use tokio::{
    runtime,
    signal::unix::{self, SignalKind},
    sync::watch,
    time::timeout,
};
use zareba_config::{Configuration, FileScope as ScopeSetting, Override, Settings};
use zareba_executor::{
    Executor, ExecutorOptions, FileScope, Linting, StartExecutorError, User, shell_environment,
};
use zareba_runtime::guarded;
use zareba_terminal::release_program_pages;

use super::{
    equipped::Equipped,
    identity::{self, Wanted},
    listening, login, ownership, plugins,
    stopping::Stops,
    viewer::{self, Published},
};
use crate::{
    arguments::{ExecutorArguments, OutputFormat},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    handed_over::{Lifeline, ReadySignal},
    offspring::{self, Reaper},
    say,
    settings::WithoutConfig,
};

/// Below the size from which the kernel may back a stack with one huge page.
const STACK_BYTES: usize = 1024 * 1024;

/// Threads for file work. They end when they have nothing to do for a while.
const FILE_THREADS_MAX: usize = 64;

/// How long shells may take to be gone, and then file work that is under way.
const LAST_WORK: Duration = Duration::from_secs(1);

/// Starts an executor and serves it until somebody stops it.
pub(crate) fn perform(context: &Context, arguments: &ExecutorArguments) -> Result<Exit, Failure> {
    let ready = arguments.ours.ready_fd.map(ReadySignal::take).transpose()?;
    let lifeline = arguments.ours.lifeline_fd.map(Lifeline::take).transpose()?;
    plugins::check(arguments)?;
    login::settle();
    let configuration = load(context, arguments)?;
    if configuration.settings.executor.session_api_key.is_some() {
        hide_our_environment();
    }
    offspring::adopt_orphans();
    // Requests are short, and file work has threads of its own: with more than this one, most of the
    // work of a start would be to wake the others.
    let runtime = runtime::Builder::new_current_thread()
        .thread_stack_size(STACK_BYTES)
        .max_blocking_threads(FILE_THREADS_MAX)
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start the executor")?;
    let life = Life {
        context,
        arguments,
        settings: &configuration.settings,
    };
    let outcome = runtime.block_on(life.run(ready, lifeline));
    runtime.shutdown_timeout(LAST_WORK);
    offspring::kill_all();
    outcome
}

/// Flags are settings, too, and stronger than the environment.
fn load(context: &Context, arguments: &ExecutorArguments) -> Result<Configuration, Failure> {
    let mut flags = Vec::new();
    if let Some(shell) = &arguments.ours.shell {
        flags.push(Override::new(
            "--shell",
            "shell.program",
            shell.to_string_lossy(),
        ));
    }
    if let Some(scope) = arguments.ours.scope {
        flags.push(Override::new("--scope", "files.scope", scope.as_setting()));
    }
    let sources = context.sources(WithoutConfig::Nothing);
    sources.load(flags, &context.notices)
}

/// Keeps the key that we were started with from shells that run as the same user, or as root:
/// they could read it in `/proc` otherwise. We have one thread still.
fn hide_our_environment() {
    if let Err(error) = zareba_config::wipe_keys() {
        tracing::warn!(%error, "the session key stays readable for root in our environment");
    }
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "shells of the same user can read the session key");
    }
}

/// How long nothing must have happened before memory is given back.
const QUIET: Duration = Duration::from_secs(1);

/// Gives back what starting up, and later every burst of work, has mapped and an idle executor
/// does not need: there may be hundreds of them on one machine.
async fn save_memory(executor: Arc<Executor>) {
    // Whoever has started us asks a few times whether we are there.
    tokio::time::sleep(QUIET).await;
    loop {
        if let Err(error) = release_program_pages() {
            tracing::debug!(%error, "cannot give memory back");
            return;
        }
        executor.quiet(QUIET).await;
    }
}

struct Life<'a> {
    context: &'a Context,
    arguments: &'a ExecutorArguments,
    settings: &'a Settings,
}

impl Life<'_> {
    async fn run(
        &self,
        ready: Option<ReadySignal>,
        lifeline: Option<Lifeline>,
    ) -> Result<Exit, Failure> {
        let lifeline = lifeline.map(Lifeline::watch).transpose()?;
        let _stand_ins = self.hold_working_dir()?;
        let mut stops = Stops::watch(lifeline)?;
        // With a handler, a write past the limit for files is an error and not our end. Programs
        // that are started get the default back.
        let _too_large = unix::signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))
            .or_fail(Exit::Start, "cannot watch for files that become too large")?;
        let reaper = Reaper::watch().or_fail(Exit::Start, "cannot watch for ends of processes")?;
        // Whoever supervises us takes a while to let us have our key.
        let is_supervised = self.arguments.ours.supervised.key_fd.is_some();
        let prepared = is_supervised.then(|| self.prepare()).transpose()?;
        // The socket first: when it is taken, nothing else needs to be started.
        let server = listening::bind(self.arguments, &self.settings.executor)?;
        let executor = Arc::new(match prepared {
            Some(executor) => executor,
            None => self.prepare()?,
        });
        let endpoint = server.endpoint().to_string();
        let reaper = tokio::spawn(reaper.run());
        let saver = tokio::spawn(save_memory(executor.clone()));
        let service = Arc::new(Equipped::new(executor.clone()));
        let (stop, stopped) = watch::channel(());
        let until_stopped = |mut stopped: watch::Receiver<()>| async move {
            // An error means that the sender is gone, which is a stop as well.
            drop(stopped.changed().await);
        };
        let mut serving = Box::pin(server.serve(service, until_stopped(stopped.clone())));
        let tell = move || ready.into_iter().for_each(ReadySignal::send);
        tokio::select! {
            // In this order: the shell takes longest.
            biased;
            begun = executor.begin(tell) => begun.map_err(|error| no_start(&error))?,
            () = stops.next() => return Ok(Exit::Success),
            // Whoever supervises us connects ahead. All others can connect already, and are answered
            // a moment later.
            () = &mut serving, if is_supervised => {}
        }
        let viewer = self.arguments.port.and_then(viewer::bind);
        let published = viewer
            .as_ref()
            .and_then(|viewer| Published::new(viewer.url(), executor.owner()));
        self.announce(&endpoint)?;
        if let Some(viewer) = viewer {
            tokio::spawn(viewer.serve(until_stopped(stopped)));
        }
        let stopping = async {
            stops.next().await;
            stop.send_replace(());
            // The second time means now.
            stops.next().await;
        };
        tokio::select! {
            () = &mut serving => {}
            () = stopping => {}
        }
        // Whoever still waits for an answer gets none.
        drop(serving);
        reaper.abort();
        saver.abort();
        drop(published);
        if timeout(LAST_WORK, executor.shut_down()).await.is_err() {
            tracing::warn!("shells took too long to end");
        }
        Ok(Exit::Success)
    }

    /// A container may outlive every process outside that could keep them.
    fn hold_working_dir(&self) -> Result<Option<File>, Failure> {
        let directory = self.arguments.working_dir.as_deref();
        match directory.filter(|_| self.arguments.ours.supervised.hold_working_dir) {
            Some(directory) => {
                guarded::hold(directory).or_fail(Exit::Start, "cannot hold the working directory")
            }
            None => Ok(None),
        }
    }

    fn prepare(&self) -> Result<Executor, Failure> {
        Executor::prepare(self.options()?).map_err(|error| no_start(&error))
    }

    fn options(&self) -> Result<ExecutorOptions, Failure> {
        let Settings {
            shell,
            files,
            executor,
            env,
            ..
        } = self.settings;
        let wanted = Wanted {
            username: self
                .arguments
                .username
                .as_deref()
                .or(executor.username.as_deref()),
            user_id: self.arguments.user_id,
        };
        let user = identity::choose(&wanted, executor)?;
        let working_dir = match &self.arguments.working_dir {
            Some(directory) => directory.clone(),
            None => std::env::current_dir()
                .or_fail(Exit::Start, "cannot find out the current directory")?,
        };
        if user.credentials().is_some() {
            ownership::give(&working_dir, &user, &executor.group)?;
        }
        Ok(ExecutorOptions {
            environment: self.environment(&user, env.iter()),
            working_dir,
            user,
            shell: shell.program.clone(),
            no_change_timeout: shell.no_change_timeout,
            timeout: shell.timeout,
            scope: match files.scope {
                ScopeSetting::Anywhere => FileScope::WholeFilesystem,
                ScopeSetting::Workspace => FileScope::WorkingDirectory,
            },
            linting: if files.auto_lint {
                Linting::On
            } else {
                Linting::Off
            },
            state_dir: self.arguments.ours.state_dir.clone(),
        })
    }

    fn environment<'a>(
        &self,
        user: &User,
        added: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let inherited = self.context.environment.iter();
        shell_environment(
            inherited.map(|(name, value)| (name.to_owned(), value.to_owned())),
            added.map(|(name, value)| (name.into(), value.into())),
            user,
        )
    }

    fn announce(&self, endpoint: &str) -> Result<(), Failure> {
        match self.context.globals.output {
            OutputFormat::Text => {
                say::note(format_args!("listening on {endpoint}"));
                Ok(())
            }
            OutputFormat::Json => {
                say::line(json!({ "endpoint": endpoint, "pid": std::process::id() }))
            }
        }
    }
}

fn no_start(error: &StartExecutorError) -> Failure {
    let failure = Failure::of(Exit::Start, error).while_doing("cannot start the executor");
    match error {
        StartExecutorError::Shell(_) => {
            failure.hint("`zareba doctor` says which shells this machine has")
        }
        _ => failure,
    }
}
