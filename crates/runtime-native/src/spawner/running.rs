//! Our side of a spawner.
//!
//! A copy stays in the spawner's process group until its number has reached us. So one that nobody
//! was told of, because the spawner was stopped or died in the middle of an order, is ended with
//! the spawner and found by its group.

use std::{
    io::{self, PipeWriter, Write as _},
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
    net::{RecvFlags, recv, sockopt},
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group,
        pidfd_open, setpgid, waitid,
    },
};
use tokio::net::unix::pipe;
use zareba_confine::handover;
use zareba_terminal::Process;

use super::GO_AHEAD;

/// How long a spawner may take to answer, which is a matter of microseconds unless the machine
/// is overloaded; then an ordinary start is no worse.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// How long a process that was killed may take to be gone, which is a matter of microseconds, too.
const END_MAX: Duration = Duration::from_secs(2);

/// How long the place in a spawner's command line is that its copies show their own in.
const ROOM: usize = 2000;

/// A spawner that stands ready. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Running {
    channel: OwnedFd,
    process: Child,
    /// Becomes readable when the process ends.
    descriptor: OwnedFd,
    has_copied: AtomicBool,
}

impl Running {
    pub(super) fn start(program: &Path, state_dir: &Path) -> io::Result<Self> {
        let (channel, theirs) = handover::pair()?;
        sockopt::set_socket_timeout(&channel, sockopt::Timeout::Recv, Some(ANSWER_MAX))?;
        let mut process = Command::new(program)
            .args(["spawner", "--for"])
            .arg(state_dir)
            .args(["--room", &" ".repeat(ROOM)])
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Keys pressed at our terminal are not meant for it, and its copies are known by it.
            .process_group(0)
            .spawn()?;
        let opened = pidfd_open(Pid::from_child(&process), PidfdFlags::empty());
        let descriptor = opened.inspect_err(|_| {
            let _ = process.kill();
            let _ = process.wait();
        })?;
        Ok(Self {
            channel,
            process,
            descriptor,
            has_copied: AtomicBool::new(false),
        })
    }

    /// Whether it was killed, or has failed.
    pub(super) fn has_ended(&self) -> bool {
        let mut ended = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let at_once = Timespec::default();
        retry_on_intr(|| poll(&mut ended, Some(&at_once))).is_ok_and(|ready| ready > 0)
    }

    /// What becomes readable when it ends. It is no pipe; the type is tokio's one safe way to have
    /// any descriptor watched, and no byte is read from it.
    pub(super) fn end(&self) -> io::Result<pipe::Receiver> {
        pipe::Receiver::from_owned_fd_unchecked(self.descriptor.try_clone()?)
    }

    /// Has a copy made that goes on as the order says, and returns its number.
    pub(super) fn copy(
        &self,
        order: &[u8],
        standard: [BorrowedFd<'_>; 3],
        mut lifeline: &PipeWriter,
    ) -> io::Result<i32> {
        handover::send_with(&self.channel, order, &standard)?;
        let copy = self.answer()?;
        // From here on it does not end with the spawner.
        setpgid(Some(copy), Some(copy))?;
        lifeline.write_all(GO_AHEAD).inspect_err(|_| {
            let _ = kill_process(copy, Signal::KILL);
            reap(copy);
        })?;
        self.has_copied.store(true, Ordering::Relaxed);
        Ok(copy.as_raw_nonzero().get())
    }

    /// Whether it has done an order.
    pub(super) fn has_copied(&self) -> bool {
        self.has_copied.load(Ordering::Relaxed)
    }

    fn answer(&self) -> io::Result<Pid> {
        let mut answer = [0; 4];
        let (length, _) = retry_on_intr(|| recv(&self.channel, &mut answer, RecvFlags::empty()))?;
        match i32::from_ne_bytes(answer) {
            _ if length != answer.len() => Err(io::ErrorKind::UnexpectedEof.into()),
            errno @ ..0 => Err(io::Error::from_raw_os_error(-errno)),
            pid => Pid::from_raw(pid).ok_or_else(|| io::ErrorKind::InvalidData.into()),
        }
    }
}

/// With the copy that nobody was told of, if there is one. Neither holds anything that would have
/// to be put in order.
impl Drop for Running {
    fn drop(&mut self) {
        let spawner = Pid::from_child(&self.process);
        let _ = kill_process_group(spawner, Signal::KILL);
        for copy in copies_of(spawner) {
            reap(copy);
        }
        // Last: until then nobody else's group can have its number.
        reap(spawner);
    }
}

/// Those that never left its group.
fn copies_of(spawner: Pid) -> impl Iterator<Item = Pid> {
    let us = getpid().as_raw_nonzero().get();
    let group = spawner.as_raw_nonzero().get();
    Process::all()
        .into_iter()
        .filter(move |process| process.parent == us && process.group == group)
        .filter_map(|process| Pid::from_raw(process.id.pid))
        .filter(move |child| *child != spawner)
}

/// Waits for the end of a child that was killed.
fn reap(child: Pid) {
    let Ok(descriptor) = pidfd_open(child, PidfdFlags::empty()) else {
        return;
    };
    let within = Timespec::try_from(END_MAX).ok();
    let mut ended = [PollFd::new(&descriptor, PollFlags::IN)];
    let _ = retry_on_intr(|| poll(&mut ended, within.as_ref()));
    let child = WaitId::PidFd(descriptor.as_fd());
    let _ = waitid(child, WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
}
