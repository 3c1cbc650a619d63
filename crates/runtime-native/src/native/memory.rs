//! The memory of a sandbox that no control group holds (NS-15).
//!
//! The kernel tells nobody when the processes of an ordinary user grow. So the supervisor looks, as
//! often as what is left of the limit could be filled, and when it is passed it kills the process that
//! has most, as the kernel would; the executor is never among them. What counts is what processes have
//! for themselves, their shares of what they have in common, and files in memory. Memory
//! that no process has mapped, such as what is in pipes, is not seen.

use std::{
    collections::HashSet,
    fs::{self, File},
    io,
    os::{fd::OwnedFd, unix::fs::FileExt as _},
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use zareba_terminal::Process;

/// How soon to look again: as soon as the rest of the limit could be filled, within these.
const OFTEN: Duration = Duration::from_millis(20);
const SELDOM: Duration = Duration::from_millis(500);

/// As fast as processes can fill memory.
const BYTES_PER_MILLISECOND: u64 = 4 * 1024 * 1024;

/// What that comes to, in words.
pub(super) const OVERSHOOT: &str =
    "what is filled in 20 ms and until the kernel has ended the process";

/// A look is followed by a pause of so many times its duration.
const REST: u32 = 10;

/// More processes than this are not looked at; the limit of processes is far below it.
const PROCESSES_MAX: usize = 65_536;

/// How long a process that was killed may take to give its memory back before another is.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// The file that tells how many processes were killed.
pub(super) const COUNTER: &str = "memory-limit";

/// Watches the processes below the first of a sandbox.
#[derive(Debug)]
pub(super) struct MemoryWatch {
    limit_bytes: u64,
    init: i32,
    executor: i32,
    counter: File,
    killed: u64,
    next: Instant,
}

/// What one process has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    own_bytes: u64,
    /// Of files in memory.
    shared_bytes: u64,
}

impl MemoryWatch {
    /// Begins to watch, and tells of it in `directory`.
    pub(super) fn begin(
        directory: &Path,
        limit_bytes: u64,
        init: i32,
        executor: i32,
    ) -> io::Result<Self> {
        let counter = File::create_new(directory.join(COUNTER))?;
        counter.write_all_at(b"0", 0)?;
        Ok(Self {
            limit_bytes,
            init,
            executor,
            counter,
            killed: 0,
            next: Instant::now() + OFTEN,
        })
    }

    /// How long until it is time to look.
    pub(super) fn due_in(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks, when it is time to, and kills the largest process if the limit is passed.
    pub(super) fn look(&mut self) {
        if !self.due_in().is_zero() {
            return;
        }
        let begun = Instant::now();
        let processes = family(self.init);
        // The sum counts what processes share once for each of them: it is quick, and mostly enough.
        let at_most =
            processes.iter().map(|pid| resident(*pid)).sum::<u64>() + self.in_files(&processes);
        let used = match at_most > self.limit_bytes {
            false => at_most,
            true => self.enforce(&processes),
        };
        let left = self.limit_bytes.saturating_sub(used);
        let soon = Duration::from_millis(left / BYTES_PER_MILLISECOND).clamp(OFTEN, SELDOM);
        self.next = Instant::now() + soon.max((begun.elapsed() * REST).min(SELDOM));
    }

    /// Counts exactly, kills if it must, and returns what is used then.
    fn enforce(&mut self, processes: &[i32]) -> u64 {
        let shares: Vec<(i32, Share)> = processes.iter().map(|pid| (*pid, share(*pid))).collect();
        let own: u64 = shares.iter().map(|(_, share)| share.own_bytes).sum();
        let mapped: u64 = shares.iter().map(|(_, share)| share.shared_bytes).sum();
        let used = own + mapped.max(self.in_files(processes));
        if used <= self.limit_bytes {
            return used;
        }
        let workload = shares
            .iter()
            .filter(|(pid, _)| *pid != self.executor && *pid != self.init);
        let largest = workload.max_by_key(|(_, share)| share.own_bytes + share.shared_bytes);
        if let Some((pid, share)) = largest {
            self.kill(*pid);
            return used.saturating_sub(share.own_bytes);
        }
        used
    }

    fn kill(&mut self, pid: i32) {
        let Some(handle) = hold(pid, self.init) else {
            return;
        };
        // Before anybody can notice the consequences.
        self.killed += 1;
        let _ = self
            .counter
            .write_all_at(self.killed.to_string().as_bytes(), 0);
        let _ = pidfd_send_signal(&handle, Signal::KILL);
        let within = Timespec::try_from(GONE_WITHIN).ok();
        let _ = poll(&mut [PollFd::new(&handle, PollFlags::IN)], within.as_ref());
    }

    /// What files in memory take, as a process of the workload sees them.
    fn in_files(&self, processes: &[i32]) -> u64 {
        let workload = processes
            .iter()
            .filter(|pid| **pid != self.executor && **pid != self.init);
        let found = workload
            .filter_map(|pid| rustix::fs::statvfs(format!("/proc/{pid}/root/tmp")).ok())
            .next();
        found.map_or(0, |found| {
            found
                .f_blocks
                .saturating_sub(found.f_bfree)
                .saturating_mul(found.f_frsize)
        })
    }
}

/// A descriptor of a process that is still one of the sandbox's.
fn hold(pid: i32, init: i32) -> Option<OwnedFd> {
    let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    family(init).contains(&pid).then_some(handle)
}

/// The first process of a sandbox and all others: whoever loses its parent gets the first one as such.
pub(super) fn family(init: i32) -> Vec<i32> {
    let mut known = HashSet::from([init]);
    let mut family = vec![init];
    let mut at = 0;
    while let Some(&pid) = family.get(at) {
        at += 1;
        for child in children(pid) {
            if family.len() < PROCESSES_MAX && known.insert(child) {
                family.push(child);
            }
        }
    }
    // Not every kernel keeps lists of children.
    if family.len() == 1 {
        let found = zareba_terminal::descendants(init);
        family.extend(found.iter().map(|process: &Process| process.id.pid));
    }
    family
}

/// Of all its threads.
fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            let numbers = list.split_ascii_whitespace();
            numbers
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Pages in memory, apart from those of files.
fn resident(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let mut numbers = text
        .split_ascii_whitespace()
        .map(|number| number.parse().unwrap_or(0_u64));
    let (resident, shared) = (numbers.nth(1).unwrap_or(0), numbers.next().unwrap_or(0));
    resident.saturating_sub(shared) * rustix::param::page_size() as u64
}

/// What it has, with its shares of what it has in common with others.
fn share(pid: i32) -> Share {
    match fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
        Ok(text) => parse_share(&text),
        // The executor and the first process let nobody look.
        Err(_) => Share {
            own_bytes: resident(pid),
            shared_bytes: 0,
        },
    }
}

fn parse_share(text: &str) -> Share {
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok());
        number.unwrap_or(0_u64).saturating_mul(1024)
    };
    Share {
        own_bytes: bytes("Pss_Anon:"),
        shared_bytes: bytes("Pss_Shmem:"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_what_the_kernel_says_of_anonymous_and_shared_memory() {
        let text = "Rss: 9 kB\nPss: 8 kB\nPss_Anon:  5 kB\nPss_File: 1 kB\nPss_Shmem:   2 kB\n";
        let share = Share {
            own_bytes: 5 * 1024,
            shared_bytes: 2 * 1024,
        };
        assert_eq!(parse_share(text), share);
        assert_eq!(parse_share(""), Share::default());
    }

    #[test]
    fn a_process_of_another_family_is_never_held() {
        let own = std::process::id().cast_signed();
        assert!(hold(own, own).is_some());
        assert!(hold(1, own).is_none());
    }
}
