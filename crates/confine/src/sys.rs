//! System calls that have no safe interface: one thin function each, without policy.
#![expect(
    unsafe_code,
    reason = "raw system calls; every block says why it is sound"
)]

use std::{
    convert::Infallible,
    ffi::{CStr, OsString},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd},
};

use rustix::{
    fs::{Mode, OFlags},
    pipe::{PipeFlags, pipe_with},
    process::{DumpableBehavior, Pid},
};

use crate::launch::Program;

/// Which side of a [`clone_with`] we are on.
#[derive(Debug)]
pub(crate) enum Side {
    /// The new process, number 1 of its namespace when it has one of its own.
    Child,
    /// The old one, with a descriptor of the new.
    Parent { pid: i32, pidfd: OwnedFd },
}

/// A new process in new namespaces.
///
/// The caller must have one thread only, or the child do nothing but system calls: locks that
/// another thread held at this moment would stay locked for ever in the child.
pub(crate) fn clone_with(namespaces: u64) -> io::Result<Side> {
    clone_into(namespaces, None)
}

/// The same, born in a control group of the second generation when one is given.
pub(crate) fn clone_into(namespaces: u64, group: Option<BorrowedFd<'_>>) -> io::Result<Side> {
    let mut pidfd: i32 = -1;
    let mut arguments: libc::clone_args = zeroed_clone_args();
    arguments.flags = namespaces | libc::CLONE_PIDFD as u64;
    if let Some(group) = group {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = group.as_raw_fd() as u64;
    }
    arguments.pidfd = (&raw mut pidfd) as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    match clone3(&mut arguments)? {
        0 => Ok(Side::Child),
        pid => {
            // SAFETY: on success the kernel has stored a new descriptor that nobody else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Side::Parent { pid, pidfd })
        }
    }
}

fn zeroed_clone_args() -> libc::clone_args {
    libc::clone_args {
        flags: 0,
        pidfd: 0,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: 0,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    }
}

/// See `clone3(2)`; the library's constant does not fit into its own type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// A flag for [`clone_with`]: signals mean to the child what they mean by default, so that no
/// handler of the parent's runs in it. The constant of the C library is cut off at 32 bits.
pub(crate) const NO_HANDLERS: u64 = 0x1_0000_0000;

/// Ends this process without running anything that was to run at its end.
pub(crate) fn exit_at_once(status: i32) -> ! {
    // SAFETY: takes an integer and does not return.
    unsafe { libc::_exit(status) }
}

/// What [`set_mount_attributes`] changes; see `mount_setattr(2)`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct MountAttributes {
    pub(crate) set: u64,
    pub(crate) clear: u64,
    pub(crate) propagation: u64,
    pub(crate) userns_fd: u64,
}

/// Changes a mount and all mounts below it.
pub(crate) fn set_mount_attributes(
    mount: impl AsFd,
    attributes: &MountAttributes,
) -> io::Result<()> {
    mount_setattr(mount, libc::AT_RECURSIVE, attributes)
}

/// Changes one mount.
pub(crate) fn set_one_mount_attributes(
    mount: impl AsFd,
    attributes: &MountAttributes,
) -> io::Result<()> {
    mount_setattr(mount, 0, attributes)
}

fn mount_setattr(mount: impl AsFd, flags: i32, attributes: &MountAttributes) -> io::Result<()> {
    // SAFETY: the path is a constant empty string, and the attributes a live value whose size
    // is passed with it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | flags,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Brings an interface up, in the network namespace of the caller.
pub(crate) fn bring_up(interface: &CStr, socket: impl AsFd) -> io::Result<()> {
    let bytes = interface.to_bytes_with_nul();
    // SAFETY: `ifreq` is a plain record for which all zeroes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if bytes.len() > request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, &from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = from as libc::c_char;
    }
    let flags = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: the request is a live, initialised `ifreq`, which this ioctl reads.
    match unsafe {
        libc::ioctl(
            socket.as_fd().as_raw_fd(),
            libc::SIOCSIFFLAGS,
            &raw const request,
        )
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Leaves the control-group namespace for a new one.
pub(crate) fn unshare_control_groups() -> io::Result<()> {
    // SAFETY: takes one integer; no descriptor or memory is unshared with another thread.
    match unsafe { libc::unshare(libc::CLONE_NEWCGROUP) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Leaves the network namespace of this thread for a new one.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: takes one integer; a network is no descriptor or memory of another thread.
    match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The stack of a child that shares our memory.
const STACK_BYTES: usize = 64 * 1024;

/// A child that shares our memory, and runs a function on a stack of its own. Nothing is copied
/// for it, which makes it far cheaper than a fork. `clone3` may be filtered already.
///
/// # Safety
/// What `argument` points to, and the stack, must stay until the child is gone or has become
/// another program. Until then the function must not disturb what we do meanwhile.
unsafe fn clone_sharing(
    stack: &mut [u8],
    flags: i32,
    function: extern "C" fn(*mut libc::c_void) -> libc::c_int,
    argument: *mut libc::c_void,
    pidfd: &mut i32,
) -> io::Result<i32> {
    let top = stack.as_mut_ptr_range().end;
    // The stack grows down from an address that calls expect to be a multiple of 16.
    let top = top.wrapping_sub(top.addr() % 16);
    // SAFETY: the top is within or just behind a live allocation; the caller vouches for the rest.
    let result = unsafe {
        libc::clone(
            function,
            top.cast(),
            flags | libc::CLONE_VM | libc::SIGCHLD,
            argument,
            std::ptr::from_mut(pidfd),
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(pid),
    }
}

/// A process in a user namespace of its own that does nothing. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Idler {
    pub(crate) pid: i32,
    pidfd: OwnedFd,
    /// What it waits on and what keeps it waiting. Its own copy of the latter it lets go of, so
    /// that it does not outlive us.
    _pipe: Box<[OwnedFd; 2]>,
    stack: Box<[u8]>,
}

impl Idler {
    pub(crate) fn in_user_namespace() -> io::Result<Self> {
        extern "C" fn idle(pipe: *mut libc::c_void) -> libc::c_int {
            // SAFETY: the other side keeps the two descriptors where they are until we are gone.
            let [held, hold] = unsafe { &*pipe.cast::<[OwnedFd; 2]>() };
            let mut byte = 0_u8;
            // SAFETY: takes one integer, which is open in our own table of descriptors.
            unsafe { libc::close(hold.as_raw_fd()) };
            // SAFETY: writes at most one byte to one that lives on our stack.
            unsafe { libc::read(held.as_raw_fd(), (&raw mut byte).cast(), 1) };
            0
        }
        let (held, hold) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut pipe = Box::new([held, hold]);
        let mut stack = vec![0; STACK_BYTES].into_boxed_slice();
        let mut pidfd = -1;
        let flags = libc::CLONE_NEWUSER | libc::CLONE_PIDFD;
        let argument = (&raw mut *pipe).cast();
        // SAFETY: the stack and the pipe are on the heap and kept until the process is gone. It
        // makes two system calls and touches nothing but its stack.
        let pid = unsafe { clone_sharing(&mut stack, flags, idle, argument, &mut pidfd)? };
        // SAFETY: on success the kernel has stored a new descriptor that nobody else owns.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        Ok(Self {
            pid,
            pidfd,
            _pipe: pipe,
            stack,
        })
    }
}

impl Drop for Idler {
    fn drop(&mut self) {
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
        let id = rustix::process::WaitId::PidFd(self.pidfd.as_fd());
        let gone = rustix::process::waitid(id, rustix::process::WaitIdOptions::EXITED);
        if gone.is_err() {
            // It cannot be told whether it still stands on this.
            std::mem::forget(std::mem::take(&mut self.stack));
        }
    }
}

/// What a program is started with.
struct Work<'a> {
    program: &'a Program<'a>,
    tell: &'a dyn Fn(&io::Error),
}

/// Goes on as a program in a new process; when that fails, it tells and ends. Both processes have one
/// memory, which saves a copy of it. It is the program's from then on, also what the C library keeps for
/// each thread: this process, which must have one thread only, goes on with `beside`, which makes system
/// calls, looks at what they return, and does nothing else. Returns when there is no new process.
///
/// The C library does not notice: what it remembers as the number of the program's first thread is
/// another, which only kinds of locks ask for that nothing here uses.
pub(crate) fn spawn(
    program: &Program<'_>,
    tell: &dyn Fn(&io::Error),
    beside: impl FnOnce(Pid) -> Infallible,
) -> io::Error {
    extern "C" fn work(work: *mut libc::c_void) -> libc::c_int {
        // SAFETY: it lives in a function of the other side that is never left.
        let Work { program, tell } = unsafe { &*work.cast::<Work<'_>>() };
        let run = || (program.run)();
        let status = match take_over(program) {
            // A panic must not unwind into what belongs to the other process.
            Ok(()) => std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)),
            Err(error) => {
                tell(&error);
                exit_at_once(1)
            }
        };
        std::process::exit(status.unwrap_or(101))
    }
    let stack = match program_stack() {
        Ok(stack) => stack,
        Err(error) => return error,
    };
    let mut given = Work { program, tell };
    let argument = (&raw mut given).cast();
    // SAFETY: the stack is never freed. What is given lives in this function, and what it refers to in
    // those that have called it: if there is a new process, none of them is ever returned to. What we do
    // then touches nothing but our own stack.
    match unsafe { clone_sharing(stack, 0, work, argument, &mut -1) } {
        Ok(pid) => match Pid::from_raw(pid).map(beside) {
            Some(never) => match never {},
            None => exit_at_once(1),
        },
        Err(error) => error,
    }
}

/// A stack as large as that of a program's first thread, of which as much is in memory as is used. What
/// grows beyond it ends the program.
fn program_stack() -> io::Result<&'static mut [u8]> {
    const BYTES: usize = 8 * 1024 * 1024;
    const GUARD_BYTES: usize = 64 * 1024;
    let map = |protection, flags, address: *mut libc::c_void, bytes| {
        let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory, in a place that the kernel chooses or within what it has just given us.
        let mapped = unsafe { libc::mmap(address, bytes, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(mapped)
    };
    let whole = map(
        libc::PROT_NONE,
        0,
        std::ptr::null_mut(),
        GUARD_BYTES + BYTES,
    )?;
    let start = whole.wrapping_byte_add(GUARD_BYTES);
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    let stack = map(writable, libc::MAP_FIXED | libc::MAP_STACK, start, BYTES)?;
    // SAFETY: says how the kernel shall back what was just mapped. It would have two mebibytes otherwise,
    // where an operator wants that for everything.
    unsafe { libc::madvise(stack, BYTES, libc::MADV_NOHUGEPAGE) };
    // SAFETY: the mapping is as long as this, filled with zeros, and nobody else's for ever.
    Ok(unsafe { std::slice::from_raw_parts_mut(stack.cast(), BYTES) })
}

/// Runs `work` in a process of its own, which ends with it and runs nothing else: neither
/// destructors of values from before nor anything that was to be done at our own end. Returns
/// that process's descriptor; the caller has to wait for it.
///
/// The caller must have one thread only.
///
/// # Errors
/// When there are too many processes, or no descriptors left.
pub fn fork_off(work: impl FnOnce()) -> io::Result<OwnedFd> {
    match clone_with(0)? {
        Side::Parent { pidfd, .. } => Ok(pidfd),
        Side::Child => {
            // A panic must not unwind into what belongs to the other process.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: takes one integer and does not return.
            unsafe { libc::_exit(i32::from(done.is_err())) }
        }
    }
}

/// Runs `work` in a copy of this process that is a child of the same parent, which is who has to
/// wait for it. It ends with the status that the work returns. Returns its number.
///
/// The caller must have one thread only.
///
/// # Errors
/// When there are too many processes.
pub fn fork_beside(work: impl FnOnce() -> i32) -> io::Result<i32> {
    let mut arguments: libc::clone_args = zeroed_clone_args();
    // Its end is told to the parent like ours.
    arguments.flags = libc::CLONE_PARENT as u64;
    match clone3(&mut arguments)? {
        0 => {
            // A panic must not unwind into what belongs to the other process.
            let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            std::process::exit(status.unwrap_or(101))
        }
        pid => Ok(pid),
    }
}

/// Without CLONE_VM the child gets a copy of all memory, so it may go on running the same code.
/// Returns 0 in it.
fn clone3(arguments: &mut libc::clone_args) -> io::Result<i32> {
    // SAFETY: the arguments are a live record whose size is passed with it; where it has an
    // address, the caller has put that of a live value there.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            std::ptr::from_mut(arguments),
            size_of::<libc::clone_args>(),
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(i32::try_from(pid).unwrap_or(i32::MAX)),
    }
}

/// Makes these the variables of this process, and of programs that it starts without saying which
/// they have.
///
/// The caller must have one thread only.
pub fn replace_environment(variables: &[(OsString, OsString)]) {
    let is_sound = |name: &OsString| {
        let bytes = name.as_encoded_bytes();
        !bytes.is_empty() && !bytes.contains(&b'=') && !bytes.contains(&0)
    };
    // SAFETY: there is no other thread that could look at the environment meanwhile.
    unsafe { libc::clearenv() };
    for (name, value) in variables.iter().filter(|(name, _)| is_sound(name)) {
        if !value.as_encoded_bytes().contains(&0) {
            // SAFETY: as above.
            unsafe { std::env::set_var(name, value) };
        }
    }
}

/// Writes over the arguments that this process was started with, from an address on which the
/// kernel has told.
///
/// The caller must have one thread only, and must not write beyond their end.
pub(crate) fn overwrite_arguments(start: u64, bytes: &[u8]) {
    let place = std::ptr::with_exposed_provenance_mut::<u8>(usize::try_from(start).unwrap_or(0));
    if place.is_null() {
        return;
    }
    // SAFETY: the kernel has put the arguments there, at the end of our own stack, where they can be
    // written to. Nobody has a reference to them: the standard library copies them when it is asked,
    // and there is no other thread that could ask.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
}

/// Out of the way of the numbers that a program gets.
pub(crate) const HIGH_NUMBER: i32 = 100;

/// Makes this process the leader of a session of its own, with the program's descriptors and no
/// others and with the signals that a program of ours starts with. It may be looked at until it says
/// otherwise, so that what stands around it can be read back.
fn take_over(program: &Program<'_>) -> io::Result<()> {
    crate::signals::reset_signals()?;
    crate::signals::ignore_broken_pipes();
    rustix::process::setsid()?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    crate::arguments::show(program.shown.as_bytes())?;
    // A descriptor may have the very number that another one shall get.
    let mut moved = Vec::new();
    for (descriptor, number) in &program.descriptors {
        moved.push((
            rustix::io::fcntl_dupfd_cloexec(descriptor, HIGH_NUMBER)?,
            *number,
        ));
    }
    for (descriptor, number) in &moved {
        // SAFETY: takes two integers; the target numbers belong to the program to come, and
        // nothing here uses what had them.
        if unsafe { libc::dup2(descriptor.as_raw_fd(), *number) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    drop(moved);
    close_all_but(program.descriptors.iter().map(|(_, number)| *number))
}

/// Closes all descriptors from 3 on but some. Those that Rust owns must not be used or dropped after.
pub(crate) fn close_all_but(kept: impl IntoIterator<Item = i32>) -> io::Result<()> {
    let mut kept: Vec<i32> = kept.into_iter().collect();
    kept.sort_unstable();
    let mut next = 3;
    for number in kept {
        if next < number {
            close_range(next, number - 1)?;
        }
        next = next.max(number + 1);
    }
    close_range(next, i32::MAX)
}

/// Closes everything from 3 on and puts nothing in the place of the first three, for a process
/// that will only wait from now on. Makes system calls and does nothing else.
pub(crate) fn let_go_of_everything() {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    if let Ok(nothing) = rustix::fs::open(c"/dev/null", flags, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
        // It is among those that are closed now.
        std::mem::forget(nothing);
    }
    let _ = close_range(3, i32::MAX);
}

/// Closes the descriptors from one number to another. Those that Rust owns must not be used or
/// dropped after.
pub(crate) fn close_range(first: i32, last: i32) -> io::Result<()> {
    // SAFETY: takes three integers; the callers see to it that nobody uses what is closed.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
