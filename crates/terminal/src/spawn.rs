//! Starting a program on a terminal, or on pipes.

use std::{
    collections::BTreeMap,
    ffi::{CString, OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Gid, Uid},
    pipe::{PipeFlags, pipe_with},
    process::{Signal, WaitOptions},
};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::{Child, Pty, sys};

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The terminal could not be handed over.
    #[error("cannot hand the terminal to `{program}`", program = program.display())]
    Terminal {
        /// What was to be started.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The pipes could not be made or handed over.
    #[error("cannot make pipes for `{program}`", program = program.display())]
    Pipes {
        /// What was to be started.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The program did not start.
    #[error("cannot start `{program}`", program = program.display())]
    Start {
        /// What was to be started.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// The identity that a program runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Other groups. They can be set only by root.
    pub groups: Vec<u32>,
}

/// A descriptor that the program gets beside the terminal, under a number of its own.
#[derive(Debug)]
pub struct ExtraFd {
    /// Ours.
    pub descriptor: OwnedFd,
    /// The program's number for it.
    pub number: RawFd,
}

/// What a program on pipes reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipedInput {
    /// Nothing: it is at its end from the start.
    Empty,
    /// What we write.
    Open,
}

/// Our ends of a program's pipes. None of them blocks.
#[derive(Debug)]
pub struct Pipes {
    /// What it reads, when there is something to read.
    pub stdin: Option<Sender>,
    /// What it writes.
    pub stdout: Receiver,
    /// What it complains of.
    pub stderr: Receiver,
}

/// A program to start on a terminal or on pipes, as leader of a session of its own.
#[derive(Debug)]
pub struct Spawn {
    /// The program; no search in `PATH`.
    pub program: PathBuf,
    /// What it sees as its own name.
    pub arg0: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub directory: PathBuf,
    /// Who it runs as; `None` is who we are.
    pub credentials: Option<Credentials>,
    /// What it gets beside the terminal.
    pub extra: Vec<ExtraFd>,
}

impl Spawn {
    /// A program with nothing but its name and a directory.
    pub fn new(program: &Path, directory: &Path) -> Self {
        Self {
            program: program.to_owned(),
            arg0: program
                .file_name()
                .unwrap_or(OsStr::new("program"))
                .to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: directory.to_owned(),
            credentials: None,
            extra: Vec::new(),
        }
    }

    /// Moves descriptors of ours out of the way whose numbers the program wants for others:
    /// one put in place would close the next, or stay marked to be closed.
    fn keep_numbers_apart(&mut self) -> io::Result<()> {
        let Some(highest) = self.extra.iter().map(|fd| fd.number).max() else {
            return Ok(());
        };
        for fd in &mut self.extra {
            if fd.descriptor.as_raw_fd() <= highest {
                fd.descriptor = rustix::io::fcntl_dupfd_cloexec(&fd.descriptor, highest + 1)?;
            }
        }
        Ok(())
    }

    /// Starts it on a terminal. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the program or its directory is not there or may not be used.
    pub fn on(self, pty: &Pty) -> Result<Child, SpawnError> {
        let program = self.program.clone();
        let failed = |source| SpawnError::Terminal {
            program: program.clone(),
            source,
        };
        if let Some(credentials) = &self.credentials {
            pty.give_to(credentials).map_err(failed)?;
        }
        let stdio = [
            pty.inner().map_err(failed)?,
            pty.inner().map_err(failed)?,
            pty.inner().map_err(failed)?,
        ];
        self.start(stdio, sys::Lead::OnTerminal)
    }

    /// Starts it on pipes, without a terminal: nothing on the machine can type at it. Must be
    /// called inside a tokio runtime.
    ///
    /// # Errors
    /// When the program or its directory is not there or may not be used.
    pub fn on_pipes(self, input: PipedInput) -> Result<(Child, Pipes), SpawnError> {
        let program = self.program.clone();
        let failed = |source| SpawnError::Pipes {
            program: program.clone(),
            source,
        };
        let owner = self.credentials.clone();
        let open = || pipe_for(owner.as_ref()).map_err(failed);
        let (stdin, inner_stdin) = match input {
            PipedInput::Empty => (None, File::open("/dev/null").map_err(failed)?.into()),
            PipedInput::Open => {
                let (inner, outer) = open()?;
                (
                    Some(Sender::from_owned_fd(quick(outer).map_err(failed)?).map_err(failed)?),
                    inner,
                )
            }
        };
        let ((stdout, inner_stdout), (stderr, inner_stderr)) = (open()?, open()?);
        let receiver = |pipe| {
            quick(pipe)
                .and_then(Receiver::from_owned_fd)
                .map_err(failed)
        };
        let pipes = Pipes {
            stdin,
            stdout: receiver(stdout)?,
            stderr: receiver(stderr)?,
        };
        let stdio = [inner_stdin, inner_stdout, inner_stderr];
        let child = self.start(stdio, sys::Lead::WithoutTerminal)?;
        Ok((child, pipes))
    }

    fn start(mut self, stdio: [OwnedFd; 3], lead: sys::Lead) -> Result<Child, SpawnError> {
        let program = self.program.clone();
        let failed = |source| SpawnError::Start {
            program: program.clone(),
            source,
        };
        self.keep_numbers_apart().map_err(failed)?;
        let plan = self.plan(stdio, lead).map_err(failed)?;
        let pid = plan.start().map_err(failed)?;
        Child::adopt(pid).map_err(|source| {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
            failed(source)
        })
    }

    fn plan(&self, stdio: [OwnedFd; 3], lead: sys::Lead) -> io::Result<sys::Plan> {
        let [stdin, stdout, stderr] = stdio;
        let arguments = std::iter::once(&self.arg0).chain(&self.arguments);
        // The last of a name counts, and their order means nothing.
        let variables: BTreeMap<_, _> = self.environment.iter().map(|(n, v)| (n, v)).collect();
        let variables = variables.into_iter().map(|(name, value)| {
            let mut variable = name.clone();
            variable.push("=");
            variable.push(value);
            variable
        });
        Ok(sys::Plan {
            program: c_string(self.program.as_os_str())?,
            arguments: arguments
                .map(|argument| c_string(argument))
                .collect::<io::Result<_>>()?,
            environment: variables
                .map(|variable| c_string(&variable))
                .collect::<io::Result<_>>()?,
            directory: c_string(self.directory.as_os_str())?,
            stdio: [
                beyond_stdio(stdin)?,
                beyond_stdio(stdout)?,
                beyond_stdio(stderr)?,
            ],
            lead,
            inherited: self
                .extra
                .iter()
                .map(|fd| (fd.descriptor.as_raw_fd(), fd.number))
                .collect(),
            credentials: self.credentials.clone(),
        })
    }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// The same descriptor, under a number that is none of the standard three.
fn beyond_stdio(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    match descriptor.as_raw_fd() {
        0..=2 => Ok(rustix::io::fcntl_dupfd_cloexec(&descriptor, 3)?),
        _ => Ok(descriptor),
    }
}

/// A pipe, its reading end first. It belongs to whoever works on it, who could otherwise not
/// open `/dev/stdout` or `/dev/stderr`.
fn pipe_for(owner: Option<&Credentials>) -> io::Result<(OwnedFd, OwnedFd)> {
    let (reads, writes) = pipe_with(PipeFlags::CLOEXEC)?;
    if let Some(owner) = owner {
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        rustix::fs::fchown(&reads, Some(uid), Some(gid))?;
    }
    Ok((reads, writes))
}

/// Our end does not block; the program's end, which is another description, still does.
fn quick(pipe: OwnedFd) -> io::Result<OwnedFd> {
    rustix::io::ioctl_fionbio(&pipe, true)?;
    Ok(pipe)
}
