//! Names inside a layer, and which of them are accepted (FA-2, FA-9).

use super::failure::{Refusal, UnpackError};

/// Longest path, the kernel's own limit without the closing null byte.
const PATH_BYTES_MAX: usize = 4_095;
/// Longest name of one part.
const PART_BYTES_MAX: usize = 255;
/// Deepest nesting. Every level holds a descriptor while something below it is written.
const DEPTH_MAX: usize = 128;

/// A path of plain names from the root of the image; empty for the root itself.
///
/// An absolute name is one from that root, because some builders write them so. It cannot mean
/// anything else here: a path is never handed to the kernel as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryPath {
    parts: Vec<Vec<u8>>,
}

impl EntryPath {
    pub(super) fn parse(name: &[u8]) -> Result<Self, UnpackError> {
        let refuse = |why| Err(UnpackError::refused(name, why));
        if name.is_empty() || name.contains(&0) || name.len() > PATH_BYTES_MAX {
            return refuse(Refusal::BadName);
        }
        let mut parts = Vec::new();
        for part in name.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => return refuse(Refusal::Climbs),
                part if part.len() > PART_BYTES_MAX => return refuse(Refusal::BadName),
                _ if parts.len() == DEPTH_MAX => return refuse(Refusal::TooDeep),
                part => parts.push(part.to_vec()),
            }
        }
        Ok(Self { parts })
    }

    /// A path of names that came from another one.
    pub(super) fn of(parts: &[Vec<u8>]) -> Self {
        let parts = parts.to_vec();
        Self { parts }
    }

    /// The last name, and those of the directories above it; `None` for the root.
    pub(super) fn split(&self) -> Option<(&[u8], &[Vec<u8>])> {
        let (name, above) = self.parts.split_last()?;
        Some((name, above))
    }

    /// All names, from the root on.
    pub(super) fn parts(&self) -> &[Vec<u8>] {
        &self.parts
    }

    /// As it is shown in errors.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self.parts.as_slice() {
            [] => b"/".to_vec(),
            parts => parts.join(&b'/'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &[u8], expected: &[u8]) {
        assert_eq!(EntryPath::parse(name).unwrap().to_bytes(), expected);
    }

    #[track_caller]
    fn check_refused(name: &[u8], expected: Refusal) {
        match EntryPath::parse(name) {
            Err(UnpackError::Refused { why, .. }) => assert_eq!(why, expected),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_spelling_of_a_path_starts_at_the_root_of_the_image_fa_9() {
        check(b"a/b", b"a/b");
        check(b"./a//b/", b"a/b");
        check(b"/a/./b", b"a/b");
        check(b"//etc/passwd", b"etc/passwd");
        check(b"./", b"/");
        check(b"a/\xff..", b"a/\xff..");
    }

    #[test]
    fn paths_that_climb_or_cannot_exist_are_refused_fa_9() {
        check_refused(b"..", Refusal::Climbs);
        check_refused(b"a/../../b", Refusal::Climbs);
        check_refused(b"/..", Refusal::Climbs);
        check_refused(b"", Refusal::BadName);
        check_refused(b"a\0b", Refusal::BadName);
    }

    #[test]
    fn names_and_depth_are_bounded_fa_2() {
        check(&[b'a'; PART_BYTES_MAX], &[b'a'; PART_BYTES_MAX]);
        check_refused(&[b'a'; PART_BYTES_MAX + 1], Refusal::BadName);
        let deep = b"a/".repeat(DEPTH_MAX);
        assert_eq!(EntryPath::parse(&deep).unwrap().parts().len(), DEPTH_MAX);
        check_refused(&b"a/".repeat(DEPTH_MAX + 1), Refusal::TooDeep);
        check_refused(&b"a/".repeat(PATH_BYTES_MAX), Refusal::BadName);
    }
}
