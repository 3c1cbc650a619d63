//! Refusals of work on files: a code for each reason (FA-11), and what helps to ask again.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use zareba_api::ErrorCode;
use zareba_protocol::ErrorClass;
use zareba_runtime::RuntimeError;
use zareba_wire::files::{FileError, FileFailure};

use super::tag;
use crate::error::ApiError;

/// A refusal, with headers that tell how the file is.
pub(crate) struct Refused {
    error: ApiError,
    tag: Option<HeaderValue>,
    range: Option<HeaderValue>,
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self {
            error,
            tag: None,
            range: None,
        }
    }
}

impl From<RuntimeError> for Refused {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::File(error) => Self::of_file(&error),
            error => {
                let is_copy = matches!(error, RuntimeError::Copy { .. });
                let is_denied = is_copy && error.class() == ErrorClass::Permission;
                let mut refusal = ApiError::from(error);
                // It is the file that forbids it, not the key.
                if is_denied {
                    refusal.code = ErrorCode::PermissionDenied;
                }
                refusal.into()
            }
        }
    }
}

impl Refused {
    fn of_file(error: &FileError) -> Self {
        if error.reason == FileFailure::Internal {
            tracing::warn!(%error, "work on a file failed");
        }
        let current = error.current.as_deref();
        let is_range = error.reason == FileFailure::BadRange;
        let size = current.map(|current| format!("bytes */{}", current.size));
        Self {
            error: ApiError::new(code(error.reason), error.message.clone()),
            tag: current.and_then(tag),
            range: size
                .filter(|_| is_range)
                .and_then(|text| text.try_into().ok()),
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = self.error.into_response();
        let headers = response.headers_mut();
        if let Some(tag) = self.tag {
            headers.insert(header::ETAG, tag);
        }
        if let Some(range) = self.range {
            headers.insert(header::CONTENT_RANGE, range);
        }
        response
    }
}

fn code(reason: FileFailure) -> ErrorCode {
    match reason {
        FileFailure::InvalidPath => ErrorCode::InvalidPath,
        FileFailure::InvalidRequest | FileFailure::BrokenOff => ErrorCode::InvalidRequest,
        FileFailure::OutsideRoot => ErrorCode::PathOutsideRoot,
        FileFailure::NotFound => ErrorCode::NotFound,
        FileFailure::IsDirectory => ErrorCode::IsADirectory,
        FileFailure::NotDirectory => ErrorCode::NotADirectory,
        FileFailure::NotRegular => ErrorCode::NotARegularFile,
        FileFailure::Exists => ErrorCode::Exists,
        FileFailure::Conflict => ErrorCode::Conflict,
        FileFailure::NotEmpty => ErrorCode::DirectoryNotEmpty,
        FileFailure::BadRange => ErrorCode::RangeNotSatisfiable,
        FileFailure::TooLarge => ErrorCode::FileTooLarge,
        FileFailure::Denied => ErrorCode::PermissionDenied,
        FileFailure::ReadOnly => ErrorCode::ReadOnlyFileSystem,
        FileFailure::NoSpace => ErrorCode::DiskFull,
        FileFailure::Quota => ErrorCode::DiskQuotaExceeded,
        FileFailure::LinkLoop => ErrorCode::TooManyLinks,
        FileFailure::NameTooLong => ErrorCode::NameTooLong,
        FileFailure::TooManyOpen => ErrorCode::TooManyOpenFiles,
        FileFailure::CrossDevice => ErrorCode::OtherFileSystem,
        FileFailure::Busy => ErrorCode::FileBusy,
        FileFailure::Unsupported => ErrorCode::Unsupported,
        _ => ErrorCode::Internal,
    }
}
