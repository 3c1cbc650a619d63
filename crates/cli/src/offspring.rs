//! Processes that shells leave behind.
//!
//! A program that makes itself a daemon leaves its shell's session and would go on after us.
//! As the *subreaper* we get such orphans for children: they are reaped when they end, and
//! killed when we do.

use std::{
    collections::HashSet,
    io,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{
        Pid, PidfdFlags, WaitId, WaitIdOptions, WaitOptions, getpid, pidfd_open,
        set_child_subreaper, wait, waitid,
    },
};
use tokio::signal::unix::{self, SignalKind, signal};
use zareba_terminal::{Process, ProcessId, descendants, kill_descendants};

/// How long the killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait for one of them before looking for another.
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

/// Reaps orphans whenever a child ends.
pub(crate) struct Reaper {
    child_ended: unix::Signal,
}

impl Reaper {
    /// Ends of children count from now on.
    pub(crate) fn watch() -> io::Result<Self> {
        let child_ended = signal(SignalKind::child())?;
        Ok(Self { child_ended })
    }

    /// Never returns; dropping it stops it.
    pub(crate) async fn run(mut self) {
        let mut waiting = HashSet::new();
        loop {
            if waiting.is_empty() {
                self.child_ended.recv().await;
            }
            waiting = reap_once(&waiting);
            tokio::time::sleep(REAP_INTERVAL).await;
        }
    }
}

/// Reaps orphans that have ended, and returns those that may be orphans.
///
/// Shells and helpers of the executor are children, too, and are waited for by those who
/// started them. A helper is in our session, which no orphan can be in. A shell leads its own
/// session, as a daemon may: it is an orphan if nobody has waited for it for a whole interval.
fn reap_once(seen_before: &HashSet<ProcessId>) -> HashSet<ProcessId> {
    let us = getpid().as_raw_nonzero().get();
    let processes = Process::all();
    // Taken from the table, where it is 0 if its leader is outside of our namespace.
    let ours = processes
        .iter()
        .find_map(|process| (process.id.pid == us).then_some(process.session));
    let ended = processes
        .into_iter()
        .filter(|process| process.parent == us && process.is_zombie);
    let mut undecided = HashSet::new();
    for process in ended {
        let is_orphan = process.session != process.id.pid || seen_before.contains(&process.id);
        if Some(process.session) == ours {
            continue;
        }
        if is_orphan {
            let pid = Pid::from_raw(process.id.pid);
            let reaped = pid.map(|pid| {
                waitid(
                    WaitId::Pid(pid),
                    WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
                )
            });
            tracing::debug!(pid = process.id.pid, ?reaped, "reaped an orphan");
        } else {
            undecided.insert(process.id);
        }
    }
    undecided
}

/// Kills everything that is left below us and reaps it. Called last, when nobody else waits for
/// a child of ours any more.
pub(crate) fn kill_all() {
    let us = getpid().as_raw_nonzero().get();
    let deadline = Instant::now() + PATIENCE;
    // Whoever has no children has no descendants: orphans would have become ours.
    if matches!(wait(WaitOptions::NOHANG), Err(Errno::CHILD)) {
        return;
    }
    kill_descendants(us);
    // Each of them becomes our child when its parent has ended, and then has an end of its own.
    while Instant::now() < deadline {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => await_one(us),
            Err(_no_children) => return,
        }
    }
    tracing::warn!("some processes could not be ended");
}

fn await_one(parent: i32) {
    let children = descendants(parent);
    let Some(child) = children.iter().find(|process| process.parent == parent) else {
        return;
    };
    let handle = Pid::from_raw(child.id.pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    if let Some(Ok(handle)) = handle {
        let _ = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&ROUND));
    }
}
