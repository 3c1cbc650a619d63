//! Names inside an archive, and which of them are accepted.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use zareba_wire::TransferError;

use super::failure::bad_entry;

/// Longest path of an entry, the kernel's own limit without the closing null byte.
pub(super) const PATH_BYTES_MAX: usize = 4_095;
/// Longest name of one component.
const NAME_BYTES_MAX: usize = 255;
/// Deepest nesting. Far above any real tree, far below what breaks other tools.
const DEPTH_MAX: usize = 128;

/// A relative path of plain names: no root, no `.` and no `..`. Empty for the archive's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryPath(PathBuf);

impl EntryPath {
    /// Checks a name from an archive.
    pub(super) fn parse(name: &[u8]) -> Result<Self, TransferError> {
        let refuse = |reason: &str| Err(bad_entry(name, reason));
        if name.is_empty() {
            return refuse("has no name");
        }
        if name.contains(&0) {
            return refuse("has a null byte in its name");
        }
        if name.len() > PATH_BYTES_MAX {
            return Err(bad_entry(
                &name[..64],
                "(and so on) has a name that is too long",
            ));
        }
        let mut path = PathBuf::new();
        let mut depth = 0;
        for component in Path::new(OsStr::from_bytes(name)).components() {
            match component {
                Component::Normal(part) if part.len() > NAME_BYTES_MAX => {
                    return refuse("has a name that is too long");
                }
                Component::Normal(part) => path.push(part),
                Component::CurDir => continue,
                Component::ParentDir => return refuse("climbs with '..'"),
                Component::RootDir | Component::Prefix(_) => return refuse("has an absolute path"),
            }
            depth += 1;
        }
        if depth > DEPTH_MAX {
            return refuse("is nested too deeply");
        }
        Ok(Self(path))
    }

    /// The path itself.
    pub(super) fn as_path(&self) -> &Path {
        &self.0
    }

    /// It is the archive's root, which is there already.
    pub(super) fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// Checks the target of a link at this path: relative, and inside the archive.
    ///
    /// `..` may only come first. Behind a name it could step out of another link's target, which
    /// no look at the text alone can rule out.
    pub(super) fn check_link(&self, target: &[u8]) -> Result<(), TransferError> {
        let refuse = |reason: &str| Err(bad_entry(self.0.as_os_str().as_bytes(), reason));
        if target.is_empty() || target.contains(&0) || target.len() > PATH_BYTES_MAX {
            return refuse("is a link without a valid target");
        }
        let mut room = self.0.components().count().saturating_sub(1);
        let mut named = false;
        for component in Path::new(OsStr::from_bytes(target)).components() {
            match component {
                Component::Normal(_) => named = true,
                Component::CurDir => {}
                Component::ParentDir if named || room == 0 => {
                    return refuse("is a link that may lead out of the destination");
                }
                Component::ParentDir => room -= 1,
                Component::RootDir | Component::Prefix(_) => {
                    return refuse("is a link that may lead out of the destination");
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &[u8]) -> Result<PathBuf, String> {
        EntryPath::parse(name)
            .map(|path| path.0)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn plain_names_are_kept_and_dots_dropped() {
        assert_eq!(
            parsed(b"./a//b c/\xff"),
            Ok(Path::new("a/b c").join(OsStr::from_bytes(b"\xff")))
        );
        assert_eq!(parsed(b"./"), Ok(PathBuf::new()));
        assert_eq!(parsed(b"..a/..."), Ok(PathBuf::from("..a/...")));
    }

    #[test]
    fn names_that_leave_or_lie_are_refused() {
        let cases: [(&[u8], &str); 5] = [
            (b"", "entry '' has no name"),
            (b"/etc/passwd", "entry '/etc/passwd' has an absolute path"),
            (b"a/../../b", "entry 'a/../../b' climbs with '..'"),
            (b"a/..", "entry 'a/..' climbs with '..'"),
            (b"a\0b", "entry 'a\\0b' has a null byte in its name"),
        ];
        for (name, reason) in cases {
            assert_eq!(parsed(name), Err(reason.to_owned()));
        }
    }

    #[test]
    fn lengths_and_depth_are_capped_at_their_limit() {
        let name = |length| vec![b'n'; length];
        assert!(parsed(&name(255)).is_ok());
        assert!(parsed(&name(256)).is_err());
        let deep = |depth| b"d/".repeat(depth);
        assert!(parsed(&deep(128)).is_ok());
        assert!(parsed(&deep(129)).is_err());
        let long = |length| b"abcdefg/".repeat(513)[..length].to_vec();
        assert_eq!(
            parsed(&long(4_096)).unwrap_err().rsplit(") ").next(),
            Some("has a name that is too long")
        );
    }

    #[test]
    fn links_must_stay_inside() {
        let check = |at: &str, target: &str| {
            EntryPath::parse(at.as_bytes())
                .unwrap()
                .check_link(target.as_bytes())
                .is_ok()
        };
        assert!(check("a/b/link", "../../c"));
        assert!(check("link", "a/b"));
        assert!(check("link", "."));
        assert!(!check("a/b/link", "../../../c"));
        assert!(!check("link", ".."));
        assert!(!check("link", "/etc"));
        assert!(!check("link", ""));
        assert!(!check("link", "deep/other/../.."));
    }
}
