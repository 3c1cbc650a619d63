//! The only `unsafe` of this crate: watching descriptors, and what a child does between fork
//! and exec.
#![expect(
    unsafe_code,
    reason = "`pre_exec`, dispositions and descriptor registration have no safe interface"
)]

use std::{
    io,
    os::{
        fd::{FromRawFd as _, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::Command,
};

use tokio::io::{Interest, unix::AsyncFd};

use crate::Credentials;

/// The numbers of the signals whose disposition a new program must not inherit.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=31;

/// Descriptors that stay open across the exec, as (ours, the child's) pairs.
pub(crate) type Inherited = Vec<(RawFd, RawFd)>;

/// Takes over a descriptor that whoever started this program left open for it, and keeps it
/// from the programs that this one starts.
///
/// # Errors
/// When there is none of that number, or it is marked to be closed by an exec: then it was not
/// inherited, and somebody in this program owns it.
pub fn take_inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes two integers; an unused number is an error, not undefined.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags == -1 {
        return Err(io::Error::last_os_error());
    }
    if flags & libc::FD_CLOEXEC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: takes three integers.
    if unsafe { libc::fcntl(number, libc::F_SETFD, flags | libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and nobody owns it: whatever this program opens is marked
    // to be closed by an exec from the start, and this one was not, so it came through ours. A
    // second call finds the mark and ends above.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Puts a descriptor under the eye of the runtime. Must be called inside one.
pub(crate) fn watch(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped, and the
    // `AsyncFd` that takes it over takes it from the reactor before it drops it.
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(io::Error::from)
}

/// Gives back the pages of this program's own file that are mapped into it and unchanged. They
/// stay in the page cache and come back when they are touched; until then they are not ours.
///
/// The kernel maps many pages around each one that is used, so that a program that has started
/// and waits holds several times what it needs.
///
/// # Errors
/// When `/proc` is not there.
pub fn release_program_pages() -> io::Result<()> {
    let program = std::fs::read_link("/proc/self/exe")?;
    let mappings = std::fs::read_to_string("/proc/self/smaps")?;
    for (start, length) in crate::pages::unchanged(&mappings, &program) {
        // SAFETY: the range is a whole mapping of our own file that is neither writable nor
        // changed, as the kernel has just said. Whoever reads it next gets the same bytes from
        // the file again; nobody can have written to it.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
    }
    Ok(())
}

/// What the leader of a session has for a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The one that is its standard input.
    OnTerminal,
    /// None.
    WithoutTerminal,
}

/// Makes the child of `command` the leader of a session of its own, with default signals, no
/// core dumps and no descriptor beyond the standard three and `inherited`, running as
/// `credentials` when there are some.
pub(crate) fn lead_session(
    command: &mut Command,
    lead: Lead,
    inherited: Inherited,
    credentials: Option<Credentials>,
) {
    let set_up = move || {
        reset_signals();
        rustix::process::setsid()?;
        if lead == Lead::OnTerminal {
            take_controlling_terminal()?;
        }
        forbid_core_dumps();
        close_on_exec_from(3)?;
        for &(from, to) in &inherited {
            duplicate_onto(from, to)?;
        }
        credentials.as_ref().map_or(Ok(()), take_identity)
    };
    // SAFETY: the closure runs in the forked child, where only async-signal-safe work is
    // allowed: it makes system calls on values prepared before the fork, and neither
    // allocates, locks nor unwinds.
    unsafe { command.pre_exec(set_up) };
}

/// Groups first: after the user is changed there is no right to change them.
fn take_identity(credentials: &Credentials) -> io::Result<()> {
    let groups = &credentials.groups;
    // SAFETY: the pointer and the length describe one live slice of group numbers.
    if unsafe { libc::setgroups(groups.len(), groups.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: takes one integer.
    if unsafe { libc::setgid(credentials.gid) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: takes one integer.
    match unsafe { libc::setuid(credentials.uid) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A shell that starts with an ignored signal keeps it ignored for everything it runs, so a
/// server that was started with `nohup` or `&` would have shells without Ctrl-C.
fn reset_signals() {
    for signal in SIGNALS {
        // SAFETY: takes two integers; SIG_DFL installs no handler of ours. Failure (SIGKILL,
        // SIGSTOP) changes nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn take_controlling_terminal() -> io::Result<()> {
    // SAFETY: an ioctl on standard input with an integer argument; no memory is passed.
    match unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn forbid_core_dumps() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: reads one `rlimit` that lives on this stack frame.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
}

/// Marks every descriptor from `first` on to be closed by the exec. Kernels before 5.11 do not
/// know the flag; there our own descriptors are marked already, which is all we can do.
fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: takes three integers and no pointer.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    match result {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) => Ok(()),
            error => Err(error),
        },
    }
}

/// `dup2`, which also clears the close-on-exec mark of `to`.
fn duplicate_onto(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: takes two integers; `to` is a number reserved for this purpose, so nothing that
    // Rust owns in the child is closed by it.
    match unsafe { libc::dup2(from, to) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
