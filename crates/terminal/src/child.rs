//! A started program, held by a process descriptor.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
    },
};
use tokio::io::{Interest, unix::AsyncFd};

use crate::{processes::read_at_once, sys};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// It exited with this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl ExitReason {
    /// The number that a shell would show: the status, or 128 plus the signal.
    pub fn shell_status(self) -> i64 {
        match self {
            Self::Code(code) => i64::from(code),
            Self::Signal(signal) => 128 + i64::from(signal),
        }
    }
}

/// A program that we started. Dropping it kills the program and everything in its session,
/// and reaps the program.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    descriptor: AsyncFd<OwnedFd>,
    ended: Option<ExitReason>,
}

impl Child {
    /// Takes over a process that was just started and not yet waited for.
    ///
    /// # Errors
    /// When the process has no descriptor left, or there is no tokio reactor.
    pub(crate) fn adopt(pid: Pid) -> io::Result<Self> {
        let descriptor = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        let descriptor = sys::watch(descriptor, Interest::READABLE)?;
        Ok(Self {
            pid,
            descriptor,
            ended: None,
        })
    }

    /// Its number, for display and for signals to its group.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits for its end and reaps it. May be dropped and called again.
    ///
    /// # Errors
    /// When somebody else reaped it.
    pub async fn wait(&mut self) -> io::Result<ExitReason> {
        loop {
            if let Some(reason) = self.try_wait()? {
                return Ok(reason);
            }
            let mut ready = self.descriptor.readable().await?;
            ready.clear_ready();
            if let Some(reason) = self.try_wait()? {
                return Ok(reason);
            }
        }
    }

    /// Reaps it if it has ended.
    ///
    /// # Errors
    /// When somebody else reaped it.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitReason>> {
        if self.ended.is_none() {
            self.ended = wait_for(&self.descriptor, WaitIdOptions::NOHANG)?;
        }
        Ok(self.ended)
    }

    /// Processes of its session are left, though it may have ended itself.
    pub fn has_company(&self) -> bool {
        !self.session().is_empty()
    }

    /// The processes of its session. Once it has ended and a process has its number, that
    /// number was given away again, and the session with it.
    fn session(&self) -> Vec<Pid> {
        let members = session_members(self.pid.as_raw_nonzero().get());
        if self.ended.is_some() && members.contains(&self.pid) {
            Vec::new()
        } else {
            members
        }
    }

    /// Lets it go on when it is stopped: nobody above the leader of a session would do that.
    pub fn resume_if_stopped(&self) {
        if self.ended.is_none()
            && stat(self.pid.as_raw_nonzero().get()).is_some_and(|stat| stat.state == 'T')
        {
            let _ = pidfd_send_signal(self.descriptor.get_ref(), Signal::CONT);
        }
    }

    /// Sends a signal to its process group: itself, and what it runs without job control.
    /// Nothing happens once it has been waited for.
    pub fn signal_group(&self, signal: Signal) {
        if self.ended.is_none() {
            // Its number, which is the group's, is not given away before we have waited.
            let _ = rustix::process::kill_process_group(self.pid, signal);
        }
    }

    /// Kills it and every process of its session.
    pub fn kill_session(&self) {
        for pid in self.session() {
            // A process may end between the look and the signal; its number is not reused as
            // long as it is in the session we looked at.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        if self.ended.is_none() {
            let _ = pidfd_send_signal(self.descriptor.get_ref(), Signal::KILL);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill_session();
        if self.ended.is_none() {
            // SIGKILL cannot be refused, so this wait is short.
            let _ = wait_for(&self.descriptor, WaitIdOptions::empty());
        }
    }
}

fn wait_for(
    descriptor: &AsyncFd<OwnedFd>,
    options: WaitIdOptions,
) -> io::Result<Option<ExitReason>> {
    loop {
        match waitid(
            WaitId::PidFd(descriptor.get_ref().as_fd()),
            WaitIdOptions::EXITED | options,
        ) {
            Ok(None) => return Ok(None),
            // A non-blocking descriptor answers a blocking wait this way; poll it instead.
            Err(Errno::AGAIN) if options.is_empty() => wait_readable(descriptor.get_ref())?,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(Some(status)) => {
                let reason = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => ExitReason::Code(code),
                    (None, Some(signal)) => ExitReason::Signal(signal),
                    (None, None) => ExitReason::Signal(0),
                };
                return Ok(Some(reason));
            }
        }
    }
}

fn wait_readable(descriptor: &OwnedFd) -> io::Result<()> {
    let mut fds = [rustix::event::PollFd::new(
        descriptor,
        rustix::event::PollFlags::IN,
    )];
    match rustix::event::poll(&mut fds, None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The processes whose session is led by `leader`, itself included.
fn session_members(leader: i32) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|&pid| stat(pid).is_some_and(|stat| stat.session == leader))
        .filter_map(Pid::from_raw)
        .collect()
}

/// What the kernel says of a process.
struct Stat {
    state: char,
    session: i32,
}

fn stat(pid: i32) -> Option<Stat> {
    let stat = read_at_once(&format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count fields behind the last one:
    // state, parent, group, session.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some(Stat {
        state,
        session: fields.nth(2)?.parse().ok()?,
    })
}
