//! The one question that the `landlock` crate does not answer before something is enforced.
#![expect(
    unsafe_code,
    reason = "no safe interface asks the kernel for its Landlock ABI"
)]

use std::io;

/// `LANDLOCK_CREATE_RULESET_VERSION`: makes nothing, only asks.
const ASK_VERSION: u32 = 1;

/// Which Landlock ABI the running kernel has.
///
/// # Errors
/// `ENOSYS` when it was built without Landlock, `EOPNOTSUPP` when it was started without.
pub(super) fn abi() -> io::Result<i32> {
    // SAFETY: with this flag the kernel requires a null pointer and a size of 0, and reads and
    // writes no memory of ours.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            ASK_VERSION,
        )
    };
    match i32::try_from(version) {
        Ok(version) if version > 0 => Ok(version),
        _ => Err(io::Error::last_os_error()),
    }
}
