//! How a program ended, or why there is none.

use http::StatusCode;
use zareba_protocol::ErrorClass;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramExit {
    /// It exited with this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl ProgramExit {
    /// The number that a shell would show: the status, or 128 plus the signal.
    pub fn shell_status(self) -> i64 {
        match self {
            Self::Code(code) => i64::from(code),
            Self::Signal(signal) => 128 + i64::from(signal),
        }
    }
}

/// What kept a program from being started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartFailure {
    /// There is no such program.
    NotFound,
    /// It is there, but cannot be run.
    NotExecutable,
    /// The directory to start in cannot be used.
    Directory,
    /// The request makes no sense or is too large.
    Invalid,
    /// There are too many programs, or the executor is ending.
    Busy,
    /// This executor runs no programs.
    Unsupported,
    /// The system refused, or a fault of ours.
    Internal,
}

impl StartFailure {
    const ALL: [Self; 7] = [
        Self::NotFound,
        Self::NotExecutable,
        Self::Directory,
        Self::Invalid,
        Self::Busy,
        Self::Unsupported,
        Self::Internal,
    ];

    /// The stable word for it, `code` in the body of a refusal.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotFound => "program_not_found",
            Self::NotExecutable => "program_not_executable",
            Self::Directory => "bad_directory",
            Self::Invalid => "invalid_program",
            Self::Busy => "busy",
            Self::Unsupported => "unsupported",
            Self::Internal => "internal",
        }
    }

    pub(crate) fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::NotExecutable | Self::Directory | Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unsupported => StatusCode::NOT_IMPLEMENTED,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Why there is no program. The text is for the one who asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StartProgramError {
    /// What kept it from being started.
    pub reason: StartFailure,
    /// What was attempted, why it failed and what to do.
    pub message: String,
}

impl StartProgramError {
    /// With a reason and a text.
    pub fn new(reason: StartFailure, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    pub(crate) fn unsupported() -> Self {
        Self::new(
            StartFailure::Unsupported,
            "this executor cannot run programs with streams of their own",
        )
    }

    /// The class that callers act on.
    pub fn class(&self) -> ErrorClass {
        match self.reason {
            StartFailure::NotFound => ErrorClass::NotFound,
            StartFailure::NotExecutable => ErrorClass::Permission,
            StartFailure::Directory | StartFailure::Invalid => ErrorClass::Invalid,
            StartFailure::Busy => ErrorClass::Busy,
            StartFailure::Unsupported => ErrorClass::Unsupported,
            StartFailure::Internal => ErrorClass::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_found_again_by_its_code() {
        for reason in StartFailure::ALL {
            assert_eq!(StartFailure::from_code(reason.code()), Some(reason));
        }
        assert_eq!(StartFailure::from_code("fine"), None);
    }
}
