//! A shell at a terminal: keys in, screen out, until the shell ends.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use tokio::{
    runtime,
    signal::unix::{SignalKind, signal},
};
use zareba_config::{Configuration, Settings};
use zareba_executor::{User, shell_environment};
use zareba_terminal::{Child, ExitReason, Pty, Spawn};

use crate::{
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    offspring, programs, say,
    signals::Signals,
    user_terminal::{self, RawMode},
};

/// What is read at once from the shell.
const CHUNK_BYTES: usize = 16 * 1024;

/// Shell output that is still shown after the shell has ended.
const LAST_CHUNKS: usize = 64;

/// Gives the terminal to a shell in a fresh directory.
pub(super) fn perform(context: &Context, configuration: &Configuration) -> Result<Exit, Failure> {
    let settings = &configuration.settings;
    let workspace = Workspace::prepare(settings)?;
    let shell = shell(context, settings)?;
    offspring::adopt_orphans();
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start")?;
    say::note(format_args!(
        "a shell in `{}`, not isolated; `exit` leaves it",
        workspace.path().display()
    ));
    let outcome = runtime.block_on(async {
        let pty =
            Pty::open(user_terminal::size()).or_fail(Exit::Start, "cannot open a terminal")?;
        let mut spawn = Spawn::new(&shell, workspace.path());
        spawn.arguments = vec!["-i".into()];
        spawn.environment = environment(context, settings)?;
        let child = spawn
            .on(&pty)
            .map_err(|error| Failure::of(Exit::Start, &error))?;
        let raw_mode = RawMode::enter().or_fail(Exit::Start, "cannot use this terminal")?;
        let outcome = relay(&pty, child).await;
        drop(raw_mode);
        outcome
    });
    // The thread that waits for keys cannot be called back; it goes with the process.
    runtime.shutdown_background();
    offspring::kill_all();
    outcome
}

/// Carries bytes both ways until the shell ends or a signal ends us.
async fn relay(pty: &Pty, mut child: Child) -> Result<Exit, Failure> {
    let mut keys = user_terminal::keyboard()?;
    let mut signals = Signals::watch()?;
    let mut resized =
        signal(SignalKind::window_change()).or_fail(Exit::Start, "cannot wait for signals")?;
    let lost = |error: io::Error| Failure::of(Exit::Lost, &error).while_doing("lost the terminal");
    let mut chunk = vec![0; CHUNK_BYTES];
    // What was typed and not yet taken by the shell.
    let mut typed: Vec<u8> = Vec::new();
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended.map_err(lost)?,
            ready = pty.readable() => {
                ready.map_err(lost)?;
                show(pty, &mut chunk).map_err(lost)?;
            }
            ready = pty.writable(), if !typed.is_empty() => {
                ready.map_err(lost)?;
                let taken = pty.write(&typed).map_err(lost)?;
                typed.drain(..taken);
            }
            more = keys.recv(), if typed.is_empty() => match more {
                Some(more) => typed = more,
                // Our own terminal is gone, and nobody can leave the shell any more.
                None => break ExitReason::Signal(1),
            },
            _ = resized.recv() => pty.resize(user_terminal::size()).map_err(lost)?,
            signal = signals.next() => break ExitReason::Signal(signal.into()),
        }
    };
    for _ in 0..LAST_CHUNKS {
        if !show(pty, &mut chunk).map_err(lost)? {
            break;
        }
    }
    Ok(Exit::of_command(ended.shell_status()))
}

/// Shows what there is now; false when there was nothing.
fn show(pty: &Pty, chunk: &mut [u8]) -> io::Result<bool> {
    let Some(length) = pty.read(chunk)? else {
        return Ok(false);
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(&chunk[..length])?;
    stdout.flush()?;
    Ok(length > 0)
}

/// The shell that is set, else bash, else sh. A name without a slash is looked for in `PATH`.
fn shell(context: &Context, settings: &Settings) -> Result<PathBuf, Failure> {
    let find = |name: &str| programs::find(name, &context.environment);
    let found = match &settings.shell.program {
        Some(program) if program.components().count() > 1 => Some(program.clone()),
        Some(program) => program.to_str().and_then(find),
        None => find("bash").or_else(|| find("sh")),
    };
    found.ok_or_else(|| {
        Failure::new(Exit::Start, "there is no such shell in PATH")
            .hint("`zareba doctor` says what this machine can do")
    })
}

/// As the executor's shells have it, but for the terminal, which is the user's.
fn environment(
    context: &Context,
    settings: &Settings,
) -> Result<Vec<(OsString, OsString)>, Failure> {
    let user = User::current().or_fail(Exit::Start, "cannot find out who we are")?;
    let inherited = context.environment.iter();
    let terminal = context
        .environment
        .get_os("TERM")
        .map(|terminal| ("TERM".into(), terminal.into()));
    let variables = settings
        .env
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    Ok(shell_environment(
        inherited.map(|(name, value)| (name.to_owned(), value.to_owned())),
        terminal.into_iter().chain(variables),
        &user,
    ))
}

/// The directory to work in.
enum Workspace {
    Given(PathBuf),
    Fresh(TempDir),
}

impl Workspace {
    fn prepare(settings: &Settings) -> Result<Self, Failure> {
        match &settings.runtime.workspace {
            Some(path) => {
                let deed = format!("cannot use the workspace `{}`", path.display());
                std::fs::create_dir_all(path)
                    .and_then(|()| std::fs::canonicalize(path))
                    .map(Self::Given)
                    .or_fail(Exit::Start, deed)
            }
            None => tempfile::Builder::new()
                .prefix("zareba-")
                .tempdir()
                .map(Self::Fresh)
                .or_fail(Exit::Start, "cannot make a directory to work in"),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Fresh(directory) => directory.path(),
        }
    }
}
