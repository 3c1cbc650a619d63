//! Which entries there are, told from the names in the directory alone.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::Path,
};

/// What the name of an entry's file ends with.
pub(super) const SUFFIX: &str = ".undo";

/// An entry. The number comes first, thus the oldest entry does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryId {
    pub(super) number: u64,
    /// Which file it is of.
    pub(super) key: String,
}

/// All entries, by age and by file.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// How many bytes each entry takes.
    entries: BTreeMap<EntryId, u64>,
    numbers: HashMap<String, BTreeSet<u64>>,
    bytes: u64,
    next: u64,
}

impl Index {
    /// Reads the names in a directory; a missing one is an empty history.
    pub(super) fn load(directory: &Path) -> Self {
        let mut index = Self::default();
        let Ok(entries) = fs::read_dir(directory) else {
            return index;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if let Some(id) = name.to_str().and_then(parse_name)
                && let Ok(metadata) = entry.metadata()
            {
                index.insert(id, metadata.len());
            }
        }
        index
    }

    /// The number of the next entry.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// How many bytes all entries take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn count_of(&self, key: &str) -> usize {
        self.numbers.get(key).map_or(0, BTreeSet::len)
    }

    pub(super) fn oldest(&self) -> Option<EntryId> {
        self.entries.first_key_value().map(|(id, _)| id.clone())
    }

    pub(super) fn oldest_of(&self, key: &str) -> Option<EntryId> {
        let number = self.numbers.get(key)?.first()?;
        Some(EntryId {
            number: *number,
            key: key.to_owned(),
        })
    }

    pub(super) fn newest_of(&self, key: &str) -> Option<EntryId> {
        let number = self.numbers.get(key)?.last()?;
        Some(EntryId {
            number: *number,
            key: key.to_owned(),
        })
    }

    pub(super) fn insert(&mut self, id: EntryId, bytes: u64) {
        self.next = self.next.max(id.number + 1);
        self.bytes += bytes;
        self.numbers
            .entry(id.key.clone())
            .or_default()
            .insert(id.number);
        self.entries.insert(id, bytes);
    }

    /// Forgets an entry; the bytes that it took.
    pub(super) fn remove(&mut self, id: &EntryId) -> Option<u64> {
        let bytes = self.entries.remove(id)?;
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(numbers) = self.numbers.get_mut(&id.key) {
            numbers.remove(&id.number);
            if numbers.is_empty() {
                self.numbers.remove(&id.key);
            }
        }
        Some(bytes)
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
