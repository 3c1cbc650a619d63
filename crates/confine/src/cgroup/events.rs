//! Waiting: for what the kernel announces, and where it announces nothing, for a little while.

use std::{
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    io::Errno,
};

use super::directory::{Directory, keyed};

/// `cgroup.events` and `memory.events` are shorter.
const EVENTS_BYTES_MAX: usize = 4096;

/// A file of the second generation that the kernel marks when its contents change.
#[derive(Debug)]
pub(super) struct EventsFile(OwnedFd);

impl EventsFile {
    pub(super) fn open(directory: &Directory, file: &str) -> io::Result<Self> {
        Ok(Self(directory.open_file(file, OFlags::RDONLY)?))
    }

    /// The contents now. The next change after this is announced, also one that came before
    /// anybody waits for it.
    pub(super) fn read(&self) -> io::Result<String> {
        let mut bytes = [0; EVENTS_BYTES_MAX];
        let length = rustix::io::pread(&self.0, &mut bytes[..], 0)?;
        let text = bytes.get(..length).unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// Waits until `key` has `value`; says whether it came to that before the deadline.
    ///
    /// The kernel announces changes of a group at most once in 10 ms, and one that follows another
    /// later than it came. So the contents are looked at meanwhile, less and less often.
    pub(super) fn wait(&self, key: &str, value: u64, deadline: Instant) -> io::Result<bool> {
        let mut patience = Pauses::SHORTEST;
        loop {
            if keyed(&self.read()?, key) == Some(value) {
                return Ok(true);
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(false);
            }
            let look = deadline.min(now + patience);
            poll_until(&mut [PollFd::new(&self.0, PollFlags::PRI)], look)?;
            patience *= 2;
        }
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }
}

/// Waits for any of `watched`; says whether there was one before the deadline.
pub(super) fn poll_until(watched: &mut [PollFd<'_>], deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        match poll(watched, Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Short and growing pauses between looks at something the kernel gives no notice of: the state
/// of the first generation's freezer, and when a directory whose last process has exited can be
/// removed.
#[derive(Debug)]
pub(super) struct Pauses {
    next: Duration,
    deadline: Instant,
}

impl Pauses {
    const SHORTEST: Duration = Duration::from_micros(50);
    const LONGEST: Duration = Duration::from_millis(5);

    pub(super) fn until(deadline: Instant) -> Self {
        Self {
            next: Self::SHORTEST,
            deadline,
        }
    }

    /// Pauses, or says that the deadline has passed.
    pub(super) fn pause(&mut self) -> bool {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(self.next.min(left));
        self.next = (self.next * 2).min(Self::LONGEST);
        true
    }
}
