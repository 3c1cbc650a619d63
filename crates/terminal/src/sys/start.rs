//! Starting a program without copying ourselves.
//!
//! A fork copies the tables of all our memory, and everything that is written afterwards, for a
//! child that throws it away at once. This child borrows our memory instead, until it has become
//! the program; the thread that started it stands still so long. Hence the rules of what it does:
//! system calls on values that were prepared before, no allocation, no lock, no unwinding.

use std::{
    ffi::CString,
    io,
    os::fd::{AsRawFd as _, OwnedFd, RawFd},
    ptr,
};

use rustix::process::{Pid, WaitOptions};

use crate::Credentials;

/// The numbers of the signals whose disposition a new program must not inherit.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=31;

/// What a child needs before it is a program, with room for the arguments of a script that names
/// no interpreter: the C library puts them there.
const STACK_BYTES: usize = 256 * 1024;

/// A set of all signals, and of none, as the kernel takes them.
const ALL_SIGNALS: u64 = u64::MAX;
const NO_SIGNALS: u64 = 0;

/// What the leader of a session has for a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The one that is its standard input.
    OnTerminal,
    /// None.
    WithoutTerminal,
}

/// A program to be started as the leader of a session of its own, with default signals, no core
/// dumps and no descriptor beyond the standard three and those that it inherits.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) program: CString,
    /// Its own name first.
    pub(crate) arguments: Vec<CString>,
    /// Each as `name=value`.
    pub(crate) environment: Vec<CString>,
    pub(crate) directory: CString,
    /// What it has for the standard three. None of our numbers is among theirs.
    pub(crate) stdio: [OwnedFd; 3],
    pub(crate) lead: Lead,
    /// Descriptors that stay open, as (ours, the program's) pairs.
    pub(crate) inherited: Vec<(RawFd, RawFd)>,
    pub(crate) credentials: Option<Credentials>,
}

/// What the child works on.
struct Ready<'a> {
    plan: &'a Plan,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    /// Why it did not become the program.
    failure: Option<io::Error>,
}

impl Plan {
    /// Starts it. Somebody has to wait for it.
    pub(crate) fn start(&self) -> io::Result<Pid> {
        let mut ready = Ready {
            plan: self,
            arguments: pointers(&self.arguments),
            environment: pointers(&self.environment),
            failure: None,
        };
        let mut stack = vec![0_u8; STACK_BYTES];
        let top = stack.as_mut_ptr_range().end;
        // The stack grows down from an address that calls expect to be a multiple of 16.
        let top = top.wrapping_sub(top.addr() % 16);
        // A handler of ours must not run in the child, which has our memory and another table of
        // descriptors. It puts them back before it becomes the program.
        let before = set_signal_mask(ALL_SIGNALS)?;
        // SAFETY: the stack and what the child works on live on while this thread stands still,
        // which the flags promise until the child has another memory or is gone. It has a table
        // of descriptors and of dispositions of its own, and keeps to the rules of this module.
        let pid = unsafe {
            libc::clone(
                become_program,
                top.cast(),
                libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
                (&raw mut ready).cast(),
            )
        };
        let cloned = io::Error::last_os_error();
        set_signal_mask(before)?;
        let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 0) else {
            return Err(cloned);
        };
        match ready.failure {
            None => Ok(pid),
            Some(failure) => {
                // It has ended already.
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
                Err(failure)
            }
        }
    }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([ptr::null()])
        .collect()
}

/// Sets which signals wait, of this thread, and returns which did. The C library's own function
/// leaves two of them out.
fn set_signal_mask(mask: u64) -> io::Result<u64> {
    let mut before = 0_u64;
    // SAFETY: reads one mask and writes another, both live and of the size that is passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            &raw mut before,
            size_of::<u64>(),
        )
    };
    match result {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What the child runs.
extern "C" fn become_program(ready: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the other side stands still and touches it only when we are done.
    let ready = unsafe { &mut *ready.cast::<Ready<'_>>() };
    let Err(failure) = execute(ready);
    ready.failure = Some(failure);
    127
}

fn execute(ready: &Ready<'_>) -> io::Result<std::convert::Infallible> {
    let plan = ready.plan;
    for (descriptor, number) in plan.stdio.iter().zip(0..) {
        duplicate_onto(descriptor.as_raw_fd(), number)?;
    }
    // SAFETY: the path is a live string.
    if unsafe { libc::chdir(plan.directory.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    reset_signals();
    rustix::process::setsid()?;
    if plan.lead == Lead::OnTerminal {
        take_controlling_terminal()?;
    }
    forbid_core_dumps();
    close_on_exec_from(3)?;
    for &(from, to) in &plan.inherited {
        duplicate_onto(from, to)?;
    }
    if let Some(credentials) = &plan.credentials {
        take_identity(credentials)?;
    }
    set_signal_mask(NO_SIGNALS)?;
    // SAFETY: the path is a live string, and both lists are of pointers to live strings, ended by
    // a null pointer. A path with a slash, as every program's here, is not searched for.
    unsafe {
        libc::execvpe(
            plan.program.as_ptr(),
            ready.arguments.as_ptr(),
            ready.environment.as_ptr(),
        )
    };
    Err(io::Error::last_os_error())
}

/// Groups first: after the user is changed there is no right to change them. By system calls,
/// because the C library's functions would change all threads that it knows, which are not ours.
fn take_identity(credentials: &Credentials) -> io::Result<()> {
    let Credentials { uid, gid, groups } = credentials;
    // SAFETY: the length and the pointer describe one live slice of group numbers.
    done(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) })?;
    // SAFETY: takes one integer.
    done(unsafe { libc::syscall(libc::SYS_setgid, *gid) })?;
    // SAFETY: takes one integer.
    done(unsafe { libc::syscall(libc::SYS_setuid, *uid) })
}

fn done(result: libc::c_long) -> io::Result<()> {
    match result {
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

/// A limit of 1: too small for a file, and the only one with which the kernel does not start the
/// program that a machine may have for crashes, which it does outside of every sandbox and as root.
fn forbid_core_dumps() {
    let none = libc::rlimit {
        rlim_cur: 1,
        rlim_max: 1,
    };
    // SAFETY: reads one `rlimit` that lives on this stack frame. Where the limit is 0 already, it stays.
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
