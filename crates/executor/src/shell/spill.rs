//! The whole output of a command, kept in a file when it is more than an agent is shown.

use std::{
    collections::VecDeque,
    fs::{DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::recording::{FILE_MAX_BYTES, Recording};
use crate::owner::Owner;

/// Files kept per shell; older ones are removed.
const FILES_KEPT: usize = 4;

/// Records the output of one command after the other.
#[derive(Debug)]
pub(super) struct Spill {
    directory: PathBuf,
    prefix: String,
    owner: Owner,
    recording: Arc<Recording>,
    /// Where the recording's file is, when it has one.
    path: Option<PathBuf>,
    kept: VecDeque<PathBuf>,
    number: u64,
}

/// What there is of a command's output beside what was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FullOutput {
    /// Bytes that the command wrote.
    pub(super) bytes: u64,
    /// Where they are, up to the limit of a file.
    pub(super) file: Option<PathBuf>,
    /// Bytes beyond that limit, or all that could not be stored.
    pub(super) dropped: u64,
}

impl Spill {
    pub(super) fn new(directory: &Path, prefix: &str, owner: Owner) -> Self {
        Self {
            directory: directory.to_owned(),
            prefix: prefix.to_owned(),
            owner,
            recording: Arc::default(),
            path: None,
            kept: VecDeque::new(),
            number: 0,
        }
    }

    /// The recording of the present command.
    pub(super) fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// Forgets the previous command; its file stays for a while.
    pub(super) fn start(&mut self) {
        self.recording = Arc::default();
        if let Some(path) = self.path.take() {
            self.kept.push_back(path);
        }
        while self.kept.len() >= FILES_KEPT {
            if let Some(oldest) = self.kept.pop_front() {
                let _ = std::fs::remove_file(oldest);
            }
        }
    }

    /// Takes in what programs wrote.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.recording.needs_file(bytes.len())
            && let Some((file, path)) = self.make_file()
        {
            if self.recording.move_to(file) {
                self.path = Some(path);
            } else {
                let _ = std::fs::remove_file(path);
            }
        }
        if !self.recording.push(bytes)
            && let Some(path) = self.path.take()
        {
            // A full disk costs the copy, never the command.
            let _ = std::fs::remove_file(path);
        }
    }

    fn make_file(&mut self) -> Option<(File, PathBuf)> {
        self.number += 1;
        let path = self
            .directory
            .join(format!("{}-{}.log", self.prefix, self.number));
        let create = || {
            let mut options = File::options();
            // Read again by those who follow the command.
            options.read(true).write(true).create_new(true).open(&path)
        };
        let file = match create() {
            // Most shells never need it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut directory = DirBuilder::new();
                directory.recursive(true).mode(0o711);
                directory.create(&self.directory).and_then(|()| create())
            }
            created => created,
        };
        let file = file.ok()?;
        if self.owner.give(&file).is_err() {
            let _ = std::fs::remove_file(path);
            return None;
        }
        Some((file, path))
    }

    /// What there is of the command's output so far.
    pub(super) fn full_output(&self) -> FullOutput {
        let written = self.recording.written();
        let stored = match self.path {
            Some(_) => written.min(FILE_MAX_BYTES),
            None => 0,
        };
        FullOutput {
            bytes: written,
            file: self.path.clone(),
            dropped: written - stored,
        }
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        let current = self.path.take();
        for path in self.kept.drain(..).chain(current) {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::recording::KEPT_IN_MEMORY_BYTES, *};

    #[test]
    fn little_output_makes_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::new(directory.path(), "default", Owner::Ourselves);
        spill.push(&[b'x'; KEPT_IN_MEMORY_BYTES]);
        assert_eq!(spill.full_output().file, None);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn much_output_is_in_the_file_from_its_first_byte() {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::new(directory.path(), "default", Owner::Ourselves);
        let mut expected = Vec::new();
        for number in 0..10_000 {
            let line = format!("line {number}\n");
            spill.push(line.as_bytes());
            expected.extend_from_slice(line.as_bytes());
        }
        let full = spill.full_output();
        assert_eq!((full.bytes, full.dropped), (expected.len() as u64, 0));
        assert_eq!(std::fs::read(full.file.unwrap()).unwrap(), expected);
    }

    #[test]
    fn a_file_stops_at_its_limit_and_the_rest_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::new(directory.path(), "default", Owner::Ourselves);
        let chunk = vec![b'x'; 1024 * 1024];
        for _ in 0..65 {
            spill.push(&chunk);
        }
        let full = spill.full_output();
        assert_eq!((full.bytes, full.dropped), (65 * 1024 * 1024, 1024 * 1024));
        assert_eq!(full.file.unwrap().metadata().unwrap().len(), FILE_MAX_BYTES);
    }

    #[test]
    fn old_files_go_and_none_is_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::new(directory.path(), "default", Owner::Ourselves);
        for _ in 0..10 {
            spill.start();
            spill.push(&[b'x'; 2 * KEPT_IN_MEMORY_BYTES]);
        }
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            FILES_KEPT
        );
        drop(spill);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
