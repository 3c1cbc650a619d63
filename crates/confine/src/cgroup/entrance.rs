//! The way into a leaf for a process that is being made (NS-14).
//!
//! Writing another process's number into a group makes the kernel wait until no process of the
//! machine is between two of them, which takes ten milliseconds and more. Two ways do not: a
//! process can be born in a group of the second generation, and a process with one thread can
//! put itself into groups of the first.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use rustix::fs::OFlags;

use super::{CgroupError, Leaf, Version};

/// A file of the first generation that takes single threads.
const THREADS: &str = "tasks";

/// What a process that was born in the leaf of the second generation needs to be in those of the
/// first before it does anything.
#[derive(Debug, Default)]
pub struct Entrance(Vec<OwnedFd>);

impl Leaf {
    /// Opens the way in. The kernel asks for the rights of whoever opened it, so a process can
    /// use it that has none.
    ///
    /// # Errors
    /// When a file of the leaf cannot be opened.
    pub fn entrance(&self) -> Result<Entrance, CgroupError> {
        let first = self
            .seats
            .0
            .iter()
            .filter(|seat| seat.version == Version::V1);
        let threads = first.map(|seat| {
            let failure = seat.directory.failure("open", THREADS);
            seat.directory
                .open_file(THREADS, OFlags::WRONLY)
                .map_err(failure)
        });
        Ok(Entrance(threads.collect::<Result<_, _>>()?))
    }
}

impl Entrance {
    /// What is passed to the process.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.0.iter().map(|file| file.as_fd()).collect()
    }
}

/// Puts the calling process, which must have a single thread, into the groups of these files.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn enter(threads: &[OwnedFd]) -> io::Result<()> {
    for file in threads {
        rustix::io::write(file, b"0")?;
    }
    Ok(())
}
