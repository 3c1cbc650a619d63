//! The processes that a run starts. Each is killed when its owner is dropped, and all of them
//! when the whole run takes too long.

use std::{
    io::{self, Write as _},
    process::{Child, Command, ExitStatus},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid},
};

/// Started and not yet waited for, so their numbers cannot belong to anybody else.
static LIVING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// How long a process may take to end when it is asked to.
const GRACE: Timespec = Timespec {
    tv_sec: 3,
    tv_nsec: 0,
};

/// A process that does not outlive its owner.
#[derive(Debug)]
pub(crate) struct Owned {
    child: Child,
}

impl Owned {
    pub(crate) fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        // The list is held over the start, so that the watchdog misses nobody.
        let mut living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let owned = Self { child };
        living.push(owned.pid());
        Ok(owned)
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end and waits until it has, or until it is clear that it does not listen.
    pub(crate) fn ask_to_end(&self) -> io::Result<()> {
        let descriptor = pidfd_open(self.pid(), PidfdFlags::empty())?;
        kill_process(self.pid(), Signal::TERM)?;
        let mut ended = [PollFd::new(&descriptor, PollFlags::IN)];
        poll(&mut ended, Some(&GRACE))?;
        Ok(())
    }

    /// Waits for its own end.
    pub(crate) fn wait(mut self) -> io::Result<ExitStatus> {
        // It is not reaped before it is off the list.
        waitid(
            WaitId::Pid(self.pid()),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        )?;
        self.strike_off();
        self.child.wait()
    }

    fn strike_off(&self) {
        let pid = self.pid();
        LIVING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|other| *other != pid);
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.strike_off();
        // Fails only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends the run, and whatever it started, when it takes longer than `limit`.
pub(crate) fn limit_run(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        let living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
        for pid in living.iter() {
            let _ = kill_process(*pid, Signal::KILL);
        }
        let _ = writeln!(io::stderr(), "error: gave up after {} s", limit.as_secs());
        std::process::exit(1);
    });
}
