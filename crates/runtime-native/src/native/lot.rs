//! Random numbers for a process that others are copies of.
//!
//! The program's own generator may keep a state or a descriptor. A copy of this process would go on
//! with the same numbers, or read from whatever has got the number of the descriptor, which was closed.

use std::{
    fs::File,
    io::{self, Read as _},
};

/// Draws a number, and keeps nothing.
pub(super) fn draw() -> io::Result<u128> {
    let mut bytes = [0; size_of::<u128>()];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}
