//! An executor's process, held by a process descriptor.
//!
//! A number alone does not say which process is meant once it has been given away again. A
//! descriptor does, and so does a number together with the start time and the boot it was taken
//! in, which is what can be written down.

use std::{collections::HashSet, fs, io, os::fd::AsFd as _, process::Child, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open,
        pidfd_send_signal, waitid,
    },
};
use tokio::net::unix::pipe;

/// How long an executor may take to end its shells after it was asked to.
const GRACE: Duration = Duration::from_secs(10);

/// Which process is meant, now and later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessIdentity {
    pub(crate) pid: i32,
    /// In clock ticks since the boot.
    pub(crate) start_time: u64,
    /// Start times of different boots cannot be compared.
    pub(crate) boot: String,
}

/// A running executor, started by us or found again.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    identity: ProcessIdentity,
    /// A process descriptor, which becomes readable when the process ends. It is no pipe; the
    /// type is tokio's one safe way to have any descriptor watched, and nothing is read from it.
    descriptor: pipe::Receiver,
}

impl ServerProcess {
    /// Takes over a process that was just started and not yet waited for.
    pub(crate) fn adopt(mut child: Child) -> io::Result<Self> {
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        let held = open(pid).and_then(|descriptor| Ok((descriptor, identity_of(pid)?)));
        match held {
            Ok((descriptor, identity)) => Ok(Self {
                identity,
                descriptor,
            }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Finds a process again; none when it has ended, whoever has its number now.
    pub(crate) fn find(identity: &ProcessIdentity) -> Option<Self> {
        // The descriptor first: what is checked then is what is held.
        let descriptor = open(identity.pid).ok()?;
        let found = identity_of(identity.pid).ok()?;
        let process = Self {
            identity: found,
            descriptor,
        };
        (process.identity == *identity && !process.has_ended()).then_some(process)
    }

    pub(crate) fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// Waits for its end and reaps it when it is our child. May be called from several places.
    pub(crate) async fn ended(&self) {
        // An error means that the reactor is gone, and we soon will be.
        if self.descriptor.readable().await.is_ok() {
            self.reap();
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        readable_within(&self.descriptor, Duration::ZERO)
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        // It may have ended by itself, which is just as good.
        let _ = pidfd_send_signal(&self.descriptor, Signal::TERM);
    }

    /// Waits for the end that it was asked for, and makes one if it takes too long.
    pub(crate) async fn end(&self) {
        if tokio::time::timeout(GRACE, self.ended()).await.is_err() {
            self.kill();
            self.ended().await;
        }
    }

    /// The same for those who cannot await.
    pub(crate) fn end_blocking(&self) {
        if !readable_within(&self.descriptor, GRACE) {
            self.kill();
            readable_within(&self.descriptor, GRACE);
        }
        self.reap();
    }

    /// Kills it with everything that descends from it. Its shells lead sessions of their own and
    /// would otherwise live on.
    fn kill(&self) {
        tracing::warn!(
            pid = self.identity.pid,
            "an executor did not end in time and is killed"
        );
        for pid in descendants(self.identity.pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = pidfd_send_signal(&self.descriptor, Signal::KILL);
    }

    /// By its descriptor, so that it can be done by whoever notices, and never to another. One
    /// that is no child of ours is somebody else's to reap.
    fn reap(&self) {
        let descriptor = WaitId::PidFd(self.descriptor.as_fd());
        let _ = waitid(descriptor, WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

fn open(pid: i32) -> io::Result<pipe::Receiver> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
    pipe::Receiver::from_owned_fd_unchecked(pidfd_open(pid, PidfdFlags::empty())?)
}

fn readable_within(descriptor: &pipe::Receiver, patience: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)];
    let patience = Timespec::try_from(patience).ok();
    loop {
        match poll(&mut fds, patience.as_ref()) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

fn identity_of(pid: i32) -> io::Result<ProcessIdentity> {
    let unreadable = || io::Error::from(io::ErrorKind::InvalidData);
    let row = Row::read(pid).ok_or_else(unreadable)?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(ProcessIdentity {
        pid,
        start_time: row.start_time,
        boot: boot.trim().to_owned(),
    })
}

/// The part of `/proc/PID/stat` that we need.
struct Row {
    parent: i32,
    session: i32,
    start_time: u64,
}

impl Row {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Reads `pid (name) state parent group session ...`, where the name may hold anything.
    fn parse(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start_time: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Everything whose line of parents, or whose session's leader, leads to `ancestor`.
fn descendants(ancestor: i32) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let table: Vec<(i32, Row)> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, Row::read(pid)?)))
        .collect();
    let mut family = HashSet::from([ancestor]);
    loop {
        let before = family.len();
        for (pid, row) in &table {
            if family.contains(&row.parent) || (row.session != 0 && family.contains(&row.session)) {
                family.insert(*pid);
            }
        }
        if family.len() == before {
            break;
        }
    }
    family.remove(&ancestor);
    family.into_iter().filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
