//! Why work on a file ended without effect: one code for each reason that a caller can act on.

use http::StatusCode;
use zareba_protocol::ErrorClass;

use super::FileStatus;

/// Why work on a file ended without effect.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct FileError {
    /// What kept it from being done.
    pub reason: FileFailure,
    /// A sentence that names the file.
    pub message: String,
    /// The file as it is now, where that helps: after a conflict, or to choose another range.
    pub current: Option<Box<FileStatus>>,
}

impl FileError {
    /// A failure without more to say than its sentence.
    pub fn new(reason: FileFailure, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            current: None,
        }
    }

    /// The same, with the file as it is now.
    #[must_use]
    pub fn with_current(mut self, current: FileStatus) -> Self {
        self.current = Some(Box::new(current));
        self
    }

    /// What an executor without files answers.
    pub(crate) fn unsupported() -> Self {
        let message = "this executor does not offer files as bytes";
        Self::new(FileFailure::Unsupported, message)
    }

    /// How the error counts.
    pub fn class(&self) -> ErrorClass {
        self.reason.class()
    }
}

/// What kept work on a file from being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFailure {
    /// The path is empty, too long or holds a NUL byte, or names nothing that this can be done to.
    InvalidPath,
    /// A parameter makes no sense.
    InvalidRequest,
    /// The path leads out of the directory that may be used.
    OutsideRoot,
    /// There is nothing.
    NotFound,
    /// A directory, where a file is needed.
    IsDirectory,
    /// A file, where a directory is needed.
    NotDirectory,
    /// A pipe, a socket or a device, which are not opened.
    NotRegular,
    /// There is something already.
    Exists,
    /// The file is not what the caller expected.
    Conflict,
    /// The directory is not empty.
    NotEmpty,
    /// The range begins behind the file's end.
    BadRange,
    /// Larger than can be hashed.
    TooLarge,
    /// The sender stopped before the content was complete, or sent it too slowly.
    BrokenOff,
    /// Permissions forbid it.
    Denied,
    /// The file system is read-only.
    ReadOnly,
    /// The disk is full.
    NoSpace,
    /// A quota is used up.
    Quota,
    /// Too many links on the way.
    LinkLoop,
    /// A name or path is longer than the file system takes.
    NameTooLong,
    /// Too many files are open.
    TooManyOpen,
    /// Old and new name are on different file systems.
    CrossDevice,
    /// Something uses it: a mount, or too many watches at once.
    Busy,
    /// This cannot be done here.
    Unsupported,
    /// The system refused, or a fault of ours.
    Internal,
}

type Row = (FileFailure, &'static str, StatusCode, ErrorClass);

/// Every reason with its stable word, its status and its class.
const TABLE: [Row; 24] = {
    use ErrorClass::{Busy, Internal, Invalid, NotFound, Permission, Unsupported};
    use FileFailure as F;
    [
        (
            F::InvalidPath,
            "invalid_path",
            StatusCode::BAD_REQUEST,
            Invalid,
        ),
        (
            F::InvalidRequest,
            "invalid_request",
            StatusCode::BAD_REQUEST,
            Invalid,
        ),
        (
            F::OutsideRoot,
            "path_outside_root",
            StatusCode::FORBIDDEN,
            Permission,
        ),
        (
            F::NotFound,
            "file_not_found",
            StatusCode::NOT_FOUND,
            NotFound,
        ),
        (
            F::IsDirectory,
            "is_a_directory",
            StatusCode::UNPROCESSABLE_ENTITY,
            Invalid,
        ),
        (
            F::NotDirectory,
            "not_a_directory",
            StatusCode::UNPROCESSABLE_ENTITY,
            Invalid,
        ),
        (
            F::NotRegular,
            "not_a_regular_file",
            StatusCode::UNPROCESSABLE_ENTITY,
            Invalid,
        ),
        (F::Exists, "file_exists", StatusCode::CONFLICT, Invalid),
        (F::Conflict, "conflict", StatusCode::CONFLICT, Invalid),
        (
            F::NotEmpty,
            "directory_not_empty",
            StatusCode::CONFLICT,
            Invalid,
        ),
        (
            F::BadRange,
            "range_not_satisfiable",
            StatusCode::RANGE_NOT_SATISFIABLE,
            Invalid,
        ),
        (
            F::TooLarge,
            "file_too_large",
            StatusCode::PAYLOAD_TOO_LARGE,
            Invalid,
        ),
        (
            F::BrokenOff,
            "upload_broken_off",
            StatusCode::BAD_REQUEST,
            Invalid,
        ),
        (
            F::Denied,
            "permission_denied",
            StatusCode::FORBIDDEN,
            Permission,
        ),
        (
            F::ReadOnly,
            "read_only_file_system",
            StatusCode::FORBIDDEN,
            Permission,
        ),
        (
            F::NoSpace,
            "disk_full",
            StatusCode::INSUFFICIENT_STORAGE,
            Busy,
        ),
        (
            F::Quota,
            "disk_quota_exceeded",
            StatusCode::INSUFFICIENT_STORAGE,
            Busy,
        ),
        (
            F::LinkLoop,
            "too_many_links",
            StatusCode::BAD_REQUEST,
            Invalid,
        ),
        (
            F::NameTooLong,
            "name_too_long",
            StatusCode::BAD_REQUEST,
            Invalid,
        ),
        (
            F::TooManyOpen,
            "too_many_open_files",
            StatusCode::SERVICE_UNAVAILABLE,
            Busy,
        ),
        (
            F::CrossDevice,
            "other_file_system",
            StatusCode::UNPROCESSABLE_ENTITY,
            Invalid,
        ),
        (F::Busy, "file_busy", StatusCode::SERVICE_UNAVAILABLE, Busy),
        (
            F::Unsupported,
            "files_unsupported",
            StatusCode::NOT_IMPLEMENTED,
            Unsupported,
        ),
        (
            F::Internal,
            "file_failed",
            StatusCode::INTERNAL_SERVER_ERROR,
            Internal,
        ),
    ]
};

impl FileFailure {
    /// The stable word for it, `code` in the body of a refusal.
    pub fn code(self) -> &'static str {
        self.row().1
    }

    /// The HTTP status that says it best.
    pub fn status(self) -> StatusCode {
        self.row().2
    }

    /// How it counts.
    pub fn class(self) -> ErrorClass {
        self.row().3
    }

    pub(crate) fn from_code(code: &str) -> Option<Self> {
        let row = TABLE.iter().find(|row| row.1 == code)?;
        Some(row.0)
    }

    fn row(self) -> &'static Row {
        let [.., last] = &TABLE;
        TABLE.iter().find(|row| row.0 == self).unwrap_or(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_row_of_its_own_and_is_found_by_its_code() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, index, "{}", row.1);
            assert_eq!(FileFailure::from_code(row.1), Some(row.0));
            assert_eq!(row.0.code(), row.1);
        }
        assert_eq!(FileFailure::Internal as usize, TABLE.len() - 1);
        assert_eq!(FileFailure::from_code("fine"), None);
    }
}
