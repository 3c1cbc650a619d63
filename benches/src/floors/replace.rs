//! The safe way to replace a file and nothing else: write another, sync it, rename it.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::lane::Subject;

/// Replaces one file over and over.
#[derive(Debug)]
pub(crate) struct Replace {
    file: PathBuf,
    draft: PathBuf,
}

impl Replace {
    /// Will read `file` and replace it by itself.
    pub(crate) fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            draft: file.with_extension("draft"),
        }
    }
}

impl Subject for Replace {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let content = fs::read(&self.file)?;
        let mut draft = File::create(&self.draft)?;
        draft.write_all(&content)?;
        draft.sync_data()?;
        drop(draft);
        fs::rename(&self.draft, &self.file)?;
        Ok(start.elapsed())
    }
}
