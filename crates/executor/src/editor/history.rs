//! What `undo_edit` brings back: earlier contents of files, on disk, within bounds.
//!
//! One file per entry, named by a hash of the edited path and a number that only grows, so that
//! the names alone tell what to drop first. The content carries its own hash: an entry that a
//! crash or somebody else damaged is noticed and never written into a user's file.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

/// How many edits of one file can be undone.
const ENTRIES_PER_FILE_MAX: usize = 10;
/// How much of the disk all entries may take; the oldest go first.
const BYTES_MAX: u64 = 256 << 20;
/// How many entries there may be, since each costs an inode and a line in the index.
const ENTRIES_MAX: usize = 10_000;

const SUFFIX: &str = ".undo";
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

/// The number comes first, thus the oldest entry does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryId {
    number: u64,
    key: String,
}

#[derive(Debug, Default)]
struct Index {
    /// How many bytes each entry takes.
    entries: BTreeMap<EntryId, u64>,
    bytes: u64,
    next: u64,
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
        let bytes = (HASH_BYTES + content.len()) as u64;
        index.next = id.number + 1;
        index.bytes += bytes;
        let of_file = || index.entries.keys().filter(|other| other.key == id.key);
        let oldest = of_file()
            .next()
            .filter(|_| of_file().count() >= ENTRIES_PER_FILE_MAX);
        let oldest = oldest.cloned();
        index.entries.insert(id, bytes);
        if let Some(oldest) = oldest {
            self.remove(index, &oldest);
        }
        while index.bytes > BYTES_MAX || index.entries.len() > ENTRIES_MAX {
            let Some((oldest, _)) = index.entries.first_key_value() else {
                break;
            };
            self.remove(index, &oldest.clone());
        }
    }

    /// The newest entry of a file; it stays until it is forgotten.
    pub(super) fn last(&self, path: &str) -> Recalled {
        let mut index = self.lock();
        let index = index.get_or_insert_with(|| Index::load(&self.directory));
        let key = key(path);
        let newest = index.entries.keys().rev().find(|id| id.key == key);
        let Some(id) = newest.cloned() else {
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
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        let mut id = EntryId {
            number: index.next,
            key,
        };
        let file = match self.create(&id) {
            // Another process works with this directory: see what it did.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                *index = Index::load(&self.directory);
                id.number = index.next;
                self.create(&id)?
            }
            answer => answer?,
        };
        match write_entry(file, content) {
            Ok(()) => Ok(id),
            Err(error) => {
                // What was begun is worth nothing, and the disk may be full.
                let _ = fs::remove_file(self.entry_path(&id));
                Err(error)
            }
        }
    }

    fn create(&self, id: &EntryId) -> io::Result<fs::File> {
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.entry_path(id))
    }

    fn recall(&self, id: &EntryId) -> io::Result<Vec<u8>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(self.entry_path(id))?;
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes)?;
        let (hash, content) = bytes
            .split_at_checked(HASH_BYTES)
            .ok_or_else(|| io::Error::other("entry is cut short"))?;
        if Sha256::digest(content).as_slice() != hash {
            return Err(io::Error::other("entry does not match its hash"));
        }
        Ok(content.to_owned())
    }

    fn remove(&self, index: &mut Index, id: &EntryId) {
        let Some(bytes) = index.entries.remove(id) else {
            return;
        };
        index.bytes = index.bytes.saturating_sub(bytes);
        if let Err(error) = fs::remove_file(self.entry_path(id)) {
            tracing::warn!(%error, number = id.number, "undo entry stays behind");
        }
    }

    fn entry_path(&self, id: &EntryId) -> PathBuf {
        self.directory
            .join(format!("{}-{:016x}{SUFFIX}", id.key, id.number))
    }
}

fn write_entry(mut file: fs::File, content: &[u8]) -> io::Result<()> {
    file.write_all(&Sha256::digest(content))?;
    file.write_all(content)
}

impl Index {
    /// Reads the names in a directory; a missing one is an empty history.
    fn load(directory: &Path) -> Self {
        let mut index = Self::default();
        let Ok(entries) = fs::read_dir(directory) else {
            return index;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(parse_name) else {
                continue;
            };
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            index.next = index.next.max(id.number + 1);
            index.bytes += metadata.len();
            index.entries.insert(id, metadata.len());
        }
        index
    }
}

fn parse_name(name: &str) -> Option<EntryId> {
    let (key, number) = name.strip_suffix(SUFFIX)?.split_once('-')?;
    // The largest number is left out, because there is none to follow it.
    let number = u64::from_str_radix(number, 16)
        .ok()
        .filter(|number| *number < u64::MAX)?;
    Some(EntryId {
        number,
        key: key.to_owned(),
    })
}

fn key(path: &str) -> String {
    Sha256::digest(path.as_bytes())
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn popped(history: &History, path: &str) -> Option<Vec<u8>> {
        match history.last(path) {
            Recalled::Entry(entry) => {
                history.forget(&entry.id);
                Some(entry.content)
            }
            Recalled::Nothing => None,
            Recalled::Damaged => panic!("damaged"),
        }
    }

    #[test]
    fn the_last_ten_entries_come_back_newest_first() {
        let directory = tempfile::tempdir().unwrap();
        let history = History::new(directory.path().join("undo"));
        for number in 0..13 {
            history.push("/f", format!("{number}").as_bytes());
            history.push("/other", b"x");
        }
        let back: Vec<String> = std::iter::from_fn(|| popped(&history, "/f"))
            .map(|content| String::from_utf8(content).unwrap())
            .collect();
        assert_eq!(back, ["12", "11", "10", "9", "8", "7", "6", "5", "4", "3"]);
        assert_eq!(
            fs::read_dir(directory.path().join("undo")).unwrap().count(),
            10
        );
    }

    #[test]
    fn a_new_process_finds_what_the_old_one_kept() {
        let directory = tempfile::tempdir().unwrap();
        let history = History::new(directory.path().to_owned());
        history.push("/f", b"one");
        history.push("/f", b"two");
        let history = History::new(directory.path().to_owned());
        assert_eq!(popped(&history, "/f"), Some(b"two".to_vec()));
        history.push("/f", b"three");
        assert_eq!(popped(&history, "/f"), Some(b"three".to_vec()));
        assert_eq!(popped(&history, "/f"), Some(b"one".to_vec()));
        assert_eq!(history.last("/f"), Recalled::Nothing);
    }

    #[test]
    fn two_processes_with_one_directory_do_not_overwrite_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let one = History::new(directory.path().to_owned());
        let other = History::new(directory.path().to_owned());
        one.push("/f", b"first");
        other.push("/f", b"second");
        one.push("/f", b"third");
        let after = History::new(directory.path().to_owned());
        assert_eq!(popped(&after, "/f"), Some(b"third".to_vec()));
        assert_eq!(popped(&after, "/f"), Some(b"second".to_vec()));
        assert_eq!(popped(&after, "/f"), Some(b"first".to_vec()));
    }

    #[test]
    fn damaged_and_foreign_files_are_never_brought_back() {
        let directory = tempfile::tempdir().unwrap();
        let history = History::new(directory.path().to_owned());
        history.push("/f", b"old");
        history.push("/f", b"new");
        fs::write(directory.path().join("notes.txt"), "foreign").unwrap();
        fs::write(directory.path().join("x-ffffffffffffffff.undo"), "foreign").unwrap();
        fs::write(
            history.entry_path(&EntryId {
                number: 1,
                key: key("/f"),
            }),
            "nonsense",
        )
        .unwrap();
        let history = History::new(directory.path().to_owned());
        assert_eq!(history.last("/f"), Recalled::Damaged);
        assert_eq!(popped(&history, "/f"), Some(b"old".to_vec()));
        assert_eq!(history.last("/f"), Recalled::Nothing);
    }

    #[test]
    fn a_history_that_cannot_be_written_is_an_empty_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let history = History::new(file);
        history.push("/f", b"x");
        assert_eq!(history.last("/f"), Recalled::Nothing);
    }
}
