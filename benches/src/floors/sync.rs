//! What a disk takes to promise something: a page written behind the last, and one `fdatasync`.

use std::{
    fs::File,
    io::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use crate::lane::Subject;

/// About what one event takes in a journal.
const PAGE_BYTES: usize = 4096;

/// Writes page after page and syncs each.
#[derive(Debug)]
pub(crate) struct Sync {
    file: File,
}

impl Sync {
    /// Will write to a new file with this name.
    pub(crate) fn new(path: &Path) -> std::io::Result<Self> {
        let file = File::create(path)?;
        Ok(Self { file })
    }
}

impl Subject for Sync {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.file.write_all(&[1; PAGE_BYTES])?;
        self.file.sync_data()?;
        Ok(start.elapsed())
    }
}
