//! A command that says `hi` and ends, started anew each time.

use std::{
    io::Read as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

use crate::{children::Owned, executor::clean_environment, lane::Subject};

const ANSWER: &[u8] = b"hi\n";

/// Starts a command, and times it from its start to its first output.
#[derive(Debug)]
pub(crate) struct Echo {
    command: Command,
    at_once: usize,
}

impl Echo {
    /// A bare bash, with nothing around it.
    pub(crate) fn bash(home: &Path) -> Self {
        let mut command = Command::new("bash");
        clean_environment(&mut command, home);
        command.args(["-c", "echo hi"]);
        Self::of(command)
    }

    /// Any command that says `hi`.
    pub(crate) fn of(mut command: Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        Self {
            command,
            at_once: 1,
        }
    }

    /// So many of them at once, timed until the last has said it.
    pub(crate) fn at_once(self, count: usize) -> Self {
        Self {
            at_once: count,
            ..self
        }
    }
}

impl Subject for Echo {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let mut started = (0..self.at_once)
            .map(|_| Owned::spawn(&mut self.command))
            .collect::<anyhow::Result<Vec<_>>>()?;
        for process in &mut started {
            hear(process)?;
        }
        let elapsed = start.elapsed();
        for process in started {
            let status = process.wait()?;
            let program = self.command.get_program().display();
            ensure!(status.success(), "{program} ended with {status}");
        }
        Ok(elapsed)
    }
}

fn hear(process: &mut Owned) -> anyhow::Result<()> {
    let mut answer = [0; ANSWER.len()];
    let output = process.child().stdout.as_mut();
    let output = output.context("the process has no standard output")?;
    output
        .read_exact(&mut answer)
        .context("the process ended without a word")?;
    ensure!(answer == ANSWER, "the process said something else");
    Ok(())
}
