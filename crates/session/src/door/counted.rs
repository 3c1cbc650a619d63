//! Deeds that only look: equal ones of a short while become one record with a count.
//!
//! A client that polls a directory ten times a second would otherwise fill the log of its session.
//! The price is that these records come up to a second late, and that the last of them are lost
//! with a server that is killed.

use std::{collections::BTreeMap, mem};

use serde_json::{Map, Value, json};

/// Different deeds of one while that get a record each; more are only counted.
pub(super) const COUNTED_MAX: usize = 256;

/// What was counted since the last records.
#[derive(Debug, Default)]
pub(super) struct Counted {
    seen: BTreeMap<String, Tally>,
    omitted: u64,
}

#[derive(Debug)]
struct Tally {
    entry: Map<String, Value>,
    count: u64,
    bytes: u64,
}

impl Counted {
    /// Counts one, and says whether it is the first of its while.
    pub(super) fn add(&mut self, entry: Map<String, Value>, bytes: u64) -> bool {
        let is_first = self.seen.is_empty() && self.omitted == 0;
        let name = serde_json::to_string(&entry).unwrap_or_default();
        if let Some(tally) = self.seen.get_mut(&name) {
            tally.count += 1;
            tally.bytes = tally.bytes.saturating_add(bytes);
        } else if self.seen.len() < COUNTED_MAX {
            let tally = Tally {
                entry,
                count: 1,
                bytes,
            };
            self.seen.insert(name, tally);
        } else {
            self.omitted += 1;
        }
        is_first
    }

    /// The records of this while; the next one begins.
    pub(super) fn take(&mut self) -> Vec<Map<String, Value>> {
        let Self { seen, omitted } = mem::take(self);
        let mut entries: Vec<_> = seen.into_values().map(Tally::into_entry).collect();
        if omitted > 0 {
            let rest = json!({ "state": "omitted", "count": omitted });
            entries.extend(rest.as_object().cloned());
        }
        entries
    }
}

impl Tally {
    fn into_entry(self) -> Map<String, Value> {
        let mut entry = self.entry;
        entry.insert("count".to_owned(), self.count.into());
        if self.bytes > 0 {
            entry.insert("bytes".to_owned(), self.bytes.into());
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: usize) -> Map<String, Value> {
        json!({ "deed": { "kind": "read", "path": path } })
            .as_object()
            .cloned()
            .unwrap()
    }

    #[test]
    fn equal_deeds_are_one_record_and_too_many_different_ones_are_a_number() {
        let mut counted = Counted::default();
        assert!(counted.add(entry(0), 3));
        assert!(!counted.add(entry(0), 4));
        assert_eq!(
            counted.take(),
            [
                json!({ "deed": { "kind": "read", "path": 0 }, "count": 2, "bytes": 7 })
                    .as_object()
                    .cloned()
                    .unwrap()
            ]
        );
        for path in 0..COUNTED_MAX + 5 {
            assert_eq!(counted.add(entry(path), 0), path == 0);
        }
        let entries = counted.take();
        assert_eq!(entries.len(), COUNTED_MAX + 1);
        assert_eq!(entries[COUNTED_MAX]["count"], 5);
        assert!(counted.take().is_empty());
    }
}
