//! Running a checker: no shell, a deadline, bounded output, and nothing left behind.

use std::{
    io::{Read, Seek, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Child, Command},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};

use crate::owner::Owner;

/// An agent waits for its edit; a checker that needs longer is not worth it.
const DEADLINE: Duration = Duration::from_secs(5);
/// What is read of a checker's output.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// Runs checkers as the user whose files they read.
#[derive(Debug)]
pub(super) struct Runner {
    owner: Owner,
    deadline: Duration,
}

/// What a checker that ended in time said, on both of its outputs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finished {
    pub(super) exit_code: i32,
    pub(super) output: String,
}

impl Runner {
    pub(super) fn new(owner: Owner) -> Self {
        Self {
            owner,
            deadline: DEADLINE,
        }
    }

    /// Runs a program from the search path with `input` as its standard input. `None` when it is
    /// not there, cannot be run, does not end in time or dies of a signal.
    pub(super) fn run(&self, program: &str, arguments: &[&str], input: &str) -> Option<Finished> {
        let deadline = Instant::now() + self.deadline;
        // A file, unlike a pipe, never makes us wait for a reader.
        let mut stdin = tempfile::tempfile().ok()?;
        stdin.write_all(input.as_bytes()).ok()?;
        stdin.rewind().ok()?;
        let (mut reader, writer) = std::io::pipe().ok()?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir("/")
            .env("LC_ALL", "C")
            .env("PYTHONIOENCODING", "utf-8")
            .env_remove("SESSION_API_KEY")
            .stdin(stdin)
            .stdout(writer.try_clone().ok()?)
            .stderr(writer)
            .process_group(0);
        if let Owner::User { uid, gid } = self.owner {
            command.uid(uid).gid(gid);
        }
        let child = Running(command.spawn().ok()?);
        // The command holds the writing ends; while it does, the end of the output never comes.
        drop(command);
        let mut output = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            wait_readable(reader.as_fd(), deadline)?;
            match reader.read(&mut chunk).ok()? {
                0 => break,
                length => output.extend_from_slice(&chunk[..length]),
            }
            if output.len() > OUTPUT_BYTES_MAX {
                return None;
            }
        }
        let exit_code = child.wait(deadline)?;
        Some(Finished {
            exit_code,
            output: String::from_utf8_lossy(&output).into_owned(),
        })
    }
}

/// A started checker; dropped, it is killed with all that it started, and reaped.
struct Running(Child);

impl Running {
    fn wait(mut self, deadline: Instant) -> Option<i32> {
        let process = pidfd_open(self.pid()?, PidfdFlags::empty()).ok()?;
        wait_readable(process.as_fd(), deadline)?;
        self.0.wait().ok()?.code()
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Reaped already: its number may belong to another process by now.
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Some(group) = self.pid()
            && let Err(errno) = kill_process_group(group, Signal::KILL)
        {
            tracing::warn!(%errno, "checker cannot be killed");
        }
        if let Err(error) = self.0.wait() {
            tracing::warn!(%error, "checker cannot be reaped");
        }
    }
}

/// Waits until a descriptor has something to say; `None` at the deadline.
fn wait_readable(descriptor: impl AsFd, deadline: Instant) -> Option<()> {
    loop {
        let left = deadline.checked_duration_since(Instant::now())?;
        let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
        match poll(&mut descriptors, Some(&Timespec::try_from(left).ok()?)) {
            Ok(0) => return None,
            Ok(_) => return Some(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runner(deadline: Duration) -> Runner {
        Runner {
            owner: Owner::Ourselves,
            deadline,
        }
    }

    #[test]
    fn a_program_gets_its_input_and_its_outputs_are_read() {
        assert_eq!(
            runner(DEADLINE).run("bash", &["-c", "cat; echo more >&2; exit 3"], "text "),
            Some(Finished {
                exit_code: 3,
                output: "text more\n".to_owned()
            })
        );
    }

    #[test]
    fn a_program_that_is_missing_or_does_not_end_says_nothing() {
        assert_eq!(runner(DEADLINE).run("no-such-program-here", &[], ""), None);
        let started = Instant::now();
        assert_eq!(
            runner(Duration::from_millis(50)).run("sleep", &["60"], ""),
            None
        );
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn endless_output_is_not_read_to_its_end() {
        assert_eq!(runner(DEADLINE).run("yes", &[], ""), None);
    }
}
