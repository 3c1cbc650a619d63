//! Starting a program on a terminal.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::process::Pid;

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

/// A program to start on a terminal, as leader of a session of its own.
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

    /// Starts it. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the program or its directory is not there or may not be used.
    pub fn on(mut self, pty: &Pty) -> Result<Child, SpawnError> {
        let program = self.program.clone();
        let terminal_failed = |source| SpawnError::Terminal {
            program: program.clone(),
            source,
        };
        let start_failed = |source| SpawnError::Start {
            program: program.clone(),
            source,
        };
        self.keep_numbers_apart().map_err(start_failed)?;
        let mut command = Command::new(&self.program);
        command
            .arg0(&self.arg0)
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment)
            .current_dir(&self.directory)
            .stdin(Stdio::from(pty.inner().map_err(terminal_failed)?))
            .stdout(Stdio::from(pty.inner().map_err(terminal_failed)?))
            .stderr(Stdio::from(pty.inner().map_err(terminal_failed)?));
        if let Some(credentials) = &self.credentials {
            pty.give_to(credentials).map_err(terminal_failed)?;
        }
        let inherited = self
            .extra
            .iter()
            .map(|fd| (fd.descriptor.as_raw_fd(), fd.number))
            .collect();
        sys::lead_session_on_stdin(&mut command, inherited, self.credentials);
        let mut child = command.spawn().map_err(start_failed)?;
        Child::adopt(Pid::from_child(&child)).map_err(|source| {
            let _ = child.kill();
            let _ = child.wait();
            start_failed(source)
        })
    }
}
