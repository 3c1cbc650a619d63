//! What `undo_edit` brings back: earlier contents of files, on disk, within bounds.
//!
//! One file per entry, named by a hash of the edited path and a number that only grows, so that
//! the names alone tell what to drop first. The content carries its own hash: an entry that a
//! crash or somebody else damaged is noticed and never written into a user's file.

use std::{
    fs,
    io::{self, IoSlice, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use sha2::{Digest, Sha256};

use super::history_index::{EntryId, Index, SUFFIX};

/// How many edits of one file can be undone.
const ENTRIES_PER_FILE_MAX: usize = 10;
/// How much of the disk all entries may take; the oldest go first.
const BYTES_MAX: u64 = 256 << 20;
/// How many entries there may be, since each costs an inode and a line in the index.
const ENTRIES_MAX: usize = 10_000;

const HASH_BYTES: usize = 32;

/// The undo history of all files.
#[derive(Debug)]
pub(super) struct History {
    directory: PathBuf,
    /// Read from the directory when it is first needed.
    index: Mutex<Option<Index>>,
}

/// What the history has to say about a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recalled {
    Nothing,
    /// There was an entry, it could not be trusted, and it is gone.
    Damaged,
    Entry(Entry),
}

/// An earlier content.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) content: Vec<u8>,
    pub(super) id: EntryId,
}

impl History {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            index: Mutex::new(None),
        }
    }

    /// Remembers a content. A history that cannot be written costs the undo, not the edit.
    pub(super) fn push(&self, path: &str, content: &[u8]) {
        let mut index = self.lock();
        let index = index.get_or_insert_with(|| Index::load(&self.directory));
        let id = match self.store(index, key(path), content) {
            Ok(id) => id,
            Err(error) => {
                let directory = self.directory.display();
                tracing::warn!(%error, path, %directory, "edit cannot be undone");
                return;
            }
        };
        let full = |index: &Index| index.count_of(&id.key) > ENTRIES_PER_FILE_MAX;
        index.insert(id.clone(), entry_bytes(content));
        while full(index)
            && let Some(oldest) = index.oldest_of(&id.key)
        {
            self.remove(index, &oldest);
        }
        while (index.bytes() > BYTES_MAX || index.count() > ENTRIES_MAX)
            && let Some(oldest) = index.oldest()
        {
            self.remove(index, &oldest);
        }
    }

    /// The newest entry of a file; it stays until it is forgotten.
    pub(super) fn last(&self, path: &str) -> Recalled {
        let mut index = self.lock();
        let index = index.get_or_insert_with(|| Index::load(&self.directory));
        let Some(id) = index.newest_of(&key(path)) else {
            return Recalled::Nothing;
        };
        match self.recall(&id) {
            Ok(content) => Recalled::Entry(Entry { content, id }),
            Err(error) => {
                tracing::warn!(%error, path, "damaged undo entry is dropped");
                self.remove(index, &id);
                Recalled::Damaged
            }
        }
    }

    /// Drops an entry that was brought back.
    pub(super) fn forget(&self, id: &EntryId) {
        if let Some(index) = self.lock().as_mut() {
            self.remove(index, id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Index>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an entry under the next number that is free.
    fn store(&self, index: &mut Index, key: String, content: &[u8]) -> io::Result<EntryId> {
        let mut id = EntryId {
            number: index.next(),
            key,
        };
        let file = match self.reuse(index, &id, content) {
            Some(file) => file,
            None => match self.create(&id) {
                // Another process works with this directory: see what it did.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    *index = Index::load(&self.directory);
                    id.number = index.next();
                    self.create(&id)?
                }
                answer => answer?,
            },
        };
        match write_entry(file, id.number, content) {
            Ok(()) => Ok(id),
            Err(error) => {
                // What was begun is worth nothing, and the disk may be full.
                let _ = fs::remove_file(self.entry_path(&id));
                Err(error)
            }
        }
    }

    fn create(&self, id: &EntryId) -> io::Result<fs::File> {
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        match options.open(self.entry_path(id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut directory = fs::DirBuilder::new();
                directory.recursive(true).mode(0o700);
                directory.create(&self.directory)?;
                options.open(self.entry_path(id))
            }
            answer => answer,
        }
    }

    /// The file of the oldest entry, renamed, when the new one takes its place anyway: making
    /// and removing a file costs far more. Until it is overwritten its hash does not fit.
    fn reuse(&self, index: &mut Index, id: &EntryId, content: &[u8]) -> Option<fs::File> {
        let oldest = index
            .oldest_of(&id.key)
            .filter(|_| index.count_of(&id.key) == ENTRIES_PER_FILE_MAX)?;
        let (from, to) = (self.entry_path(&oldest), self.entry_path(id));
        let file = fs::OpenOptions::new()
            .write(true)
            .custom_flags(NO_SURPRISES)
            .open(&from)
            .ok()?;
        renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE).ok()?;
        let bytes = index.remove(&oldest)?;
        if bytes > entry_bytes(content) {
            file.set_len(entry_bytes(content)).ok()?;
        }
        Some(file)
    }

    fn recall(&self, id: &EntryId) -> io::Result<Vec<u8>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(NO_SURPRISES)
            .open(self.entry_path(id))?;
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes)?;
        let (hash, content) = bytes
            .split_at_checked(HASH_BYTES)
            .ok_or_else(|| io::Error::other("entry is cut short"))?;
        if entry_hash(id.number, content) != hash {
            return Err(io::Error::other("entry does not match its hash"));
        }
        Ok(content.to_owned())
    }

    fn remove(&self, index: &mut Index, id: &EntryId) {
        if index.remove(id).is_none() {
            return;
        }
        if let Err(error) = fs::remove_file(self.entry_path(id)) {
            tracing::warn!(%error, number = id.number, "undo entry stays behind");
        }
    }

    fn entry_path(&self, id: &EntryId) -> PathBuf {
        self.directory
            .join(format!("{}-{:016x}{SUFFIX}", id.key, id.number))
    }
}

/// Opening an entry neither follows a link nor waits for a pipe.
const NO_SURPRISES: i32 = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .bits()
    .cast_signed();

fn write_entry(mut file: fs::File, number: u64, content: &[u8]) -> io::Result<()> {
    let hash = entry_hash(number, content);
    let written = file.write_vectored(&[IoSlice::new(&hash), IoSlice::new(content)])?;
    match written.checked_sub(HASH_BYTES) {
        Some(written) => file.write_all(&content[written..]),
        None => {
            file.write_all(&hash[written..])?;
            file.write_all(content)
        }
    }
}

/// The number is part of it: an old content in a new entry's file must not pass for that entry.
fn entry_hash(number: u64, content: &[u8]) -> [u8; HASH_BYTES] {
    let mut hash = Sha256::new();
    hash.update(number.to_le_bytes());
    hash.update(content);
    hash.finalize().into()
}

fn entry_bytes(content: &[u8]) -> u64 {
    (HASH_BYTES + content.len()) as u64
}

fn key(path: &str) -> String {
    Sha256::digest(path.as_bytes())
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
