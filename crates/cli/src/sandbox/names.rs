//! Names for sandboxes that the user has not named: two words that can be typed, and a few characters
//! that keep two of them apart.
//!
//! A name is no secret. What opens a sandbox is its key, which is kept in its directory.

use std::{collections::hash_map::RandomState, hash::BuildHasher as _};

use zareba_runtime::SandboxId;

/// As many as five bits can tell apart.
const ADJECTIVES: [&str; 32] = [
    "amber", "brave", "brisk", "calm", "clever", "coral", "crisp", "eager", "early", "fair",
    "fleet", "gentle", "golden", "green", "happy", "hardy", "ivory", "jolly", "keen", "lively",
    "lucky", "mellow", "merry", "neat", "noble", "plain", "proud", "quick", "ready", "sunny",
    "swift", "warm",
];
const NOUNS: [&str; 32] = [
    "acacia", "aspen", "badger", "beaver", "birch", "cedar", "crane", "dune", "falcon", "fern",
    "finch", "heron", "ibex", "juniper", "kestrel", "lark", "maple", "marten", "meadow", "moose",
    "olive", "osprey", "otter", "pine", "plover", "raven", "robin", "sparrow", "stork", "tern",
    "willow", "wren",
];

/// Letters and digits that are not taken for one another.
const CHARACTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A new name, such as `brave-otter-3f7k`: one of 2^30.
pub(super) fn new_name() -> Option<SandboxId> {
    // Keyed by the system's random numbers, anew for each name.
    name_of(RandomState::new().hash_one(std::process::id()))
}

fn name_of(mut number: u64) -> Option<SandboxId> {
    let mut next = || {
        let index = (number % 32) as usize;
        number /= 32;
        index
    };
    let (adjective, noun) = (ADJECTIVES[next()], NOUNS[next()]);
    let mut name = format!("{adjective}-{noun}-");
    for _ in 0..4 {
        name.push(char::from(CHARACTERS[next()]));
    }
    SandboxId::new(name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_name_is_two_words_and_four_characters() {
        assert_eq!(name_of(0).unwrap().as_str(), "amber-acacia-0000");
        assert_eq!(name_of(u64::MAX).unwrap().as_str(), "warm-wren-zzzz");
        assert_eq!(name_of(1 + (22 << 5)).unwrap().as_str(), "brave-otter-0000");
    }

    #[test]
    fn words_of_a_list_differ_in_their_first_three_letters() {
        for words in [ADJECTIVES, NOUNS] {
            let begins: HashSet<&str> = words.iter().map(|word| &word[..3]).collect();
            assert_eq!(begins.len(), words.len());
        }
    }

    #[test]
    fn names_differ() {
        let names: HashSet<_> = (0..64).map(|_| new_name().unwrap()).collect();
        assert_eq!(names.len(), 64);
    }
}
