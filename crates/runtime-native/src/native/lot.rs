//! Random numbers for a process that others are copies of.
//!
//! A generator of the program's own keeps a state, and a copy of this process would go on with the
//! same numbers.

use std::io;

use rand::{TryRng as _, rngs::SysRng};

/// Asks the system for a number, and keeps nothing.
pub(super) fn draw() -> io::Result<u128> {
    let mut bytes = [0; size_of::<u128>()];
    SysRng
        .try_fill_bytes(&mut bytes)
        .map_err(io::Error::other)?;
    Ok(u128::from_ne_bytes(bytes))
}
