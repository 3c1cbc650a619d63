//! Paths as actions give them: checked, made absolute, and printed as Python's `pathlib` does.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::{
    Failure,
    name::{meant_path, printable, printable_path},
};

/// The kernel's own limit for a path.
pub(crate) const PATH_BYTES_MAX: usize = 4096;
/// The limit of every file system we know for one name.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// An absolute path that may be handed to the kernel.
///
/// `..` is left in, because only the kernel knows what it means after a symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePath {
    path: PathBuf,
    shown: String,
}

impl FilePath {
    /// Checks `path` and joins it to `base` when it is relative.
    pub(crate) fn locate(path: &str, base: &Path) -> Result<Self, Failure> {
        if path.is_empty() {
            return Err(Failure::EmptyPath);
        }
        if path.contains('\0') {
            return Err(Failure::NulInPath);
        }
        let text = tidy(path);
        let given = meant_path(&text);
        if given.iter().any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(Failure::LongName);
        }
        let located = if given.is_absolute() {
            Self {
                path: given,
                shown: text,
            }
        } else if text == "." {
            Self {
                path: base.to_owned(),
                shown: printable_path(base),
            }
        } else {
            Self {
                path: base.join(given),
                shown: below(&printable_path(base), &text),
            }
        };
        if located.path.as_os_str().len() > PATH_BYTES_MAX {
            return Err(Failure::LongPath);
        }
        Ok(located)
    }

    /// An entry of this directory.
    pub(crate) fn child(&self, name: &OsStr) -> Self {
        Self {
            path: self.path.join(name),
            shown: below(&self.shown, &printable(name)),
        }
    }

    pub(crate) fn as_path(&self) -> &Path {
        &self.path
    }

    /// The path as observations name it.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }
}

fn below(directory: &str, name: &str) -> String {
    let slash = if directory.ends_with('/') { "" } else { "/" };
    format!("{directory}{slash}{name}")
}

/// What `str(pathlib.Path(path))` gives: no empty and no `.` components, `..` kept.
pub(crate) fn tidy(path: &str) -> String {
    let slashes = path.bytes().take_while(|byte| *byte == b'/').count();
    // POSIX lets exactly two leading slashes mean something else, so `pathlib` keeps them.
    let root = match slashes {
        0 => "",
        2 => "//",
        _ => "/",
    };
    let names: Vec<&str> = path
        .split('/')
        .filter(|name| !name.is_empty() && *name != ".")
        .collect();
    if root.is_empty() && names.is_empty() {
        return ".".to_owned();
    }
    format!("{root}{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn paths_are_printed_as_pathlib_prints_them() {
        let check = |path: &str, expected: &str| assert_eq!(tidy(path), expected, "{path}");
        check("/a/b/", "/a/b");
        check("/a//b/./c", "/a/b/c");
        check("/a/../b", "/a/../b");
        check("//a", "//a");
        check("///a", "/a");
        check("/", "/");
        check("", ".");
        check("./x", "x");
        check(".", ".");
    }

    #[test]
    fn relative_paths_are_joined_and_absolute_ones_are_not() {
        let check = |path: &str, expected: &str| {
            let located = FilePath::locate(path, Path::new("/work dir")).unwrap();
            assert_eq!(
                (located.shown(), located.as_path()),
                (expected, Path::new(expected))
            );
        };
        check("hello.sh", "/work dir/hello.sh");
        check("./a/../b", "/work dir/a/../b");
        check(".", "/work dir");
        check("/etc/x", "/etc/x");
    }

    #[test]
    fn paths_that_the_kernel_would_not_take_are_refused() {
        let check = |path: &str, expected: Failure| {
            assert_eq!(FilePath::locate(path, Path::new("/w")), Err(expected));
        };
        check("", Failure::EmptyPath);
        check("/a\0b", Failure::NulInPath);
        check(&"n".repeat(256), Failure::LongName);
        check(&"/name".repeat(820), Failure::LongPath);
        assert!(FilePath::locate(&"n".repeat(255), Path::new("/w")).is_ok());
    }

    #[test]
    fn escaped_names_are_meant_and_their_own_length_counts() {
        let name = "\\xff".repeat(255);
        let located = FilePath::locate(&name, Path::new("/w")).unwrap();
        assert_eq!(located.as_path().as_os_str().len(), "/w/".len() + 255);
        assert_eq!(located.shown(), format!("/w/{name}"));
        assert_eq!(
            FilePath::locate(&format!("{name}x"), Path::new("/w")),
            Err(Failure::LongName)
        );
        let base = Path::new(OsStr::from_bytes(b"/caf\xe9"));
        let located = FilePath::locate("f", base).unwrap();
        assert_eq!(located.shown(), "/caf\\xe9/f");
        assert_eq!(located.as_path(), base.join("f"));
        let child = located.child(OsStr::from_bytes(b"\xff"));
        assert_eq!(child.shown(), "/caf\\xe9/f/\\xff");
    }
}
