//! Keeps secrets out of what is stored and shown.
//!
//! A [`Mask`] knows the values of a session's secrets in all the forms in which programs print
//! them (`forms`), and puts `<secret_hidden>` where it sees one. [`StreamMask`] does the same to
//! bytes that come piece by piece. It is no wall: whoever can run commands can write a secret in a
//! form of their own.

mod forms;
mod stream;

use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use serde_json::{Map, Value};
pub use stream::StreamMask;

use crate::Secret;

/// What is put in the place of a secret.
pub const HIDDEN: &str = "<secret_hidden>";

/// The shortest value that is looked for: shorter ones are in every text.
const VALUE_BYTES_MIN: usize = 4;

/// Finds the secrets of a session. Cloning it is cheap.
#[derive(Clone, Default)]
pub struct Mask {
    /// `None` when there is nothing to hide.
    finder: Option<Arc<Finder>>,
}

struct Finder {
    automaton: AhoCorasick,
    /// All that is looked for, sorted.
    patterns: Vec<Vec<u8>>,
    longest: usize,
}

/// How a text came out of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Masked {
    /// As it went in.
    Same,
    /// Something was hidden.
    Changed,
}

impl Mask {
    /// Hides these values. Those of fewer than four bytes are not hidden.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut patterns: Vec<Vec<u8>> = secrets
            .into_iter()
            .filter(|secret| secret.0.len() >= VALUE_BYTES_MIN)
            .flat_map(|secret| forms::of(&secret.0))
            // What the replacement shows anyway cannot be hidden by it.
            .filter(|form| !contains(HIDDEN.as_bytes(), form))
            .collect();
        patterns.sort_unstable();
        patterns.dedup();
        let longest = patterns.iter().map(Vec::len).max().unwrap_or_default();
        // It can fail only for more than four billion states.
        let automaton = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&patterns);
        let finder = automaton.ok().filter(|_| longest > 0).map(|automaton| {
            Arc::new(Finder {
                automaton,
                patterns,
                longest,
            })
        });
        Self { finder }
    }

    /// There is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// The text with every secret in it hidden.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(finder) = &self.finder else {
            return text.into();
        };
        let found = finder.find(text.as_bytes());
        if found.is_empty() {
            return text.into();
        }
        let mut masked = String::with_capacity(text.len());
        let mut end = 0;
        for place in found {
            // A form is text, so that its ends are ends of characters.
            masked.push_str(text.get(end..place.start).unwrap_or_default());
            masked.push_str(HIDDEN);
            end = place.end;
        }
        masked.push_str(text.get(end..).unwrap_or_default());
        masked.into()
    }

    /// Hides secrets in every string of a JSON object, names of fields included.
    pub(crate) fn object(&self, object: &mut Map<String, Value>) -> Masked {
        if self.is_empty() {
            return Masked::Same;
        }
        let mut outcome = Masked::Same;
        let names: Vec<String> = object.keys().cloned().collect();
        if names.iter().any(|name| self.hides(name)) {
            outcome = Masked::Changed;
            *object = std::mem::take(object)
                .into_iter()
                .map(|(name, value)| (self.text(&name).into_owned(), value))
                .collect();
        }
        for value in object.values_mut() {
            if self.value(value) == Masked::Changed {
                outcome = Masked::Changed;
            }
        }
        outcome
    }

    /// Whether a text has a secret in it.
    pub(crate) fn hides(&self, text: &str) -> bool {
        self.finder
            .as_ref()
            .is_some_and(|finder| finder.automaton.is_match(text))
    }

    /// Hides secrets in a stream of bytes.
    pub fn stream(&self) -> StreamMask {
        StreamMask::new(self.finder.clone())
    }

    /// The depth of JSON that comes to us is bounded by its parser, and so is this recursion.
    fn value(&self, value: &mut Value) -> Masked {
        match value {
            Value::String(text) => match self.text(text) {
                Cow::Borrowed(_) => Masked::Same,
                Cow::Owned(masked) => {
                    *text = masked;
                    Masked::Changed
                }
            },
            Value::Array(values) => values.iter_mut().fold(Masked::Same, |outcome, value| {
                match (self.value(value), outcome) {
                    (Masked::Same, Masked::Same) => Masked::Same,
                    _ => Masked::Changed,
                }
            }),
            Value::Object(object) => self.object(object),
            Value::Null | Value::Bool(_) | Value::Number(_) => Masked::Same,
        }
    }
}

/// How many, never which.
impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = self.finder.as_ref().map_or(0, |it| it.patterns.len());
        formatter
            .debug_struct("Mask")
            .field("forms", &forms)
            .finish()
    }
}

impl Finder {
    /// Where secrets are, in order; those that overlap are one place.
    fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = self
            .automaton
            .find_overlapping_iter(bytes)
            .map(|found| found.range())
            .collect();
        places.sort_unstable_by_key(|place| place.start);
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(places.len());
        for place in places {
            match merged.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => merged.push(place),
            }
        }
        merged
    }

    /// Where the longest end of `bytes` begins that could be the beginning of a secret.
    fn begun(&self, bytes: &[u8]) -> usize {
        let earliest = bytes.len().saturating_sub(self.longest - 1);
        (earliest..bytes.len())
            .find(|start| self.is_beginning(&bytes[*start..]))
            .unwrap_or(bytes.len())
    }

    fn is_beginning(&self, end: &[u8]) -> bool {
        let next = self.patterns.partition_point(|pattern| &pattern[..] < end);
        // Sorted, so that all that begin with it come right behind it; itself is no beginning.
        self.patterns[next..]
            .iter()
            .take_while(|pattern| pattern.starts_with(end))
            .any(|pattern| pattern.len() > end.len())
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;
