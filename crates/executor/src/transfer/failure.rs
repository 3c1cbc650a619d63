//! How failures read: the forms that OpenHands' clients know.

use std::{io, path::Path};

use rustix::io::Errno;
use zareba_wire::TransferError;

use crate::files::{Failure, Reach, printable_path};

/// The file system's refusal in the form `[Errno 20] Not a directory: '/a/b'`.
pub(super) fn os_error(error: impl Into<io::Error>, path: &Path) -> TransferError {
    let source = error.into();
    let message = Failure::io(&source, &printable_path(path)).to_string();
    TransferError::Io { message, source }
}

/// A refusal to open a path, which may be one to leave the workspace.
pub(super) fn refused(reach: &Reach, errno: Errno, path: &Path) -> TransferError {
    let failure = reach.failure(errno, &printable_path(path));
    let source = match failure {
        Failure::Outside { .. } => io::ErrorKind::PermissionDenied.into(),
        _ => errno.into(),
    };
    TransferError::Io {
        message: failure.to_string(),
        source,
    }
}

/// A request that makes no sense, in the words of the contract.
pub(super) fn invalid(message: impl Into<String>) -> TransferError {
    TransferError::Invalid {
        message: message.into(),
    }
}

/// An entry that is refused, and with it its archive.
pub(super) fn bad_entry(name: &[u8], reason: impl std::fmt::Display) -> TransferError {
    let name = String::from_utf8_lossy(name);
    TransferError::BadArchive {
        message: format!("entry '{}' {reason}", name.escape_debug()),
    }
}

/// An archive that is refused as a whole.
pub(super) fn bad_archive(message: impl Into<String>) -> TransferError {
    TransferError::BadArchive {
        message: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_reads_as_python_writes_it() {
        let error = |path: &str| os_error(rustix::io::Errno::NOTDIR, Path::new(path)).to_string();
        assert_eq!(error("/a/b"), "[Errno 20] Not a directory: '/a/b'");
        assert_eq!(error("/it's"), "[Errno 20] Not a directory: \"/it's\"");
    }
}
