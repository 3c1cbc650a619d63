//! A terminal whose output is read and thrown away: as fast as a program can write to one.

use std::{
    io,
    os::fd::OwnedFd,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::ensure;
use rustix::{
    io::Errno,
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::children::Owned;

/// The kernel hands out less at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Runs a command in a bash of its own on a new terminal and returns how long it took until all
/// that it wrote was read.
pub(crate) fn drain(command: &str) -> anyhow::Result<Duration> {
    let (outer, inner) = open()?;
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-c", command]);
    bash.stdin(Stdio::null())
        .stdout(inner.try_clone()?)
        .stderr(inner);
    let start = Instant::now();
    let process = Owned::spawn(&mut bash)?;
    // The builder holds the inner end too, and output ends when nobody does.
    drop(bash);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match rustix::io::read(&outer, &mut buffer[..]) {
            // What a terminal says when its last writer is gone.
            Ok(0) | Err(Errno::IO) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let elapsed = start.elapsed();
    let status = process.wait()?;
    ensure!(status.success(), "the command ended with {status}");
    Ok(elapsed)
}

fn open() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let outer = openpt(flags)?;
    grantpt(&outer)?;
    unlockpt(&outer)?;
    let inner = ioctl_tiocgptpeer(&outer, flags)?;
    let size = Winsize {
        ws_row: 50,
        ws_col: 200,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&outer, size)?;
    Ok((outer, inner))
}
