//! Bare processes in one process group: what signals alone can do to many at once.

use std::{
    io::{self, Read as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::{children::Owned, executor::clean_environment};

/// The processes wait for input that never comes, so that they end with whoever started them.
const SCRIPT: &str = r#"exec 3<&0; for ((n = 0; n < $1; n++)); do cat <&3 & done; echo hi; wait"#;
const ANSWER: &[u8] = b"hi\n";

/// A bash and the processes that it has started.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Owned,
    /// Open as long as one of them lives.
    output: ChildStdout,
}

impl Group {
    /// Returns when there are so many beside the bash.
    pub(crate) fn start(home: &Path, count: usize) -> anyhow::Result<Self> {
        let mut command = Command::new("bash");
        clean_environment(&mut command, home);
        command
            .args(["-c", SCRIPT, "bash", &count.to_string()])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut leader = Owned::spawn(&mut command)?;
        let output = leader.child().stdout.take();
        let output = output.context("bash has no standard output")?;
        let mut group = Self { leader, output };
        let mut answer = [0; ANSWER.len()];
        group.output.read_exact(&mut answer)?;
        ensure!(answer == ANSWER, "bash could not start {count} processes");
        Ok(group)
    }

    /// Stops all of them; timed until the bash stands still.
    pub(crate) fn stop(&self) -> anyhow::Result<Duration> {
        self.signal(Signal::STOP, WaitIdOptions::STOPPED)
    }

    /// Lets them go on; timed until the bash does.
    pub(crate) fn go_on(&self) -> anyhow::Result<Duration> {
        self.signal(Signal::CONT, WaitIdOptions::CONTINUED)
    }

    /// Kills all of them; timed until the last one is gone.
    pub(crate) fn kill(self) -> anyhow::Result<Duration> {
        let pid = self.pid()?;
        let Self { leader, mut output } = self;
        let start = Instant::now();
        kill_process_group(pid, Signal::KILL)?;
        io::copy(&mut output, &mut io::sink())?;
        leader.wait()?;
        Ok(start.elapsed())
    }

    fn signal(&self, signal: Signal, change: WaitIdOptions) -> anyhow::Result<Duration> {
        let pid = self.pid()?;
        let start = Instant::now();
        kill_process_group(pid, signal)?;
        waitid(WaitId::Pid(pid), change)?;
        Ok(start.elapsed())
    }

    fn pid(&self) -> anyhow::Result<Pid> {
        let pid = i32::try_from(self.leader.id())?;
        Pid::from_raw(pid).context("bash has no number")
    }
}
