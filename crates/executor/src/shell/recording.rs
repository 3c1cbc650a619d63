//! The bytes that one command has written, for any number of readers while it runs.
//!
//! One task appends; readers ask for what lies behind an offset and are woken by what is new, so
//! none of them can hold the command up. Short output is in memory, longer output in the file of
//! `spill`, which is bounded: beyond that bound bytes are counted and dropped.

use std::{
    fs::File,
    io::Write as _,
    os::unix::fs::FileExt as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

/// Below this nothing is ever cut, so nothing needs a file.
pub(super) const KEPT_IN_MEMORY_BYTES: usize = 30_000;

/// What one file may take.
pub(super) const FILE_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The output of one command.
#[derive(Debug)]
pub(crate) struct Recording {
    bytes: Mutex<Recorded>,
    /// Changes with the output.
    grown: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Recorded {
    written: u64,
    memory: Vec<u8>,
    file: Option<File>,
    /// A file was needed, and there is none.
    is_lost: bool,
}

impl Default for Recording {
    fn default() -> Self {
        Self {
            bytes: Mutex::default(),
            grown: watch::Sender::new(()),
        }
    }
}

impl Recording {
    /// How many bytes the command has written.
    pub(crate) fn written(&self) -> u64 {
        self.lock().written
    }

    /// How many bytes are on the disk for it.
    pub(crate) fn stored(&self) -> u64 {
        let recorded = self.lock();
        let is_stored = recorded.file.is_some();
        if is_stored {
            recorded.written.min(FILE_MAX_BYTES)
        } else {
            0
        }
    }

    /// Tells of output that comes from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.grown.subscribe()
    }

    /// The bytes from an offset up to another one, `length_max` at most, and where to go on. What
    /// was not kept is left out.
    pub(crate) fn read(&self, from: u64, end: u64, length_max: usize) -> (Vec<u8>, u64) {
        let recorded = self.lock();
        let end = end.min(recorded.written);
        if from >= end {
            return (Vec::new(), from);
        }
        let wanted = usize::try_from(end - from)
            .unwrap_or(usize::MAX)
            .min(length_max);
        let piece = match &recorded.file {
            Some(file) => {
                let mut piece = vec![0; wanted];
                let length = file.read_at(&mut piece, from).unwrap_or(0);
                piece.truncate(length);
                piece
            }
            None => {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                let rest = recorded.memory.get(from..).unwrap_or_default();
                rest[..rest.len().min(wanted)].to_vec()
            }
        };
        let next = match piece.len() {
            // Beyond the bound, or cut by programs that reach the file.
            0 => end,
            length => from + length as u64,
        };
        (piece, next)
    }

    /// Whether so many more bytes are too much for memory alone.
    pub(super) fn needs_file(&self, more: usize) -> bool {
        let recorded = self.lock();
        let fits = recorded.memory.len() + more <= KEPT_IN_MEMORY_BYTES;
        recorded.file.is_none() && !recorded.is_lost && !fits
    }

    /// Goes on in a file; says whether that works.
    pub(super) fn move_to(&self, mut file: File) -> bool {
        let mut recorded = self.lock();
        let is_written = file.write_all(&recorded.memory).is_ok();
        if is_written {
            recorded.memory = Vec::new();
            recorded.file = Some(file);
        }
        is_written
    }

    /// Takes in what programs wrote; says whether all of it is kept, up to the bound.
    pub(super) fn push(&self, bytes: &[u8]) -> bool {
        let mut recorded = self.lock();
        let is_kept = recorded.push(bytes);
        drop(recorded);
        // Readers subscribe before they look, so no wake-up is lost.
        if self.grown.receiver_count() > 0 {
            self.grown.send_replace(());
        }
        is_kept
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorded {
    fn push(&mut self, bytes: &[u8]) -> bool {
        let before = self.written;
        self.written += bytes.len() as u64;
        let Some(file) = &mut self.file else {
            if !self.is_lost && self.memory.len() + bytes.len() <= KEPT_IN_MEMORY_BYTES {
                self.memory.extend_from_slice(bytes);
                return true;
            }
            self.is_lost = true;
            return false;
        };
        let room = FILE_MAX_BYTES.saturating_sub(before);
        let now = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        if file.write_all(&bytes[..now]).is_err() {
            self.file = None;
            self.is_lost = true;
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_every_byte_from_its_offset_in_memory_and_in_a_file() {
        let recording = Recording::default();
        recording.push(b"first ");
        assert_eq!(recording.read(0, u64::MAX, 3), (b"fir".to_vec(), 3));
        assert_eq!(recording.read(3, u64::MAX, 9), (b"st ".to_vec(), 6));
        assert_eq!(recording.read(6, u64::MAX, 9), (Vec::new(), 6));
        assert!(recording.needs_file(KEPT_IN_MEMORY_BYTES));
        assert!(recording.move_to(tempfile::tempfile().unwrap()));
        recording.push(b"second");
        assert_eq!(recording.read(3, 9, 99), (b"st sec".to_vec(), 9));
        assert_eq!(recording.written(), 12);
    }

    #[test]
    fn what_was_not_kept_is_skipped_and_counted() {
        let recording = Recording::default();
        recording.push(b"kept");
        assert!(!recording.push(&[b'x'; KEPT_IN_MEMORY_BYTES]));
        let written = 4 + KEPT_IN_MEMORY_BYTES as u64;
        assert_eq!(recording.read(0, u64::MAX, 99), (b"kept".to_vec(), 4));
        assert_eq!(recording.read(4, u64::MAX, 99), (Vec::new(), written));
    }

    #[tokio::test]
    async fn new_output_wakes_a_reader() {
        let recording = Recording::default();
        let mut grown = recording.subscribe();
        recording.push(b"x");
        grown.changed().await.unwrap();
        assert_eq!(recording.read(0, u64::MAX, 9), (b"x".to_vec(), 1));
    }
}
