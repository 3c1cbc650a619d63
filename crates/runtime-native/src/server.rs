//! Starting `zareba executor` as a process of its own.
//!
//! It listens on a Unix socket in the sandbox's private directory, and its key is in no file and
//! no argument, only in its environment. Readiness is an event: it writes a line to its standard
//! output. So is our end: its standard input is the *lifeline*, and when that closes, because we
//! closed it or because we were killed, it ends its shells and itself.

use std::{
    ffi::{OsStr, OsString},
    io::{self, PipeWriter, Write as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{io::AsyncReadExt as _, net::unix::pipe};
use zareba_executor::{FileScope, Linting, User, UserError};
use zareba_runtime::{SandboxId, Strictness, Variables};

use crate::{
    HomeAccess, NativeOptions, Reachable, SystemMode, Walls, WorkspaceMode,
    members::MARK,
    native::KEPT_LINE,
    process::ServerProcess,
    spawner::{SpawnOrder, Spawner},
};

mod complaints;
mod standard;

use complaints::Complaints;
use standard::Ours;

/// What an executor writes once it listens and can run actions.
const READY_LINE: &[u8] = b"ready\n";

/// The longest path of a Unix socket, less the zero at its end.
const SOCKET_PATH_MAX: usize = 107;

/// The socket's name. It is bound under a longer one first.
const SOCKET: &str = "s";
const SOCKET_DRAFT_LENGTH: usize = ".01234567".len();

/// The file that one writes its complaints to when it outlives us.
const LOG: &str = "log";

/// The one of our variables that an executor inherits: how much it logs.
const LOG_VARIABLE: &str = "ZAREBA_LOG";

/// What an executor is started with.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) program: &'a Path,
    pub(crate) options: &'a NativeOptions,
    /// The sandbox's private directory.
    pub(crate) directory: &'a Path,
    /// The directory to work in; only behind walls there may be none.
    pub(crate) working_dir: Option<&'a Path>,
    pub(crate) no_change_timeout: Duration,
    /// Whose processes its shells and all that they start are.
    pub(crate) sandbox: &'a SandboxId,
    pub(crate) variables: &'a Variables,
    pub(crate) tether: Tether,
    /// The image whose files it has.
    pub(crate) image: Option<&'a str>,
    /// What stands around it.
    pub(crate) walls: Option<Walls>,
    /// Where supervisors come from.
    pub(crate) spawner: &'a Spawner,
}

/// Whether an executor ends with us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tether {
    /// However we end.
    Lifeline,
    /// Only when it is told to.
    Free,
}

/// Why an executor did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartServerError {
    #[error("cannot start `{program}`", program = program.display())]
    Spawn { program: PathBuf, source: io::Error },
    #[error("cannot prepare the channels of an executor")]
    Channels(#[source] io::Error),
    #[error("the executor ended before it was ready, having written: {output}")]
    EndedEarly { output: String },
    #[error(
        "the path of the executor's socket would have more than {SOCKET_PATH_MAX} bytes in `{directory}`; \
         choose a state directory with a shorter path",
        directory = directory.display()
    )]
    PathTooLong { directory: PathBuf },
    #[error(transparent)]
    User(#[from] UserError),
}

/// A running executor and the rope that it hangs on.
#[derive(Debug)]
pub(crate) struct Server {
    lifeline: Option<PipeWriter>,
    pub(crate) process: ServerProcess,
}

/// An executor that was just started.
#[derive(Debug)]
pub(crate) struct Spawned {
    /// Holds a sandbox that shall live on until it can be found again.
    pub(crate) tie: Option<Tie>,
    pub(crate) server: Server,
    pub(crate) readiness: Readiness,
    pub(crate) socket: PathBuf,
    pub(crate) key: String,
}

/// What a sandbox hangs on that is not written down yet: nobody could end it if we were gone.
#[derive(Debug)]
pub(crate) struct Tie(PipeWriter);

impl Tie {
    /// Lets it live on.
    pub(crate) fn release(mut self) -> io::Result<()> {
        self.0.write_all(b"+")
    }
}

/// Tells when an executor is ready.
#[derive(Debug)]
pub(crate) struct Readiness {
    output: pipe::Receiver,
    /// What comes there, in any order.
    lines: &'static [&'static [u8]],
    complaints: Complaints,
}

/// Starts an executor and returns without waiting for it.
pub(crate) fn spawn(order: &Order<'_>) -> Result<Spawned, StartServerError> {
    let directory = order.directory;
    if directory.as_os_str().len() + 1 + SOCKET_DRAFT_LENGTH > SOCKET_PATH_MAX {
        return Err(StartServerError::PathTooLong {
            directory: directory.to_owned(),
        });
    }
    let socket = directory.join(SOCKET);
    let key: String = rand::random::<[u8; 32]>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut environment = environment(order);
    environment.push(("SESSION_API_KEY".into(), key.clone().into()));
    let start = SpawnOrder {
        arguments: arguments(order, &socket)?,
        environment,
        empty_network: order
            .walls
            .as_ref()
            .is_some_and(|walls| walls.network == Reachable::Nothing),
    };
    let (pid, ours) = standard::start(order, start)?;
    let Ours {
        lifeline,
        output,
        errors,
    } = ours;
    let process = ServerProcess::adopt(pid).map_err(StartServerError::Channels)?;
    let (lifeline, tie) = match order.tether {
        Tether::Lifeline => (lifeline, None),
        Tether::Free => (None, lifeline.map(Tie)),
    };
    let server = Server { lifeline, process };
    let open = || {
        let complaints = match errors {
            Some(errors) => Complaints::piped(receiver(errors)?),
            None => Complaints::InFile(directory.join(LOG)),
        };
        Ok(Readiness {
            output: receiver(output)?,
            lines: match order.walls {
                Some(_) => &[READY_LINE, KEPT_LINE],
                None => &[READY_LINE],
            },
            complaints,
        })
    };
    let readiness = open().map_err(|error| {
        server.process.terminate();
        StartServerError::Channels(error)
    })?;
    Ok(Spawned {
        tie,
        server,
        readiness,
        socket,
        key,
    })
}

impl Readiness {
    /// Waits for the lines that say so, and does something between the first and the last.
    pub(crate) async fn ready(
        mut self,
        between: impl Future<Output = ()>,
    ) -> Result<(), StartServerError> {
        let mut between = Some(between);
        let mut said = vec![0; self.lines.concat().len()];
        let mut length = 0;
        while let Some(rest) = said.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match self.output.read(rest).await {
                Ok(0) | Err(_) => break,
                Ok(more) => length += more,
            }
            if length < said.len()
                && let Some(between) = between.take()
            {
                between.await;
            }
        }
        let mut said: Vec<&[u8]> = said.split_inclusive(|byte| *byte == b'\n').collect();
        said.sort_by_key(|line| self.lines.iter().position(|known| known == line));
        if said == self.lines {
            return Ok(());
        }
        Err(StartServerError::EndedEarly {
            output: self.complaints.text().await,
        })
    }
}

impl Server {
    /// One that was found again, and is nobody's child.
    pub(crate) fn found(process: ServerProcess) -> Self {
        Self {
            lifeline: None,
            process,
        }
    }

    /// Ends it, and returns when it is gone. Says whether it had to be killed.
    pub(crate) async fn end(&mut self) -> bool {
        match self.lifeline.take() {
            Some(lifeline) => drop(lifeline),
            None => self.process.terminate(),
        }
        self.process.end().await
    }
}

/// Happens to one that hangs on a lifeline only when the whole async runtime goes, and nobody
/// could await its end.
impl Drop for Server {
    fn drop(&mut self) {
        if let Some(lifeline) = self.lifeline.take() {
            drop(lifeline);
            self.process.end_blocking();
        }
    }
}

/// The command line, the program's name first.
fn arguments(order: &Order<'_>, socket: &Path) -> Result<Vec<OsString>, StartServerError> {
    let mut arguments = vec!["zareba".into()];
    match &order.walls {
        Some(walls) => supervise(&mut arguments, order, walls, socket),
        None => execute(&mut arguments, order, socket)?,
    }
    Ok(arguments)
}

fn add<const N: usize>(arguments: &mut Vec<OsString>, words: [&dyn AsRef<OsStr>; N]) {
    arguments.extend(words.map(|word| word.as_ref().to_owned()));
}

/// The executor itself.
fn execute(
    arguments: &mut Vec<OsString>,
    order: &Order<'_>,
    socket: &Path,
) -> Result<(), UserError> {
    let user = User::current()?;
    let working_dir = order.working_dir.unwrap_or(Path::new("/"));
    // In the sandbox's directory, so that it goes with that even if the executor is killed.
    let state = order.directory.join("state");
    add(arguments, [&"executor", &"--unix", &socket]);
    add(arguments, [&"--working-dir", &working_dir]);
    add(arguments, [&"--state-dir", &state]);
    add(arguments, [&"--username", &user.name]);
    add(arguments, [&"--user-id", &user.uid.to_string()]);
    add(arguments, [&"--no-enable-browser", &"--ready-fd", &"1"]);
    if order.tether == Tether::Lifeline {
        add(arguments, [&"--lifeline-fd", &"0"]);
    }
    Ok(())
}

/// A supervisor, which starts the executor in a sandbox.
fn supervise(arguments: &mut Vec<OsString>, order: &Order<'_>, walls: &Walls, socket: &Path) {
    let mode = match walls.workspace {
        WorkspaceMode::CopyOnWrite => "copy-on-write",
        WorkspaceMode::ReadWrite => "read-write",
        WorkspaceMode::ReadOnly => "read-only",
    };
    let network = match walls.network {
        Reachable::Nothing => "none",
        Reachable::Listed(_) => "filtered",
        Reachable::Everything => "host",
    };
    let system = match walls.system {
        SystemMode::CopyOnWrite => "copy-on-write",
        SystemMode::ReadOnly => "read-only",
    };
    let usage = &walls.usage;
    add(arguments, [&"supervise", &"--id", &order.sandbox.as_str()]);
    add(
        arguments,
        [&"--unix", &socket, &"--directory", &order.directory],
    );
    add(
        arguments,
        [&"--workspace-mode", &mode, &"--network", &network],
    );
    add(arguments, [&"--memory", &usage.memory_bytes.to_string()]);
    add(arguments, [&"--pids", &usage.pids.to_string()]);
    add(arguments, [&"--cpu-millis", &usage.cpu_millis.to_string()]);
    add(arguments, [&"--disk", &usage.disk.bytes.to_string()]);
    add(arguments, [&"--inodes", &usage.disk.inodes.to_string()]);
    add(arguments, [&"--system", &system]);
    if walls.workspace == WorkspaceMode::ReadWrite && !walls.guarded.is_empty() {
        add(arguments, [&"--guarded", &walls.guarded.join("/")]);
    }
    if walls.home_tools == HomeAccess::ReadOnly {
        add_home(arguments, &order.options.environment);
    }
    if walls.strictness == Strictness::BestEffort {
        add(arguments, [&"--best-effort"]);
    }
    if let Some(workspace) = order.working_dir {
        add(arguments, [&"--workspace", &workspace]);
    }
    if let Reachable::Listed(policy) = &walls.network {
        // Nothing in it refuses to be written.
        let policy = serde_json::to_string(policy).unwrap_or_default();
        add(arguments, [&"--egress", &policy]);
    }
    if let Some(image) = order.image {
        let store = &order.options.images;
        add(arguments, [&"--image", &image, &"--image-store", store]);
    }
    add(arguments, [&"--lifeline"]);
}

/// The home of our user. Without one there is nothing in it.
fn add_home(arguments: &mut Vec<OsString>, variables: &[(OsString, OsString)]) {
    let variable = |name: &str| variables.iter().find(|(it, _)| it == name);
    if let Some((_, home)) = variable("HOME") {
        add(arguments, [&"--home-tools", home]);
        if let Some((_, path)) = variable("PATH") {
            add(arguments, [&"--home-path", path]);
        }
    }
}

/// What the executor itself sees. Variables for its shells carry a prefix that it takes off, so
/// that none of them can change how it works.
fn environment(order: &Order<'_>) -> Vec<(OsString, OsString)> {
    let options = order.options;
    let is_inherited = |name: &OsStr| {
        let is_setting = name.as_encoded_bytes().starts_with(b"ZAREBA_") && name != LOG_VARIABLE;
        !is_setting && name != "SESSION_API_KEY"
    };
    // Behind walls nothing is inherited: variables are where people keep their secrets.
    let inherited = options
        .environment
        .iter()
        .filter(|(name, _)| order.walls.is_none() && is_inherited(name));
    let mut environment: Vec<(OsString, OsString)> = inherited.cloned().collect();
    let mut set = |name: &str, value: &OsStr| environment.push((name.into(), value.into()));
    set(
        &format!("ZAREBA_ENV_{MARK}"),
        order.sandbox.as_str().as_ref(),
    );
    for (name, value) in order.variables.iter() {
        set(&format!("ZAREBA_ENV_{name}"), value.as_ref());
    }
    let seconds = order.no_change_timeout.as_secs_f64().to_string();
    set("ZAREBA_SHELL_NO_CHANGE_TIMEOUT", seconds.as_ref());
    if let Some(shell) = &options.shell {
        set("ZAREBA_SHELL_PROGRAM", shell.as_os_str());
    }
    let scope = match options.scope {
        FileScope::WholeFilesystem => "anywhere",
        FileScope::WorkingDirectory => "workspace",
    };
    set("ZAREBA_FILES_SCOPE", scope.as_ref());
    let linting = match options.linting {
        Linting::Off => "false",
        Linting::On => "true",
    };
    set("ZAREBA_FILES_AUTO_LINT", linting.as_ref());
    environment
}

fn receiver(descriptor: OwnedFd) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(descriptor)
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
