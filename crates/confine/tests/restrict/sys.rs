//! The system calls that victims make, most of which nobody should.
#![expect(
    unsafe_code,
    reason = "attempts are made by raw system calls, past every safe interface"
)]

use std::{ffi::CStr, io};

use libc::{c_int, c_long, iovec};

/// What a raw call is given: nothing that could let the kernel write where it must not.
#[derive(Clone, Copy)]
pub(crate) enum Argument<'a> {
    Number(i64),
    Text(&'a CStr),
    /// A null pointer, or the number 0.
    Nothing,
}

/// Makes any system call. With null pointers and constant strings, which the kernel only reads,
/// there is nothing that it could write to; calls that change the address space are not made here.
pub(crate) fn call(number: c_long, arguments: &[Argument<'_>]) -> io::Result<i64> {
    let mut raw = [0_i64; 6];
    for (to, argument) in raw.iter_mut().zip(arguments) {
        *to = match argument {
            Argument::Number(number) => *number,
            Argument::Text(text) => text.as_ptr() as i64,
            Argument::Nothing => 0,
        };
    }
    let [a, b, c, d, e, f] = raw;
    // SAFETY: every argument is an integer, a null pointer, or a string that outlives the call
    // and that no system call writes to; no caller asks for a change of this process's memory.
    check(unsafe { libc::syscall(number, a, b, c, d, e, f) })
}

/// Makes a call with numbers only.
pub(crate) fn numbers(number: c_long, arguments: &[i64]) -> io::Result<i64> {
    let arguments: Vec<Argument<'_>> = arguments.iter().copied().map(Argument::Number).collect();
    call(number, &arguments)
}

/// Makes a child with these flags, which ends at once.
pub(crate) fn clone_and_reap(flags: c_int) -> io::Result<()> {
    let (flags, nothing) = (c_long::from(flags | libc::SIGCHLD), 0 as c_long);
    // SAFETY: without CLONE_VM and with no stack the child runs on a copy of this memory, and
    // this process has a single thread whose locks it could inherit.
    match unsafe { libc::syscall(libc::SYS_clone, flags, nothing, nothing, nothing, nothing) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: ends the child without running anything of the copy.
        0 => unsafe { libc::_exit(0) },
        child => {
            // SAFETY: waits for the child just made and stores its status nowhere.
            check(unsafe { libc::syscall(libc::SYS_wait4, child, nothing, nothing, nothing) })
                .map(drop)
        }
    }
}

/// Moves this process into a user namespace of its own.
pub(crate) fn unshare_user() -> io::Result<()> {
    numbers(libc::SYS_unshare, &[i64::from(libc::CLONE_NEWUSER)]).map(drop)
}

/// Reads one byte of this process's own memory as if it were another's.
pub(crate) fn read_memory_of(pid: i32) -> io::Result<i64> {
    transfer(libc::SYS_process_vm_readv, pid)
}

/// Writes one byte of this process's own memory as if it were another's.
pub(crate) fn write_memory_of(pid: i32) -> io::Result<i64> {
    transfer(libc::SYS_process_vm_writev, pid)
}

fn transfer(number: c_long, pid: i32) -> io::Result<i64> {
    let (mut near, mut far) = ([0_u8], [1_u8]);
    let near = iovec {
        iov_base: near.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let far = iovec {
        iov_base: far.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: both lists have one element and name one byte each, on this frame; when the number
    // is of another process the far address is looked up there, and nothing of ours is written
    // but the near byte.
    check(unsafe {
        libc::syscall(
            number,
            pid,
            &raw const near,
            1_usize,
            &raw const far,
            1_usize,
            0_usize,
        )
    })
}

/// Sends this process SIGALRM after some seconds.
pub(crate) fn alarm(seconds: u32) {
    // SAFETY: takes an integer.
    unsafe { libc::alarm(seconds) };
}

/// Types a letter into a terminal. `upper_half` is added above the 32 bits that the kernel uses.
pub(crate) fn type_into_terminal(
    request: u64,
    upper_half: u64,
    terminal: c_int,
) -> io::Result<i64> {
    let letter = c"x";
    let request = c_long::try_from(upper_half << 32 | request).unwrap();
    // SAFETY: TIOCSTI and TIOCLINUX read one byte, and the letter is one.
    check(unsafe { libc::syscall(libc::SYS_ioctl, terminal, request, letter.as_ptr()) })
}

/// Asks for the process's number by the way that 32-bit programs use.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call_as_32_bit() -> i64 {
    const GETPID: i64 = 20;
    let result: i64;
    // SAFETY: this call takes no arguments and touches no memory; the kernel changes `rax` and,
    // on this entry, may clear r8 to r11.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("rax") GETPID => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            options(nostack)
        );
    }
    result
}

fn check(result: c_long) -> io::Result<i64> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
