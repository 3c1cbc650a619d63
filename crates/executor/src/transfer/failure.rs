//! How failures read: the forms that OpenHands' clients know.

use std::{io, path::Path};

use zareba_wire::TransferError;

/// The file system's refusal in the form `[Errno 20] Not a directory: '/a/b'`.
pub(super) fn os_error(error: impl Into<io::Error>, path: &Path) -> TransferError {
    let source = error.into();
    let text = source.to_string();
    let message = match source.raw_os_error() {
        Some(code) => {
            let words = text
                .strip_suffix(&format!(" (os error {code})"))
                .unwrap_or(&text);
            format!("[Errno {code}] {words}: {}", quoted(path))
        }
        None => format!("{text}: {}", quoted(path)),
    };
    TransferError::Io { message, source }
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

/// The path in quotes, single ones unless the path itself holds one, as Python writes it.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    if path.contains('\'') && !path.contains('"') {
        format!("\"{path}\"")
    } else {
        format!("'{}'", path.replace('\'', "\\'"))
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
