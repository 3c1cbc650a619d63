//! One shell process with its terminal and its three channels.

use std::{
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    thread,
};

use rand::{TryRng as _, rngs::SysRng};
use rustix::{
    event::{PollFd, PollFlags},
    fs::{MemfdFlags, SeekFrom, memfd_create},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
};
use tokio::net::unix::pipe::Receiver;
use zareba_terminal::{Child, Credentials, ExtraFd, Pty, Size, Spawn, SpawnError};

use super::{
    dialect::{Arming, Dialect, FoundShell},
    report::ReportReader,
};
use crate::{
    oom,
    variables::{SharedVariables, VariableUpdate},
};

/// Bytes that are read from the report pipe at once.
const REPORT_CHUNK_BYTES: usize = 4096;

/// What a pipe holds, and then some; background jobs may keep it open.
const DRAIN_MAX_CHUNKS: usize = 64;

/// A thread that waits for room in a pipe does nothing else.
const LATER_STACK_BYTES: usize = 64 * 1024;

/// What every shell of an executor is started with.
#[derive(Clone, Debug)]
pub(crate) struct ShellSpec {
    /// The shell to use; `None` looks for bash and then for sh.
    pub(crate) program: Option<PathBuf>,
    /// The environment at the executor's start.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// What clients have set since, which wins over the environment.
    pub(crate) variables: SharedVariables,
    /// Who it runs as; `None` is who we are.
    pub(crate) credentials: Option<Credentials>,
    /// The size of its terminal.
    pub(crate) size: Size,
    /// Where outputs that are too long to be shown are kept.
    pub(crate) outputs: PathBuf,
    /// Who those files belong to.
    pub(crate) owner: crate::owner::Owner,
}

/// Why a shell could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartShellError {
    /// There is none.
    #[error("cannot find a shell: neither `bash` nor `sh` is in the search path `{search_path}`")]
    NotFound {
        /// Where it was looked for.
        search_path: String,
    },
    /// The system had no terminal, pipe or memory file to give.
    #[error("cannot open the channels of a shell")]
    Channels(#[source] io::Error),
    /// The program did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It ended before it was ready.
    #[error("the shell `{program}` ended before it was ready, having written: {output}", program = program.display())]
    EndedEarly {
        /// Which shell.
        program: PathBuf,
        /// What it said.
        output: String,
    },
    /// It was not ready in time.
    #[error("the shell `{program}` was not ready within {seconds} seconds", program = program.display())]
    TooSlow {
        /// Which shell.
        program: PathBuf,
        /// How long we waited.
        seconds: u64,
    },
}

/// A running shell. Dropping it kills it, with everything in its session.
#[derive(Debug)]
pub(super) struct ShellProcess {
    pub(super) pty: Pty,
    pub(super) child: Child,
    pub(super) program: PathBuf,
    dialect: &'static dyn Dialect,
    commands: OwnedFd,
    body: OwnedFd,
    pub(super) reports: Reports,
    /// It has read its trigger, or will without more ado.
    armed: bool,
    /// It has taken its command.
    listens: bool,
    /// A command that came before that.
    pending: Option<Vec<u8>>,
    variables: SharedVariables,
    /// The version of the variables that the shell has.
    known: u64,
    /// What goes with the command that it has not taken yet.
    offered: VariableUpdate,
}

/// The reading end of the report pipe.
#[derive(Debug)]
pub(super) struct Reports {
    receiver: Option<Receiver>,
    pub(super) reader: ReportReader,
}

impl ShellProcess {
    /// Starts a shell in `directory`; it reports number 0 when it is ready.
    pub(super) fn start(spec: &ShellSpec, directory: &Path) -> Result<Self, StartShellError> {
        let mut environment = spec.environment.clone();
        let known = spec.variables.apply_to(&mut environment);
        let search_path = search_path(&environment);
        let Some(FoundShell { program, dialect }) =
            FoundShell::find(spec.program.as_deref(), &search_path)
        else {
            return Err(StartShellError::NotFound { search_path });
        };
        let channels = Channels::open(spec.size).map_err(StartShellError::Channels)?;
        let token = draw_token().map_err(StartShellError::Channels)?;
        put(&channels.body, &dialect.start_up(&token, directory))
            .map_err(StartShellError::Channels)?;
        let mut spawn = Spawn::new(&program, directory);
        spawn.arg0 = dialect.own_name(&program).to_owned();
        spawn.arguments = dialect
            .arguments()
            .into_iter()
            .map(OsString::from)
            .collect();
        spawn.environment = environment;
        let own = dialect
            .environment()
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        spawn.environment.extend(own);
        spawn.credentials.clone_from(&spec.credentials);
        let body = channels
            .body
            .try_clone()
            .map_err(StartShellError::Channels)?;
        let numbers = dialect.channels();
        spawn.extra = vec![
            ExtraFd {
                descriptor: channels.commands_inner,
                number: numbers.commands,
            },
            ExtraFd {
                descriptor: body,
                number: numbers.body,
            },
            ExtraFd {
                descriptor: channels.reports_inner,
                number: numbers.reports,
            },
        ];
        let child = spawn.on(&channels.pty)?;
        oom::goes_before_us(&child);
        let reports = Reports {
            receiver: Some(channels.reports),
            reader: ReportReader::new(&token),
        };
        Ok(Self {
            pty: channels.pty,
            child,
            program,
            dialect,
            commands: channels.commands,
            body: channels.body,
            reports,
            armed: false,
            listens: false,
            pending: None,
            variables: spec.variables.clone(),
            known,
            offered: VariableUpdate::default(),
        })
    }

    /// Makes the shell wait for its next command, after one ended. Types the trigger, unless the
    /// shell says at its prompt that it waits for it.
    pub(super) fn arm(&mut self) -> io::Result<()> {
        (self.armed, self.listens) = (false, false);
        match self.dialect.arming() {
            Arming::Typed => {
                self.pty.type_silently(self.dialect.trigger())?;
                self.take_commands()
            }
            Arming::HandShake => Ok(()),
        }
    }

    /// Types the trigger for a shell that waits at its prompt, and lets it go on.
    pub(super) fn let_go(&mut self, number: i64) -> io::Result<()> {
        self.pty.type_silently(self.dialect.trigger())?;
        write_line(&self.commands, &format!("go {number}"))?;
        match self.dialect.arming() {
            Arming::Typed => self.take_commands(),
            Arming::HandShake => Ok(()),
        }
    }

    /// The shell has read its trigger: it may be given a command, and input shows again.
    pub(super) fn begun(&mut self) -> io::Result<()> {
        self.take_commands()
    }

    /// The shell has its command, and may be typed at. Before, a key such as Ctrl-Z would make
    /// the kernel forget the trigger, and Ctrl-C the shell its command.
    pub(super) fn taken(&mut self) {
        self.listens = true;
        // It sets them before it says that it has taken the command.
        self.known = self.known.max(self.offered.version);
        self.offered.entries.clear();
    }

    /// What is typed now reaches the command.
    pub(super) fn listens(&self) -> bool {
        self.listens
    }

    fn take_commands(&mut self) -> io::Result<()> {
        self.armed = true;
        self.pty.echo()?;
        match self.pending.take() {
            Some(body) => self.hand_over(&body),
            None => Ok(()),
        }
    }

    /// Hands the shell a command, as soon as it waits for one, with the variables that changed.
    pub(super) fn submit(&mut self, id: u64, command: &str) -> io::Result<()> {
        self.offered = self.variables.since(self.known);
        let body = self.dialect.body(id, command, &self.offered.entries);
        if self.armed {
            return self.hand_over(&body);
        }
        self.pending = Some(body);
        Ok(())
    }

    /// Hands over a command once more to a shell that stands at its prompt: Ctrl-C may have come
    /// when it was about to take it. One that it has already is not run again.
    pub(super) fn submit_again(&mut self, id: u64, command: &str) -> io::Result<()> {
        let body = self.dialect.body(id, command, &self.offered.entries);
        match self.dialect.arming() {
            Arming::Typed => self.hand_over(&body),
            Arming::HandShake => {
                self.pending = Some(body);
                Ok(())
            }
        }
    }

    /// Takes back a command that the shell has not taken.
    pub(super) fn withdraw(&mut self) -> io::Result<()> {
        self.pending = None;
        put(&self.body, &[])
    }

    fn hand_over(&self, body: &[u8]) -> io::Result<()> {
        put(&self.body, body)?;
        write_line(&self.commands, "run")
    }

    pub(super) fn shortcomings(&self) -> Option<&'static str> {
        self.dialect.shortcomings()
    }
}

impl Reports {
    /// Waits for the shell to say something. Never returns once the pipe is closed: then only
    /// the end of the process tells. May be dropped and called again.
    pub(super) async fn arrived(&mut self) {
        let mut chunk = [0; REPORT_CHUNK_BYTES];
        loop {
            let Some(receiver) = &self.receiver else {
                return std::future::pending().await;
            };
            if receiver.readable().await.is_err() {
                self.receiver = None;
                continue;
            }
            match receiver.try_read(&mut chunk) {
                Ok(0) => self.receiver = None,
                Ok(length) => {
                    self.reader.push(&chunk[..length]);
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.receiver = None,
            }
        }
    }

    /// Takes what is there, whether or not the runtime has noticed it.
    pub(super) fn drain(&mut self) {
        let mut chunk = [0; REPORT_CHUNK_BYTES];
        for _ in 0..DRAIN_MAX_CHUNKS {
            match self
                .receiver
                .as_ref()
                .map(|receiver| rustix::io::read(receiver, &mut chunk))
            {
                Some(Ok(length @ 1..)) => self.reader.push(&chunk[..length]),
                _ => return,
            }
        }
    }
}

struct Channels {
    pty: Pty,
    commands: OwnedFd,
    commands_inner: OwnedFd,
    body: OwnedFd,
    reports: Receiver,
    reports_inner: OwnedFd,
}

impl Channels {
    fn open(size: Size) -> io::Result<Self> {
        let pty = Pty::open(size)?;
        let (commands_inner, commands) = pipe_with(PipeFlags::CLOEXEC)?;
        let (reports, reports_inner) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&reports, true)?;
        // Each end has this by itself: the shell waits at its own.
        rustix::io::ioctl_fionbio(&commands, true)?;
        let body = memfd_create("zareba-body", MemfdFlags::CLOEXEC)?;
        let reports = Receiver::from_owned_fd(reports)?;
        Ok(Self {
            pty,
            commands,
            commands_inner,
            body,
            reports,
            reports_inner,
        })
    }
}

/// A pipe takes a line this short whole, and the shell has read the one before; unless a command
/// has found the pipe and filled it.
fn write_line(pipe: &OwnedFd, line: &str) -> io::Result<()> {
    let line = format!("{line}\n");
    match rustix::io::write(pipe, line.as_bytes()) {
        Err(Errno::AGAIN) => write_later(pipe.try_clone()?, line),
        written => Ok(written.map(drop)?),
    }
}

/// Writes a line when there is room. The shell empties its pipe while it waits for a command, and
/// may find a line in it that makes it take this one; so nobody may stand still for that.
fn write_later(pipe: OwnedFd, line: String) -> io::Result<()> {
    let write = move || {
        loop {
            let mut room = [PollFd::new(&pipe, PollFlags::OUT)];
            let waited = rustix::event::poll(&mut room, None);
            match waited.and_then(|_| rustix::io::write(&pipe, line.as_bytes())) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                // Written, or the shell has ended.
                _ => return,
            }
        }
    };
    let thread = thread::Builder::new().name("bell".to_owned());
    thread.stack_size(LATER_STACK_BYTES).spawn(write)?;
    Ok(())
}

/// Makes `content` what the shell reads from its start. The position is shared with the shell.
fn put(body: &OwnedFd, content: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while written < content.len() {
        written += rustix::io::pwrite(body, &content[written..], written as u64)?;
    }
    // At last: emptied first, it would give its memory back and ask for it again.
    rustix::fs::ftruncate(body, content.len() as u64)?;
    rustix::fs::seek(body, SeekFrom::Start(0))?;
    Ok(())
}

/// What nobody can guess. From the system itself: a generator of our own takes longer to begin with
/// than all that is drawn here.
fn draw_token() -> io::Result<String> {
    let mut drawn = [0; 16];
    SysRng
        .try_fill_bytes(&mut drawn)
        .map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(drawn)))
}

/// The value of `PATH`, or nothing.
pub(crate) fn search_path(environment: &[(OsString, OsString)]) -> String {
    let path = environment.iter().find(|(name, _)| name == "PATH");
    path.map_or_else(String::new, |(_, value)| {
        value.to_string_lossy().into_owned()
    })
}
