//! Watching over a sandbox until it ends.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid},
};
use zareba_confine::{Confined, EndRequests, cgroup::Group};
use zareba_terminal::kill_descendants;

use super::{disk::DiskWatch, doorman::Doorman, memory::MemoryWatch};

/// How long a paused sandbox may take to hear of its end.
const THAW_WITHIN: Duration = Duration::from_secs(1);

/// How often, and how long apart, a sandbox is killed that does not end.
const KILLS_MAX: usize = 30;
const KILL_AGAIN: Duration = Duration::from_secs(1);

/// What a supervisor waits for.
pub(super) struct Watch<'a> {
    pub(super) confined: &'a Confined,
    pub(super) group: &'a Group,
    /// The executor's number outside, and its descriptor; everything that the agent starts
    /// descends from it.
    pub(super) executor: (i32, OwnedFd),
    /// Its end means that nobody wants the sandbox any more.
    pub(super) lifeline: Option<&'a OwnedFd>,
    /// So do these.
    pub(super) requests: &'a EndRequests,
    pub(super) disk: DiskWatch,
    /// Where no control group holds it.
    pub(super) memory: Option<MemoryWatch>,
    pub(super) doorman: Option<Doorman>,
}

/// Which of them stirred.
#[derive(Clone, Copy, Debug, Default)]
struct Stirred {
    sandbox: bool,
    requests: bool,
    lifeline: bool,
    doorman: bool,
}

impl Watch<'_> {
    /// Returns the sandbox's exit status when it has ended.
    pub(super) fn until_the_end(mut self) -> i32 {
        loop {
            let Ok(stirred) = self.wait() else {
                self.kill();
                return self.reap();
            };
            if stirred.sandbox {
                return self.reap();
            }
            let word = match self.lifeline.filter(|_| stirred.lifeline) {
                Some(lifeline) => listen(lifeline),
                None => Word::Nothing,
            };
            match word {
                Word::Released => self.lifeline = None,
                Word::Nothing if !stirred.requests => {}
                Word::Gone | Word::Nothing => {
                    self.kill();
                    return self.reap();
                }
            }
            if let Some(doorman) = self.doorman.as_mut().filter(|_| stirred.doorman) {
                doorman.attend();
            }
            if let Some(memory) = &mut self.memory {
                memory.look();
            }
            if self.disk.look() {
                self.disk.note();
                if self.disk.is_helpless() {
                    self.kill();
                    return self.reap();
                }
                // Somebody else may have the number when the executor is gone.
                if !is_readable(&self.executor.1, Duration::ZERO) {
                    kill_descendants(self.executor.0);
                }
            }
        }
    }

    fn wait(&self) -> io::Result<Stirred> {
        let mut fds = vec![
            PollFd::new(&self.confined.pidfd, PollFlags::IN),
            PollFd::new(self.requests, PollFlags::IN),
        ];
        let lifeline = self
            .lifeline
            .map(|lifeline| PollFd::new(lifeline, PollFlags::IN));
        let has_lifeline = lifeline.is_some();
        fds.extend(lifeline);
        let door = fds.len();
        let doors = self.doorman.iter().flat_map(Doorman::descriptors);
        fds.extend(doors.map(|door| PollFd::new(door, PollFlags::IN)));
        // A little later than due, never a little earlier.
        let memory = self.memory.as_ref().map(MemoryWatch::due_in);
        let due = memory.map_or(self.disk.due_in(), |due| due.min(self.disk.due_in()));
        let patience = due + Duration::from_millis(1);
        match poll(&mut fds, Timespec::try_from(patience).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let stirs = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(Stirred {
            sandbox: stirs(0),
            requests: stirs(1),
            lifeline: has_lifeline && stirs(2),
            doorman: (door..fds.len()).any(stirs),
        })
    }

    /// With its first process everything inside goes. A frozen one hears of it only when it is
    /// thawed.
    fn kill(&self) {
        let _ = pidfd_send_signal(&self.confined.pidfd, Signal::KILL);
        if self.group.is_available() {
            let _ = self.group.thaw(THAW_WITHIN);
        }
    }

    fn reap(&self) -> i32 {
        for _ in 0..KILLS_MAX {
            if is_readable(&self.confined.pidfd, KILL_AGAIN) {
                break;
            }
            // Somebody has paused it at the same moment.
            self.kill();
        }
        let id = WaitId::PidFd(self.confined.pidfd.as_fd());
        match waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(Some(status)) => status
                .exit_status()
                .unwrap_or(128 + status.terminating_signal().unwrap_or(0)),
            Ok(None) | Err(_) => 1,
        }
    }
}

/// What a lifeline says.
enum Word {
    /// Whoever holds it is gone, and nobody wants the sandbox any more.
    Gone,
    /// The sandbox is on its own from now on.
    Released,
    Nothing,
}

fn listen(lifeline: &OwnedFd) -> Word {
    match rustix::io::read(lifeline, &mut [0; 256]) {
        Ok(1..) => Word::Released,
        Err(Errno::INTR | Errno::AGAIN) => Word::Nothing,
        Ok(_) | Err(_) => Word::Gone,
    }
}

fn is_readable(descriptor: &OwnedFd, within: Duration) -> bool {
    let within = Timespec::try_from(within).ok();
    let found = poll(
        &mut [PollFd::new(descriptor, PollFlags::IN)],
        within.as_ref(),
    );
    found.is_ok_and(|ready| ready > 0)
}
