//! Why a file could not be reached, read or replaced, in the words that agents know from Python.

use rustix::io::Errno;
use zareba_protocol::python_repr::of_str as quoted;

use super::path::{NAME_BYTES_MAX, PATH_BYTES_MAX};

/// Why work on a file ended without effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// The kernel refused; the number is the code that tells one refusal from another.
    #[error("[Errno {}] {}: {}", errno.raw_os_error(), reason(*errno), quoted(path))]
    Os { errno: Errno, path: String },
    #[error(
        "[Errno 13] Permission denied: {} (outside the workspace; only paths in {} can be used)",
        quoted(path),
        quoted(root)
    )]
    Outside { path: String, root: String },
    #[error("{} is a {kind}, not a regular file", quoted(path))]
    Special { path: String, kind: &'static str },
    #[error("the path is empty")]
    EmptyPath,
    #[error("the path contains a NUL byte")]
    NulInPath,
    #[error("the path is longer than {PATH_BYTES_MAX} bytes")]
    LongPath,
    #[error("a component of the path is longer than {NAME_BYTES_MAX} bytes")]
    LongName,
    #[error("{} is larger than {} MiB, the most that is read at once", quoted(path), limit >> 20)]
    TooLarge { path: String, limit: u64 },
    #[error(
        "{} was changed by somebody else at the same time; look at it again",
        quoted(path)
    )]
    Changed { path: String },
    /// Writing in place would also change the other name, which may lie outside the workspace.
    #[error(
        "{} has another name (a hard link) and cannot be replaced safely",
        quoted(path)
    )]
    HardLinked { path: String },
}

impl Failure {
    pub(crate) fn os(errno: Errno, path: &str) -> Self {
        Self::Os {
            errno,
            path: path.to_owned(),
        }
    }

    pub(crate) fn io(error: &std::io::Error, path: &str) -> Self {
        Self::os(Errno::from_io_error(error).unwrap_or(Errno::IO), path)
    }

    pub(crate) fn special(path: &str, kind: &'static str) -> Self {
        Self::Special {
            path: path.to_owned(),
            kind,
        }
    }

    /// The kernel's code, when it was the kernel that refused.
    pub(crate) fn errno(&self) -> Option<Errno> {
        match self {
            Self::Os { errno, .. } => Some(*errno),
            _ => None,
        }
    }
}

/// The kernel's sentence for a code, without the number that Rust appends.
fn reason(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_refusals_read_as_python_errors() {
        let check = |errno, path: &str, expected: &str| {
            assert_eq!(Failure::os(errno, path).to_string(), expected);
        };
        check(
            Errno::NOENT,
            "/p",
            "[Errno 2] No such file or directory: '/p'",
        );
        check(
            Errno::ACCESS,
            "/it's",
            "[Errno 13] Permission denied: \"/it's\"",
        );
        check(
            Errno::NOSPC,
            "/a\nb",
            "[Errno 28] No space left on device: '/a\\nb'",
        );
        check(Errno::ROFS, "/p", "[Errno 30] Read-only file system: '/p'");
        check(
            Errno::LOOP,
            "/p",
            "[Errno 40] Too many levels of symbolic links: '/p'",
        );
        check(Errno::DQUOT, "/p", "[Errno 122] Disk quota exceeded: '/p'");
        check(Errno::MFILE, "/p", "[Errno 24] Too many open files: '/p'");
    }
}
