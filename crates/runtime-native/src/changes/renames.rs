//! Added files that hold what a deleted file held.

use std::collections::HashMap;

use super::{Layers, tree::Node, walk::Change};

/// Files that are hashed on either side, and their size.
const HASHED_MAX: usize = 1000;
const HASHED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What files must have in common before their content is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Likeness {
    bytes: u64,
    is_executable: bool,
}

/// A deleted file.
struct Deleted {
    /// Its place among the changes.
    index: usize,
    hash: [u8; 32],
}

/// Makes one change of a deleted file and an added one that holds the same.
pub(super) fn join(layers: &Layers, changes: &mut Vec<Change>) {
    let mut deleted = deleted(layers, changes);
    let mut pairs = Vec::new();
    let added = changes.iter().enumerate().filter_map(|(index, change)| {
        let likeness = likeness(change.after.as_ref())?;
        let is_candidate = change.before.is_none() && deleted.contains_key(&likeness);
        is_candidate.then_some((index, likeness))
    });
    let added: Vec<_> = added.take(HASHED_MAX).collect();
    for (index, likeness) in added {
        let Some(change) = changes.get(index) else {
            break;
        };
        // What cannot be read stays an addition.
        let Ok(hash) = layers.upper.hash(&change.path) else {
            continue;
        };
        let alike = deleted.entry(likeness).or_default();
        if let Some(position) = alike.iter().position(|file| file.hash == hash) {
            pairs.push((alike.swap_remove(position).index, index));
        }
    }
    for (from, to) in &pairs {
        let earlier = changes.get_mut(*from).map(|change| {
            // Without either state it is no change any more.
            let before = change.before.take();
            (std::mem::take(&mut change.path), before)
        });
        if let (Some((path, before)), Some(change)) = (earlier, changes.get_mut(*to)) {
            change.before = before;
            change.from = Some(path);
        }
    }
    changes.retain(|change| change.before.is_some() || change.after.is_some());
}

/// The deleted files that an added one could be, by what they must have in common.
fn deleted(layers: &Layers, changes: &[Change]) -> HashMap<Likeness, Vec<Deleted>> {
    let mut found: HashMap<Likeness, Vec<Deleted>> = HashMap::new();
    let Some(lower) = &layers.lower else {
        return found;
    };
    let added = changes.iter().filter(|change| change.before.is_none());
    let added: Vec<_> = added
        .filter_map(|change| likeness(change.after.as_ref()))
        .take(HASHED_MAX)
        .collect();
    let candidates = changes.iter().enumerate().filter_map(|(index, change)| {
        let likeness = likeness(change.before.as_ref())?;
        let is_candidate = change.after.is_none() && added.contains(&likeness);
        is_candidate.then_some((index, &change.path, likeness))
    });
    for (index, path, likeness) in candidates.take(HASHED_MAX) {
        if let Ok(hash) = lower.hash(path) {
            let alike = found.entry(likeness).or_default();
            alike.push(Deleted { index, hash });
        }
    }
    found
}

fn likeness(node: Option<&Node>) -> Option<Likeness> {
    match node {
        Some(Node::File {
            bytes,
            is_executable,
        }) if (1..=HASHED_BYTES_MAX).contains(bytes) => Some(Likeness {
            bytes: *bytes,
            is_executable: *is_executable,
        }),
        _ => None,
    }
}
