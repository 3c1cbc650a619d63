//! Finds what a sandbox has left on this machine.

use std::{fs, path::Path, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, getpid, pidfd_open},
};

/// How long a process that was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The processes that have `mark` in their environment or command line and do not end: an
/// ending one is waited for. This process is not among them, nor is a spawner of supervisors, which
/// belongs to a runtime and not to a sandbox.
pub fn processes(mark: &str) -> Vec<String> {
    remaining(mark, PATIENCE)
}

fn remaining(mark: &str, patience: Duration) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let others = pids.filter(|pid| *pid != getpid().as_raw_nonzero().get());
    others
        .filter(|pid| has(*pid, "environ", mark) || has(*pid, "cmdline", mark))
        .filter(|pid| !has(*pid, "cmdline", "\0spawner\0--for\0"))
        .filter(|pid| !ends(*pid, patience))
        .map(|pid| format!("process {pid}: {}", command_line(pid)))
        .collect()
}

/// What lies in a directory, by path; nothing when there is no such directory.
pub fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<String> = entries
        .map(|entry| entry.path().display().to_string())
        .collect();
    paths.sort();
    paths
}

fn has(pid: i32, file: &str, mark: &str) -> bool {
    let content = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let mark = mark.as_bytes();
    content.windows(mark.len()).any(|part| part == mark)
}

fn command_line(pid: i32) -> String {
    let content = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&content).replace('\0', " ")
}

/// Waits for the end of a process, by event and not for ever.
fn ends(pid: i32, patience: Duration) -> bool {
    let process = Pid::from_raw(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let Some(Ok(process)) = process else {
        return true;
    };
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    let patience = Timespec::try_from(patience).ok();
    poll(&mut ended, patience.as_ref()).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_found_by_a_variable_and_by_an_argument_until_it_has_ended() {
        for in_environment in [true, false] {
            let mark = format!("mark-{}-{in_environment}", std::process::id());
            let mut command = Command::new("sh");
            command
                .args(["-c", "read line", "sh"])
                .stdin(std::process::Stdio::piped());
            if in_environment {
                command.env("MARK", &mark);
            } else {
                command.arg(&mark);
            }
            let mut child = command.spawn().unwrap();
            let found = remaining(&mark, Duration::ZERO);
            let pid = format!("process {}: ", child.id());
            assert!(
                matches!(found.as_slice(), [one] if one.starts_with(&pid)),
                "{found:?}"
            );
            drop(child.stdin.take());
            child.wait().unwrap();
            assert_eq!(processes(&mark), [""; 0]);
        }
    }

    #[test]
    fn entries_are_named_by_path() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("b"), "").unwrap();
        fs::create_dir(directory.path().join("a")).unwrap();
        let path = directory.path().display();
        assert_eq!(
            entries(directory.path()),
            [format!("{path}/a"), format!("{path}/b")]
        );
        assert_eq!(entries(&directory.path().join("missing")), [""; 0]);
    }
}
