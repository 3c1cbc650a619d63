//! Processes that shells leave behind.
//!
//! A program that makes itself a daemon leaves its shell's session and would go on after us.
//! As the *subreaper* we get such orphans for children: they are reaped when they end, and
//! killed when we do.

use std::{
    collections::{HashMap, HashSet},
    fs,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, getsid, pidfd_open,
        pidfd_send_signal, set_child_subreaper, wait, waitid,
    },
};
use tokio::signal::unix::{SignalKind, signal};

/// How many rounds of killing to try: a process may fork between being seen and being killed.
const KILL_ROUNDS_MAX: usize = 32;

/// How long a round waits for one that was killed to be gone.
const ROUND: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Looking through all processes takes a while, so it is not done more often than this.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// From now on orphans below this process become its children. Where the kernel does not let
/// us, they become somebody else's, as without us.
pub(crate) fn adopt_orphans() {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        tracing::warn!(%error, "processes that leave their shell will not be cleaned up");
    }
}

/// Reaps orphans whenever a child ends. Never returns; dropping it stops it.
pub(crate) async fn reap_orphans() {
    let Ok(mut child_ended) = signal(SignalKind::child()) else {
        return;
    };
    let mut waiting = HashSet::new();
    loop {
        if waiting.is_empty() {
            child_ended.recv().await;
        }
        tokio::time::sleep(REAP_INTERVAL).await;
        waiting = reap_once(&waiting);
    }
}

/// Reaps orphans that have ended, and returns those that may be orphans.
///
/// Shells and helpers of the executor are children, too, and are waited for by those who
/// started them. A helper is in our session, which no orphan can be in. A shell leads its own
/// session, as a daemon may: it is an orphan if nobody has waited for it for a whole interval.
fn reap_once(seen_before: &HashSet<Identity>) -> HashSet<Identity> {
    let ours = getsid(None).map_or(0, |session| session.as_raw_nonzero().get());
    let us = getpid().as_raw_nonzero().get();
    let ended = processes()
        .into_iter()
        .filter(|process| process.parent == us && process.is_zombie);
    let mut undecided = HashSet::new();
    for process in ended {
        let is_orphan =
            process.session != process.identity.pid || seen_before.contains(&process.identity);
        if process.session == ours {
            continue;
        }
        if is_orphan {
            let pid = Pid::from_raw(process.identity.pid);
            let reaped = pid.map(|pid| {
                waitid(
                    WaitId::Pid(pid),
                    WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
                )
            });
            tracing::debug!(pid = process.identity.pid, ?reaped, "reaped an orphan");
        } else {
            undecided.insert(process.identity);
        }
    }
    undecided
}

/// Kills everything that is left below us and reaps it. Called last, when nobody else waits for
/// a child of ours any more.
pub(crate) fn kill_all() {
    for _ in 0..KILL_ROUNDS_MAX {
        let left = descendants();
        if left.is_empty() {
            return;
        }
        let killed: Vec<_> = left
            .into_iter()
            .filter_map(Pid::from_raw)
            .filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            .filter(|process| pidfd_send_signal(process, Signal::KILL).is_ok())
            .collect();
        if let Some(first) = killed.first() {
            let mut ended = [PollFd::new(first, PollFlags::IN)];
            let _ = poll(&mut ended, Some(&ROUND));
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    }
    tracing::warn!("some processes could not be ended");
}

/// Everything below us, by the chain of parents.
fn descendants() -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in processes() {
        children
            .entry(process.parent)
            .or_default()
            .push(process.identity.pid);
    }
    let mut found = Vec::new();
    let mut open = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = open.pop() {
        // Taken out, so that a number that was given away meanwhile cannot make a circle.
        let below = children.remove(&parent).unwrap_or_default();
        found.extend(&below);
        open.extend(below);
    }
    found
}

/// A number is given away again; with the time of its start it is not.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    pid: i32,
    started: u64,
}

struct Process {
    identity: Identity,
    parent: i32,
    session: i32,
    is_zombie: bool,
}

/// All processes that can be seen; those that end meanwhile are left out.
fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        parse(pid, &stat)
    })
    .collect()
}

/// The name in parentheses may hold anything, so fields are counted behind the last one: state,
/// parent, group, session, and 16 fields later the start.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(15)?.parse().ok()?;
    Some(Process {
        identity: Identity { pid, started },
        parent,
        session,
        is_zombie: state == "Z" || state == "X",
    })
}
