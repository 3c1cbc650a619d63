//! A bare bash on two pipes: a command goes in, a marker comes out.

use std::{
    io::{self, Read, Write},
    os::fd::{AsFd as _, BorrowedFd},
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

use crate::{
    children::Owned,
    executor::clean_environment,
    lane::{Lane, Subject},
};

/// What follows each command, and how its output looks.
const ASK_FOR_MARK: &str = "\necho @@@\n";
const MARK: &[u8] = b"@@@\n";
/// Commands here write a few bytes.
const BUFFER_BYTES: usize = 4096;

/// Whether bash reads its user's start-up file, as an interactive shell does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RcFile {
    Read,
    Ignored,
}

/// A bash that takes commands in turn.
#[derive(Debug)]
pub(crate) struct Bash {
    input: ChildStdin,
    output: ChildStdout,
    lines: Vec<Vec<u8>>,
    sent: usize,
    buffer: Box<[u8; BUFFER_BYTES]>,
    /// After the pipes, so that it sees them closed before it is killed.
    _process: Owned,
}

impl Bash {
    pub(crate) fn start(home: &Path, rc_file: RcFile, commands: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new("bash");
        clean_environment(&mut command, home);
        match rc_file {
            RcFile::Read => command.arg("-i"),
            RcFile::Ignored => command.args(["--noprofile", "--norc"]),
        };
        command
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = Owned::spawn(&mut command)?;
        let child = process.child();
        let input = child.stdin.take().context("bash has no standard input")?;
        let output = child.stdout.take().context("bash has no standard output")?;
        let lines = commands
            .iter()
            .map(|command| format!("{command}{ASK_FOR_MARK}").into_bytes())
            .collect();
        Ok(Self {
            input,
            output,
            lines,
            sent: 0,
            buffer: Box::new([0; BUFFER_BYTES]),
            _process: process,
        })
    }
}

impl Lane for Bash {
    fn send(&mut self) -> io::Result<()> {
        let line = &self.lines[self.sent % self.lines.len()];
        self.sent += 1;
        self.input.write_all(line)
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        let mut filled = 0;
        while !self.buffer[..filled].ends_with(MARK) {
            match self.output.read(&mut self.buffer[filled..])? {
                0 => bail!("bash ended, or wrote more than {BUFFER_BYTES} bytes"),
                length => filled += length,
            }
        }
        Ok(())
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }
}

/// Starts a bash and lets it answer its first command.
#[derive(Debug)]
pub(crate) struct BashStart {
    pub(crate) home: PathBuf,
    pub(crate) rc_file: RcFile,
}

impl Subject for BashStart {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let mut bash = Bash::start(&self.home, self.rc_file, &["true"])?;
        bash.once()?;
        Ok(start.elapsed())
    }
}
