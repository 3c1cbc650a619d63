//! Our descendants: who they are, waiting for them, and putting an end to those that remain.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
    set_child_subreaper, wait,
};

/// How many rounds of killing to try: a process may fork between being seen and being killed.
const KILL_ROUNDS_MAX: usize = 20;

/// A process that should not be there any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leftover {
    pub(super) pid: Pid,
    /// Its command line, or its name in brackets when it has none.
    pub(super) command: String,
}

/// From now on orphans below this process become its children instead of init's.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Waits for `child` and reaps whatever else ends meanwhile, as init would.
pub(super) fn wait_for(child: Pid) -> io::Result<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => return Ok(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The descendants that are still there after `patience`; returns as soon as there are none.
///
/// Some patience is fair: a process that was killed takes a moment to be gone.
pub(super) fn remaining(patience: Duration) -> anyhow::Result<Vec<Leftover>> {
    let deadline = Instant::now() + patience;
    loop {
        reap_ended();
        let leftovers = descendants()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if leftovers.is_empty() || left.is_zero() {
            return Ok(leftovers);
        }
        wait_until_one_ends(&leftovers, left)?;
    }
}

/// Ends all descendants, so that a failed run does not disturb the next one.
pub(super) fn kill_remaining() -> anyhow::Result<()> {
    for _ in 0..KILL_ROUNDS_MAX {
        let leftovers = descendants()?;
        if leftovers.is_empty() {
            return Ok(());
        }
        for leftover in &leftovers {
            // It may have ended by itself, which is just as good.
            let _ = kill_process(leftover.pid, Signal::KILL);
        }
        wait_until_one_ends(&leftovers, Duration::from_secs(1))?;
        reap_ended();
    }
    anyhow::bail!("processes remain that cannot be killed")
}

fn reap_ended() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

fn wait_until_one_ends(leftovers: &[Leftover], patience: Duration) -> anyhow::Result<()> {
    let mut handles = Vec::new();
    for leftover in leftovers {
        match pidfd_open(leftover.pid, PidfdFlags::empty()) {
            Ok(handle) => handles.push(handle),
            Err(_gone) => return Ok(()),
        }
    }
    let mut ends: Vec<PollFd<'_>> = handles
        .iter()
        .map(|handle| PollFd::new(handle, PollFlags::IN))
        .collect();
    let timeout = Timespec::try_from(patience).context("a wait too long to express")?;
    match poll(&mut ends, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("cannot wait for processes to end"),
    }
}

fn descendants() -> anyhow::Result<Vec<Leftover>> {
    let mut table = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot list processes")? {
        let name = entry.context("cannot list processes")?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // Gone since the directory was read.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        table.extend(parent_and_name(&stat).map(|(parent, name)| Entry { pid, parent, name }));
    }
    let mut found = below(getpid().as_raw_nonzero().get(), &table);
    found.sort_by_key(|entry| entry.pid);
    Ok(found
        .into_iter()
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.pid)?;
            let command = command_line(entry.pid).unwrap_or_else(|| format!("[{}]", entry.name));
            Some(Leftover { pid, command })
        })
        .collect())
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    pid: i32,
    parent: i32,
    name: String,
}

/// The entries of `table` whose line of parents leads to `ancestor`.
fn below(ancestor: i32, table: &[Entry]) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        for child in table.iter().filter(|entry| entry.parent == parent) {
            // The table is no snapshot, so a reused pid could look like a loop.
            if !found.contains(child) {
                parents.push(child.pid);
                found.push(child.clone());
            }
        }
    }
    found
}

/// Reads `pid (name) state parent ...`, where the name may itself hold spaces and parentheses.
fn parent_and_name(stat: &str) -> Option<(i32, String)> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
    Some((parent, name.to_owned()))
}

fn command_line(pid: i32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_past_an_awkward_name() {
        assert_eq!(
            parent_and_name("12 (a) S (b) S 7 12 0"),
            Some((7, "a) S (b".to_owned()))
        );
        assert_eq!(parent_and_name("12 a S 7"), None);
    }

    #[test]
    fn descendants_are_found_through_any_number_of_generations() {
        let entry = |pid, parent| Entry {
            pid,
            parent,
            name: String::new(),
        };
        let table = [
            entry(5, 1),
            entry(6, 5),
            entry(7, 6),
            entry(8, 1),
            entry(9, 8),
        ];
        assert_eq!(below(5, &table), [entry(6, 5), entry(7, 6)]);
        assert_eq!(below(9, &table), []);
    }
}
