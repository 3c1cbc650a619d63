//! An executor's process, held by a process descriptor.
//!
//! A number alone does not say which process is meant once it has been given away again. A
//! descriptor does, and so does a number together with the start time and the boot it was taken
//! in, which is what can be written down.

use std::{fs, io, os::fd::AsFd as _, sync::OnceLock, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, pidfd_open,
        pidfd_send_signal, waitid, waitpid,
    },
};
use tokio::net::unix::pipe;
use zareba_terminal::{Process, kill_family};

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
    /// Takes over a child of ours that was just started and not yet waited for.
    pub(crate) fn adopt(pid: i32) -> io::Result<Self> {
        let held = open(pid).and_then(|descriptor| Ok((descriptor, identity_of(pid)?)));
        match held {
            Ok((descriptor, identity)) => Ok(Self {
                identity,
                descriptor,
            }),
            Err(error) => {
                // Nobody else can have its number before it is waited for.
                if let Some(child) = Pid::from_raw(pid) {
                    let _ = kill_process(child, Signal::KILL);
                    let _ = waitpid(Some(child), WaitOptions::empty());
                }
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

    /// Waits for the end that it was asked for, and makes one if it takes too long. Says whether it did.
    pub(crate) async fn end(&self) -> bool {
        let takes_too_long = tokio::time::timeout(GRACE, self.ended()).await.is_err();
        if takes_too_long {
            self.kill();
            self.ended().await;
        }
        takes_too_long
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
        // Not when somebody else has its number.
        if !self.has_ended() {
            kill_family(self.identity.pid);
        }
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
    Ok(ProcessIdentity {
        pid,
        start_time: Process::read(pid)?.id.start_time,
        boot: this_boot()?.to_owned(),
    })
}

/// It changes when this program has ended, too.
fn this_boot() -> io::Result<&'static str> {
    static BOOT: OnceLock<String> = OnceLock::new();
    if let Some(boot) = BOOT.get() {
        return Ok(boot);
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(BOOT.get_or_init(|| boot.trim().to_owned()))
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
