//! Finds images by name or id.

use std::path::Path;

use super::{ImageStore, directory, records};
use crate::{Digest, Image, ImageName, digest::is_hex, error::ImageError};

/// How many names an error offers.
const OFFERED_MAX: usize = 3;
/// How many ids an error lists.
const LISTED_MAX: usize = 10;
/// How many letters of an id are shown where a whole one is not needed.
const SHORT_ID: usize = 12;

/// What a text means.
#[derive(Debug)]
pub(super) enum Meaning {
    Name { name: ImageName, id: Digest },
    Id(Digest),
}

impl Meaning {
    pub(super) fn id(&self) -> &Digest {
        match self {
            Self::Name { id, .. } | Self::Id(id) => id,
        }
    }
}

impl ImageStore {
    /// All images, those with names first, by name.
    pub fn list(&self) -> Result<Vec<Image>, ImageError> {
        let _store = directory::lock_shared(&self.root)?;
        let mut images = records::read_images(&self.root)?;
        images.sort_by_cached_key(|image| {
            let name = image.names.first().map(ToString::to_string);
            (name.is_none(), name, image.id.clone())
        });
        Ok(images)
    }

    /// The image of a name, or else the one whose id begins so.
    pub fn find(&self, name_or_id: &str) -> Result<Image, ImageError> {
        let _store = directory::lock_shared(&self.root)?;
        let meaning = resolve(&self.root, name_or_id)?;
        records::read_image(&self.root, meaning.id())
    }
}

/// Names come first, as they are what people give. The caller holds the store.
pub(super) fn resolve(root: &Path, text: &str) -> Result<Meaning, ImageError> {
    let names = records::read_names(root)?;
    if let Ok(name) = ImageName::parse(text)
        && let Some(id) = names.get(&name.canonical())
        && let Ok(id) = Digest::parse(id)
    {
        return Ok(Meaning::Name { name, id });
    }
    let prefix = text.strip_prefix("sha256:").unwrap_or(text);
    let mut fitting = Vec::new();
    if !prefix.is_empty() && is_hex(prefix) {
        fitting = records::read_ids(root)?;
        fitting.retain(|id| id.hex().starts_with(prefix));
    }
    if fitting.len() > 1 {
        let candidates = fitting.iter().take(LISTED_MAX);
        return Err(ImageError::Ambiguous {
            prefix: prefix.to_owned(),
            candidates: candidates.map(short).collect(),
        });
    }
    match fitting.pop() {
        Some(id) => Ok(Meaning::Id(id)),
        None => Err(ImageError::Unknown {
            wanted: text.escape_debug().take(300).collect(),
            nearest: nearest(
                text,
                names.keys().filter_map(|name| ImageName::parse(name).ok()),
            ),
        }),
    }
}

fn short(id: &Digest) -> String {
    id.hex().chars().take(SHORT_ID).collect()
}

/// The names that look most like a text, if any do.
fn nearest(text: &str, names: impl Iterator<Item = ImageName>) -> Vec<String> {
    let text: Vec<char> = text.chars().take(crate::NAME_BYTES_MAX).collect();
    let mut scored: Vec<(usize, String)> = names
        .filter_map(|name| {
            let whole = name.to_string();
            // `debain` should find `debian:12`.
            let bare = whole
                .split_once(':')
                .map_or(whole.as_str(), |(bare, _)| bare);
            let distance = distance(&text, &whole).min(distance(&text, bare));
            (distance <= 2 + text.len() / 4).then_some((distance, whole))
        })
        .collect();
    scored.sort_unstable();
    let offered = scored.into_iter().take(OFFERED_MAX);
    offered.map(|(_, name)| name).collect()
}

/// How many letters must be put in, taken out or changed to get from one text to the other.
fn distance(from: &[char], to: &str) -> usize {
    let mut row: Vec<usize> = (0..=from.len()).collect();
    for (index, right) in to.chars().enumerate() {
        let mut diagonal = index;
        let mut left_cell = index + 1;
        for (cell, left) in row.iter_mut().skip(1).zip(from) {
            let changed = diagonal + usize::from(*left != right);
            diagonal = *cell;
            *cell = changed.min(*cell + 1).min(left_cell + 1);
            left_cell = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_between_two_texts_counts_letters() {
        let check = |from: &str, to: &str, expected| {
            let from: Vec<char> = from.chars().collect();
            assert_eq!(distance(&from, to), expected, "{to}");
        };
        check("", "", 0);
        check("abc", "", 3);
        check("", "abc", 3);
        check("debain", "debian", 2);
        check("kitten", "sitting", 3);
    }

    #[test]
    fn only_names_that_look_alike_are_offered() {
        let names = ["debian:12", "alpine", "python:3.12"];
        let names = || {
            names
                .into_iter()
                .filter_map(|name| ImageName::parse(name).ok())
        };
        assert_eq!(nearest("debain", names()), ["debian:12"]);
        assert_eq!(nearest("pyton:3.12", names()), ["python:3.12"]);
        assert_eq!(nearest("something-else", names()), [""; 0]);
    }
}
