//! Space that is kept for the time when there is none, in a file of its own.
//!
//! Inside the database it would be of no use: what is to be freed there must be written to the
//! journal first.

use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};

use crate::writer::Failure;

/// Enough for what the actions that run at that moment have to tell, and for their notes.
const RESERVE_BYTES: u64 = 4 * 1024 * 1024;

/// What must be free besides before things are well again: otherwise the very space that was
/// given back would end the trouble.
const MARGIN_BYTES: u64 = 1024 * 1024;

/// The file that takes the space.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    is_filled: bool,
}

impl Reserve {
    /// Takes the space if it is there; a full disk is no reason not to open a log.
    pub(super) fn new(path: PathBuf) -> Self {
        let mut reserve = Self {
            path,
            is_filled: false,
        };
        if let Err(failure) = reserve.fill() {
            tracing::warn!(
                ?failure,
                "no space can be kept in reserve for the event log"
            );
        }
        reserve
    }

    /// Gives back what an earlier program has reserved, and says whether there was any: without
    /// space a log cannot even be opened.
    pub(super) fn give_up(path: &Path) -> bool {
        let file = OpenOptions::new().write(true).open(path);
        file.is_ok_and(|file| {
            let is_filled = file.metadata().is_ok_and(|found| found.len() > 0);
            is_filled && file.set_len(0).is_ok()
        })
    }

    /// Gives the space back, and says whether there was any.
    pub(super) fn open(&mut self) -> bool {
        let file = OpenOptions::new().write(true).open(&self.path);
        let is_open = self.is_filled && file.and_then(|file| file.set_len(0)).is_ok();
        self.is_filled = false;
        is_open
    }

    /// Takes the space again.
    pub(super) fn fill(&mut self) -> Result<(), Failure> {
        if self.is_filled {
            return Ok(());
        }
        self.allocate().map_err(|error| {
            // What was taken in vain is wanted elsewhere.
            let file = OpenOptions::new().write(true).open(&self.path);
            let _ = file.and_then(|file| file.set_len(0));
            Failure::Full(format!("there is no space for the event log: {error}"))
        })?;
        self.is_filled = true;
        Ok(())
    }

    fn allocate(&self) -> io::Result<()> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&self.path)?;
        let free = fstatvfs(&file)?;
        if free.f_bavail.saturating_mul(free.f_frsize) < RESERVE_BYTES + MARGIN_BYTES {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES) {
            // A file system that cannot do it: then there is no reserve, and no reason to wait.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            other => Ok(other?),
        }
    }
}
