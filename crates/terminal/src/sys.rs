//! The only `unsafe` of this crate: watching descriptors, starting programs (`start`), and
//! where this program itself lies in memory (`huge`).
#![expect(
    unsafe_code,
    reason = "starting a program, dispositions, descriptor registration and mappings have no safe interface"
)]

mod huge;
mod start;

use std::{
    io,
    os::fd::{FromRawFd as _, OwnedFd, RawFd},
};

use tokio::io::{Interest, unix::AsyncFd};

pub use huge::HugeProgram;
pub(crate) use start::{Lead, Plan};

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
    // What is in the mappings takes the kernel ten times as long to tell as where they are, and a
    // program that is held in huge pages has none of its file's.
    let places = std::fs::read_to_string("/proc/self/maps")?;
    if crate::pages::unchanged(&places, &program).is_empty() {
        return Ok(());
    }
    let mappings = std::fs::read_to_string("/proc/self/smaps")?;
    for (start, length) in crate::pages::unchanged(&mappings, &program) {
        // SAFETY: the range is a whole mapping of our own file that is neither writable nor
        // changed, as the kernel has just said. Whoever reads it next gets the same bytes from
        // the file again; nobody can have written to it.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
    }
    Ok(())
}
