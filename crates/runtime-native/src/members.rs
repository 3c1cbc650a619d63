//! The processes of a sandbox, known by a variable that they inherit.
//!
//! Whoever ends a shell ends its session, and an executor that ends in order ends what has left
//! its session, too. When an executor is killed, or runs in a process that goes on, somebody has
//! to find what it started. Parents do not tell, because orphans get another, and sessions do
//! not, because a daemon makes its own; the environment goes with every process unless it is
//! thrown away on purpose. There is no wall here that could do better.

use std::{fs, os::fd::OwnedFd, time::Duration};

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
            let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
            let environment = fs::read(path).ok()?;
            let is_member = environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark);
            is_member.then_some(process)
        })
        .collect()
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
