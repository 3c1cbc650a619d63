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

/// What a new process needs to be in a leaf before it does anything.
#[derive(Debug)]
pub struct Entrance {
    unified: Option<OwnedFd>,
    threads: Vec<OwnedFd>,
}

impl Leaf {
    /// Opens the way in. The kernel asks for the rights of whoever opened it, so a process can
    /// use it that has none.
    ///
    /// # Errors
    /// When a file or directory of the leaf cannot be opened.
    pub fn entrance(&self) -> Result<Entrance, CgroupError> {
        let unified = self
            .directory_fd()
            .map(|directory| directory.try_clone_to_owned());
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
        Ok(Entrance {
            unified: unified.transpose().map_err(|source| CgroupError::Io {
                deed: "open",
                path: self.name().into(),
                source,
            })?,
            threads: threads.collect::<Result<_, _>>()?,
        })
    }
}

impl Entrance {
    /// The group to be born in, if there is one.
    pub(crate) fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        self.unified.as_ref().map(|directory| directory.as_fd())
    }

    /// Puts the calling process, which must have a single thread, into all other groups.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn enter(&self) -> io::Result<()> {
        for file in &self.threads {
            rustix::io::write(file, b"0")?;
        }
        Ok(())
    }
}
