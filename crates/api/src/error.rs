//! The one error body, and its stable codes.

use serde::{Deserialize, Serialize};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type},
};
use zareba_protocol::ErrorClass;

/// What every refused or failed request is answered with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// The code that programs decide by; it never changes its meaning.
    pub code: ErrorCode,
    /// A sentence for people; it may change.
    pub message: String,
    /// What to do about it, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub hint: Option<String>,
    /// The part of the request that is meant, such as `resources.memory`, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub field: Option<String>,
    /// The name of the request in the server's log.
    pub request_id: String,
}

/// Declares the codes once: variant, word, status, class and what it means.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal, $status:literal, $class:ident;)+) => {
        /// The code that programs decide by. New ones may come; what a code means stays.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The HTTP status that it comes with.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// The class that it belongs to.
            pub const fn class(self) -> ErrorClass {
                match self { $(Self::$variant => ErrorClass::$class,)+ }
            }

            /// What it means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc,)+),)+ }
            }
        }
    };
}

/// By hand: the derive does not see names that come out of a macro.
impl PartialSchema for ErrorCode {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "The code that programs decide by. New ones may come; what a code means stays.",
            ))
            .enum_values(Some(Self::ALL.iter().map(|code| code.as_str())))
            .into()
    }
}

impl ToSchema for ErrorCode {}

codes! {
    /// The request cannot be understood: JSON, a field, a parameter.
    InvalidRequest = "invalid_request", 400, Invalid;
    /// Something in the request is deeper, longer or more than may be.
    LimitExceeded = "limit_exceeded", 400, Invalid;
    /// A path that cannot be one.
    InvalidPath = "invalid_path", 400, Invalid;
    /// A name or a path is longer than file systems take.
    NameTooLong = "name_too_long", 400, Invalid;
    /// Links on the way lead to more links than are followed.
    TooManyLinks = "too_many_links", 400, Invalid;
    /// There is no key, or not a valid one.
    Unauthorized = "unauthorized", 401, Permission;
    /// The key is valid and does not allow this.
    Forbidden = "forbidden", 403, Permission;
    /// The guard does not allow it; the message says why.
    GuardDenied = "guard_denied", 403, Permission;
    /// A path that leads out of where files may be.
    PathOutsideRoot = "path_outside_root", 403, Permission;
    /// The permissions of a file forbid it.
    PermissionDenied = "permission_denied", 403, Permission;
    /// The file is on a file system that nobody can write to.
    ReadOnlyFileSystem = "read_only_file_system", 403, Permission;
    /// The program is there, but cannot be run.
    ProgramNotExecutable = "program_not_executable", 403, Permission;
    /// There is nothing with that name, or it is somebody else's.
    NotFound = "not_found", 404, NotFound;
    /// There is no such program.
    ProgramNotFound = "program_not_found", 404, NotFound;
    /// The path exists and does not take this method.
    MethodNotAllowed = "method_not_allowed", 405, Invalid;
    /// The request did not arrive in time.
    RequestTimeout = "request_timeout", 408, Timeout;
    /// It cannot be done in the state that things are in.
    Conflict = "conflict", 409, Busy;
    /// There is one with that name already.
    Exists = "exists", 409, Busy;
    /// The directory is not empty.
    DirectoryNotEmpty = "directory_not_empty", 409, Busy;
    /// The body is larger than may be.
    BodyTooLarge = "body_too_large", 413, Invalid;
    /// The file is larger than this can be done with.
    FileTooLarge = "file_too_large", 413, Invalid;
    /// The target of the request is longer than may be.
    UriTooLong = "uri_too_long", 414, Invalid;
    /// The body is of another type than this route takes.
    UnsupportedMediaType = "unsupported_media_type", 415, Invalid;
    /// The part of a file that was asked for does not exist.
    RangeNotSatisfiable = "range_not_satisfiable", 416, Invalid;
    /// The request names a host that this server is not.
    MisdirectedRequest = "misdirected_request", 421, Permission;
    /// The idempotency key was used for another request.
    IdempotencyMismatch = "idempotency_mismatch", 422, Invalid;
    /// What is at that path is no regular file.
    NotARegularFile = "not_a_regular_file", 422, Invalid;
    /// What is at that path is a directory.
    IsADirectory = "is_a_directory", 422, Invalid;
    /// What is at that path is no directory.
    NotADirectory = "not_a_directory", 422, Invalid;
    /// The directory to start in cannot be used.
    BadDirectory = "bad_directory", 422, Invalid;
    /// The two names are on different file systems.
    OtherFileSystem = "other_file_system", 422, Invalid;
    /// This runtime cannot do that at all.
    Unsupported = "unsupported", 422, Unsupported;
    /// More requests, or wrong keys, than allowed in this time.
    TooManyRequests = "too_many_requests", 429, Busy;
    /// More of something at once than the server or the key allows.
    QuotaExceeded = "quota_exceeded", 429, Busy;
    /// A fault of ours.
    Internal = "internal", 500, Internal;
    /// The event log cannot be written or read; sessions are read-only.
    LogIoError = "log_io_error", 500, Internal;
    /// The sandbox could not be started.
    StartFailed = "start_failed", 500, Internal;
    /// What runs in the sandbox gave no usable answer.
    BadGateway = "bad_gateway", 502, Disconnected;
    /// There are too many connections or requests now.
    Overloaded = "overloaded", 503, Busy;
    /// The server is ending.
    ShuttingDown = "shutting_down", 503, Disconnected;
    /// The sandbox, or what makes sandboxes, cannot be reached now.
    BackendUnavailable = "backend_unavailable", 503, Disconnected;
    /// Too many files are open in the sandbox.
    TooManyOpenFiles = "too_many_open_files", 503, Busy;
    /// Something uses the file now, or too many directories are watched.
    FileBusy = "file_busy", 503, Busy;
    /// It took longer than allowed.
    Timeout = "timeout", 504, Timeout;
    /// The event log has no space; nothing was done.
    LogFull = "log_full", 507, Busy;
    /// The disk of the sandbox is full.
    DiskFull = "disk_full", 507, Busy;
    /// The sandbox has used up what it may have of the disk.
    DiskQuotaExceeded = "disk_quota_exceeded", 507, Busy;
}
