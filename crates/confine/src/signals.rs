//! A clean slate: signals and descriptors that a process was started with, and being told of
//! requests to end by a descriptor.
#![expect(
    unsafe_code,
    reason = "the mask of signals has no safe interface; every block says why it is sound"
)]

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd},
    ptr,
    sync::atomic::{AtomicBool, Ordering},
};

/// Gives every signal its default meaning and lets all of them through, whatever whoever has
/// started this process had set (NS-7).
///
/// A copy of a process that has done this has little left to do. So whoever has done it gives no
/// signal a meaning of its own after that but by [`ignore_broken_pipes`], as long as it makes copies.
///
/// # Errors
/// Never on a working kernel.
pub fn reset_signals() -> io::Result<()> {
    static DONE: AtomicBool = AtomicBool::new(false);
    let left = match DONE.swap(true, Ordering::Relaxed) {
        true => libc::SIGPIPE..=libc::SIGPIPE,
        // The C library keeps two of the real-time signals for itself and refuses them here.
        false => 1..=libc::SIGRTMAX(),
    };
    for signal in left {
        // SAFETY: takes two integers and installs no handler; what is refused stays as it is.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let_signals_through()
}

/// Lets all signals through to this thread and those that it starts, whatever whoever has started
/// this process had set: a signal that waits for ever is a child whose end nobody hears of. What
/// a signal means stays as it is, so `nohup` holds.
///
/// # Errors
/// Never on a working kernel.
pub fn let_signals_through() -> io::Result<()> {
    change_mask(libc::SIG_SETMASK, &[])
}

/// A pipe that nobody reads any more becomes an error of whoever writes, and not its end.
pub fn ignore_broken_pipes() {
    // SAFETY: takes two integers and installs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Whether this process lets a signal pass by, as `nohup` has it for one.
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed; the kernel writes what there is to a live record, which may also be
    // all zeros. An unknown number is an error.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: as above.
    let action = unsafe { action.assume_init() };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Closes every descriptor but the first three and those of what was made ready for this process: a
/// network ([`ReadyNetwork::keep`](crate::network::ReadyNetwork::keep)), and what
/// [`look_ahead`](crate::look_ahead) has made. For a program that has opened none yet: whatever there
/// is was left open by whoever has started it, and may be a lock that is held as long as somebody has a
/// copy.
///
/// # Errors
/// When the kernel does not know the call.
pub fn close_inherited() -> io::Result<()> {
    let kept = [
        crate::network::kept_descriptor(),
        crate::root::ready_devices_descriptor(),
    ];
    crate::sys::close_all_but(kept.into_iter().flatten())
}

/// Requests to end, as something to wait on. As long as it exists they do not end the process.
#[derive(Debug)]
pub struct EndRequests(OwnedFd);

impl EndRequests {
    const SIGNALS: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

    /// Takes the requests over. For a process with a single thread.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn take() -> io::Result<Self> {
        change_mask(libc::SIG_BLOCK, &Self::SIGNALS)?;
        let set = set_of(&Self::SIGNALS);
        // SAFETY: the set is initialised and lives through the call; -1 asks for a descriptor.
        let descriptor = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC) };
        if descriptor == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }
}

/// Readable when somebody has asked.
impl AsFd for EndRequests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn change_mask(how: i32, signals: &[i32]) -> io::Result<()> {
    let set = set_of(signals);
    // SAFETY: the set is initialised and lives through the call; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(how, &raw const set, ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the pointer is to writable memory of the right type.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: `sigemptyset` has initialised it and cannot fail with a valid pointer.
    let mut set = unsafe { set.assume_init() };
    for signal in signals {
        // SAFETY: an initialised set and a number, which is checked.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_known_signal_by_signal() {
        // As every program of ours starts.
        ignore_broken_pipes();
        assert!(is_ignored(libc::SIGPIPE));
        assert!(!is_ignored(libc::SIGTERM));
        assert!(!is_ignored(0));
        assert!(!is_ignored(10_000));
    }
}
