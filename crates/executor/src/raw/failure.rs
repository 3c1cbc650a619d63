//! Refusals with a code for each reason (FA-11).

use rustix::io::Errno;
use zareba_protocol::python_repr::of_str as quoted;
use zareba_wire::files::{FileError, FileFailure};

use crate::files::Failure;

/// A refusal to reach, read or change a file.
pub(super) fn refused(failure: Failure) -> FileError {
    let reason = match &failure {
        Failure::Os { errno, .. } => reason_of(*errno),
        Failure::Outside { .. } => FileFailure::OutsideRoot,
        Failure::Special { .. } => FileFailure::NotRegular,
        Failure::EmptyPath | Failure::NulInPath => FileFailure::InvalidPath,
        Failure::LongPath | Failure::LongName => FileFailure::NameTooLong,
        Failure::TooLarge { .. } => FileFailure::TooLarge,
        Failure::Changed { .. } | Failure::HardLinked { .. } => FileFailure::Conflict,
    };
    FileError::new(reason, failure.to_string())
}

/// The kernel's refusal.
pub(super) fn os(errno: Errno, shown: &str) -> FileError {
    refused(Failure::os(errno, shown))
}

pub(super) fn io(error: &std::io::Error, shown: &str) -> FileError {
    refused(Failure::io(error, shown))
}

pub(super) fn invalid_path(shown: &str, problem: &str) -> FileError {
    let message = format!("the path {} {problem}", quoted(shown));
    FileError::new(FileFailure::InvalidPath, message)
}

pub(super) fn is_directory(shown: &str) -> FileError {
    os(Errno::ISDIR, shown)
}

fn reason_of(errno: Errno) -> FileFailure {
    match errno {
        Errno::NOENT => FileFailure::NotFound,
        Errno::ACCESS | Errno::PERM => FileFailure::Denied,
        Errno::ISDIR => FileFailure::IsDirectory,
        Errno::NOTDIR => FileFailure::NotDirectory,
        Errno::EXIST => FileFailure::Exists,
        Errno::NOTEMPTY => FileFailure::NotEmpty,
        Errno::LOOP => FileFailure::LinkLoop,
        Errno::NAMETOOLONG => FileFailure::NameTooLong,
        Errno::NOSPC => FileFailure::NoSpace,
        Errno::DQUOT => FileFailure::Quota,
        Errno::ROFS => FileFailure::ReadOnly,
        Errno::MFILE | Errno::NFILE => FileFailure::TooManyOpen,
        Errno::XDEV => FileFailure::CrossDevice,
        Errno::BUSY | Errno::TXTBSY => FileFailure::Busy,
        Errno::FBIG => FileFailure::TooLarge,
        Errno::INVAL => FileFailure::InvalidRequest,
        _ => FileFailure::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FA-11.
    #[test]
    fn each_refusal_of_the_kernel_has_its_own_code() {
        for (errno, code) in [
            (Errno::NOSPC, "disk_full"),
            (Errno::DQUOT, "disk_quota_exceeded"),
            (Errno::ROFS, "read_only_file_system"),
            (Errno::ACCESS, "permission_denied"),
            (Errno::ISDIR, "is_a_directory"),
            (Errno::LOOP, "too_many_links"),
            (Errno::NAMETOOLONG, "name_too_long"),
            (Errno::MFILE, "too_many_open_files"),
        ] {
            assert_eq!(os(errno, "/f").reason.code(), code);
        }
    }
}
