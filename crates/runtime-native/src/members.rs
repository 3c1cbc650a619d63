//! The processes of a sandbox, known by a variable that they inherit.
//!
//! Whoever ends a shell ends its session, and an executor that ends in order ends what has left
//! its session, too. When an executor is killed, or runs in a process that goes on, somebody has
//! to find what it started. Parents do not tell, because orphans get another, and sessions do
//! not, because a daemon makes its own; the environment goes with every process unless it is
//! thrown away on purpose. There is no wall here that could do better.

use std::{fs, io, os::fd::OwnedFd, thread, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal},
};
use zareba_runtime::SandboxId;

/// The variable that names the sandbox. Its prefix is one that no setting has.
pub(crate) const MARK: &str = "ZAREBA_EXECUTOR_SANDBOX";

/// How many rounds of killing to try: a process may fork between being seen and being killed.
const ROUNDS_MAX: usize = 16;

/// How long one that was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often to look at a process that is about to become another program, which takes it some
/// microseconds. No event tells when it has.
const LOOKS_MAX: usize = 1000;

/// Kills every process of a sandbox and returns when they are gone.
pub(crate) fn kill(sandbox: &SandboxId) {
    let mark = format!("{MARK}={sandbox}");
    for _ in 0..ROUNDS_MAX {
        let members = find(mark.as_bytes());
        if members.is_empty() {
            return;
        }
        for member in &members {
            // It may have ended by itself, which is just as good.
            let _ = pidfd_send_signal(member, Signal::KILL);
        }
        for member in &members {
            wait(member);
        }
    }
    tracing::warn!(%sandbox, "some processes could not be ended");
}

/// The processes that have `mark` in their environment, less this one. One that ended is not
/// among them: it has no environment any more.
fn find(mark: &[u8]) -> Vec<OwnedFd> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let others = pids
        .filter_map(Pid::from_raw)
        .filter(|pid| *pid != getpid());
    others
        .filter_map(|pid| {
            // The descriptor first: what is checked then is what is held.
            let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            let environment = environment(pid).ok()?;
            let is_member = environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark);
            is_member.then_some(process)
        })
        .collect()
}

fn environment(pid: Pid) -> io::Result<Vec<u8>> {
    let number = pid.as_raw_nonzero();
    let mut environment = Vec::new();
    for _ in 0..LOOKS_MAX {
        environment = fs::read(format!("/proc/{number}/environ"))?;
        if !environment.is_empty() || has_none(&fs::read_to_string(format!("/proc/{number}/stat"))?)
        {
            break;
        }
        thread::yield_now();
    }
    Ok(environment)
}

/// Whether a process has no environment, as opposed to one that is about to become another program:
/// for a moment that has none yet, and the kernel does not know where it will end.
fn has_none(stat: &str) -> bool {
    /// How many fields are behind the name, in parentheses, before the one that is meant.
    const MEMORY: usize = 20;
    const ENVIRONMENT: usize = 47;
    let mut fields = stat
        .rsplit_once(')')
        .map_or("", |(_, fields)| fields)
        .split_ascii_whitespace();
    let memory = fields.nth(MEMORY);
    let start = fields.nth(ENVIRONMENT - MEMORY - 1);
    memory == Some("0") || (start == fields.next() && start != Some("0"))
}

fn wait(process: &OwnedFd) {
    let mut ended = [PollFd::new(process, PollFlags::IN)];
    let patience = Timespec::try_from(PATIENCE).ok();
    // What is not gone by then is seen again in the next round.
    let _ = poll(&mut ended, patience.as_ref());
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_becomes_another_program_has_an_environment_to_come() {
        let stat = |memory: u64, start: u64, end: u64| {
            let numbers = "0 ".repeat(19);
            let more = "0 ".repeat(26);
            format!("7 (a) b) S {numbers}{memory} {more}{start} {end} 0\n")
        };
        assert!(has_none(&stat(4096, 140, 140)), "an empty one");
        assert!(has_none(&stat(0, 0, 0)), "it has ended");
        assert!(!has_none(&stat(4096, 0, 0)), "not yet");
        assert!(!has_none(&stat(4096, 140, 180)), "by now");
        let empty = Command::new("sleep")
            .arg("1000")
            .env_clear()
            .spawn()
            .unwrap();
        let own = Command::new("sleep").arg("1000").spawn().unwrap();
        let told = [&empty, &own].map(|child| {
            // Which waits until it is the program that it was to become.
            let environment = environment(Pid::from_child(child)).unwrap();
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            (environment.is_empty(), has_none(&stat))
        });
        for mut child in [empty, own] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(told, [(true, true), (false, false)]);
    }

    #[test]
    fn what_left_its_session_and_its_parent_is_found_and_nothing_else_is() {
        let sandbox = SandboxId::new(format!("members-{}", std::process::id())).unwrap();
        let start = |value: String| {
            let mut command = Command::new("sh");
            command.args(["-c", "setsid sleep 1000 & sleep 1000"]);
            command
                .env(MARK, value)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let mut ours = start(sandbox.to_string());
        let mut other = start(format!("{sandbox}-other"));
        kill(&sandbox);
        // All that held the pipe are dead when it ends.
        let mut rest = String::new();
        std::io::Read::read_to_string(ours.stdout.as_mut().unwrap(), &mut rest).unwrap();
        assert_eq!(rest, "");
        ours.wait().unwrap();
        assert_eq!(other.try_wait().unwrap(), None);
        kill(&SandboxId::new(format!("{sandbox}-other")).unwrap());
        other.wait().unwrap();
    }
}
