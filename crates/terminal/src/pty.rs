//! A pseudo-terminal: both ends, its size and its modes.

use std::{ffi::CString, io, os::fd::OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Gid, OFlags, Uid},
    io::Errno,
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt},
    termios::{
        Action, InputModes, LocalModes, OptionalActions, QueueSelector, Termios, Winsize, tcflow,
        tcflush, tcgetattr, tcgetpgrp, tcsetattr, tcsetwinsize,
    },
};
use tokio::io::{Interest, unix::AsyncFd};

use crate::{Credentials, sys};

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Characters in a line.
    pub columns: u16,
    /// Lines on the screen.
    pub rows: u16,
}

/// Whether the terminal shows what is typed.
#[derive(Clone, Copy)]
enum Echo {
    On,
    Off,
}

/// An open terminal pair. The inner end is kept open too, so that input typed ahead can be
/// thrown away; the price is that reading never reports a hang-up. Watch the process instead.
#[derive(Debug)]
pub struct Pty {
    outer: AsyncFd<OwnedFd>,
    inner: OwnedFd,
    initial: Termios,
}

impl Pty {
    /// Opens a new pair whose outer end does not block.
    ///
    /// # Errors
    /// When the system has no terminal left or `/dev/ptmx` cannot be opened.
    pub fn open(size: Size) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let outer = openpt(flags)?;
        grantpt(&outer)?;
        unlockpt(&outer)?;
        let inner = match ioctl_tiocgptpeer(&outer, flags) {
            Ok(inner) => inner,
            // Kernels before 4.13, and seccomp profiles that do not know the call.
            Err(Errno::INVAL | Errno::NOTTY | Errno::PERM) => open_by_name(&outer)?,
            Err(error) => return Err(error.into()),
        };
        rustix::fs::fcntl_setfl(&outer, OFlags::RDWR | OFlags::NONBLOCK)?;
        let mut initial = tcgetattr(&inner)?;
        // A backspace takes a character back, not a byte.
        initial.input_modes.insert(InputModes::IUTF8);
        tcsetattr(&inner, OptionalActions::Now, &initial)?;
        let outer = sys::watch(outer, Interest::READABLE | Interest::WRITABLE)?;
        let pty = Self {
            outer,
            inner,
            initial,
        };
        pty.resize(size)?;
        Ok(pty)
    }

    /// Waits until there may be something to read. May be dropped and called again.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn readable(&self) -> io::Result<()> {
        self.outer.readable().await?.retain_ready();
        Ok(())
    }

    /// Waits until there may be room to write. May be dropped and called again.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn writable(&self) -> io::Result<()> {
        self.outer.writable().await?.retain_ready();
        Ok(())
    }

    /// Reads what programs wrote; `None` when there is nothing now. What a program wrote
    /// before it told us so by other means is always found: asking makes the kernel finish
    /// what it has in transit.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.now_or_never(Interest::READABLE, |outer| {
            Ok(rustix::io::read(outer, &mut *buffer)?)
        })
    }

    /// Types as much of `input` as fits now and returns how much that was.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn write(&self, input: &[u8]) -> io::Result<usize> {
        let written = self.now_or_never(Interest::WRITABLE, |outer| {
            Ok(rustix::io::write(outer, input)?)
        })?;
        Ok(written.unwrap_or(0))
    }

    /// Makes a call that does not block, whatever the reactor believes.
    ///
    /// The reactor's memory may be cleared only by a call that was made after it was looked
    /// at: an event between the two would be forgotten, and the next wait last for ever.
    fn now_or_never<T>(
        &self,
        interest: Interest,
        mut call: impl FnMut(&OwnedFd) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let by_reactor = self
            .outer
            .try_io(interest, |outer| uninterrupted(|| call(outer)));
        match by_reactor {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result.map(Some),
        }
        match uninterrupted(|| call(self.outer.get_ref())) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            result => result.map(Some),
        }
    }

    /// Types a short line that is not echoed, in place of whatever was typed and not read.
    /// The terminal has all its modes as they were at first, but echoes nothing until
    /// [`Pty::echo`].
    ///
    /// # Errors
    /// When the terminal is gone, or has no room for the line.
    pub fn type_silently(&self, line: &[u8]) -> io::Result<()> {
        tcflush(&self.inner, QueueSelector::IFlush)?;
        self.digest_input()?;
        // Ctrl-S may have stopped the output, and only what `OOff` stopped does `OOn` let go on.
        tcflow(&self.inner, Action::OOff)?;
        tcflow(&self.inner, Action::OOn)?;
        tcflush(&self.inner, QueueSelector::IFlush)?;
        self.restore_modes(Echo::Off)?;
        if self.write(line)? != line.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        // No character may still be on its way when echoing comes back.
        self.digest_input()
    }

    /// Waits until all that was typed has arrived. A kernel worker takes it in some time after
    /// it was written; polling the inner end waits for that, unless something is there already.
    fn digest_input(&self) -> io::Result<()> {
        let mut fds = [PollFd::new(&self.inner, PollFlags::IN)];
        poll(
            &mut fds,
            Some(&Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            }),
        )?;
        Ok(())
    }

    /// Makes the terminal show what is typed, as a person at it expects.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn echo(&self) -> io::Result<()> {
        self.restore_modes(Echo::On)
    }

    /// The end that a program gets as its standard input, output and error.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn inner(&self) -> io::Result<OwnedFd> {
        self.inner.try_clone()
    }

    /// Makes the terminal's device belong to the user who will work on it.
    ///
    /// # Errors
    /// When we may not give it away.
    pub(crate) fn give_to(&self, credentials: &Credentials) -> io::Result<()> {
        let (uid, gid) = (
            Uid::from_raw(credentials.uid),
            Gid::from_raw(credentials.gid),
        );
        Ok(rustix::fs::fchown(&self.inner, Some(uid), Some(gid))?)
    }

    /// Tells the programs on the terminal that it has another size.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        let size = Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(&self.outer, size)?)
    }

    fn restore_modes(&self, echo: Echo) -> io::Result<()> {
        let mut termios = self.initial.clone();
        match echo {
            Echo::On => termios.local_modes.insert(LocalModes::ECHO),
            Echo::Off => termios.local_modes.remove(LocalModes::ECHO),
        }
        Ok(tcsetattr(&self.inner, OptionalActions::Now, &termios)?)
    }

    /// The terminal waits for whole lines, so a line past the kernel's limit would be cut.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn reads_lines(&self) -> io::Result<bool> {
        Ok(tcgetattr(&self.inner)?
            .local_modes
            .contains(LocalModes::ICANON))
    }

    /// The process group in the foreground, which gets the signals of keys.
    ///
    /// # Errors
    /// When no session has the terminal.
    pub fn foreground(&self) -> io::Result<i32> {
        Ok(tcgetpgrp(&self.outer)?.as_raw_nonzero().get())
    }
}

fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn open_by_name(outer: &OwnedFd) -> io::Result<OwnedFd> {
    let name: CString = ptsname(outer, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(
        name.as_c_str(),
        flags,
        rustix::fs::Mode::empty(),
    )?)
}
