//! Errors on their way to the client: a code, a sentence, perhaps a hint.

use std::{error::Error, time::Duration};

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header::RETRY_AFTER};
use zareba_api::{ErrorBody, ErrorCode, ErrorDetail};
use zareba_eventlog::LogError;
use zareba_protocol::{DecodeError, ErrorClass};
use zareba_runtime::{RequestField, RuntimeError};
use zareba_session::SessionError;
use zareba_tools::ToolError;
use zareba_wire::serving::BodyError;

use crate::convert;

/// An error on its way to the client. It travels as an extension of an empty answer, and the
/// gate, which knows the request's id, writes the body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError {
    /// What programs decide by.
    pub code: ErrorCode,
    /// A sentence for people: no causes, no paths of this machine.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The part of the request that is meant.
    pub field: Option<&'static str>,
    retry_after: Option<Duration>,
}

impl ApiError {
    /// An error with a code and a sentence.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            field: None,
            retry_after: None,
        }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// The same with the part of the request that is meant.
    #[must_use]
    pub(crate) fn about(self, field: RequestField) -> Self {
        Self {
            field: Some(convert::pointer(field)),
            ..self
        }
    }

    /// The same with when to try again.
    #[must_use]
    pub fn retry_after(self, after: Duration) -> Self {
        Self {
            retry_after: Some(after),
            ..self
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Forbidden, message)
    }

    /// One answer for what does not exist and for what is somebody else's.
    pub(crate) fn no_session(name: &str) -> Self {
        let shown: String = name.chars().take(64).collect();
        let message = format!("there is no session `{}`", shown.escape_debug());
        Self::new(ErrorCode::NotFound, message)
    }

    pub(crate) fn internal() -> Self {
        Self::new(ErrorCode::Internal, "the server failed to answer")
            .with_hint("the server's log says more under this request's id")
    }

    pub(crate) fn overloaded() -> Self {
        let message = "the server has too much to do now";
        Self::new(ErrorCode::Overloaded, message).retry_after(Duration::from_secs(1))
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn into_body(self, request_id: &str) -> ErrorBody {
        ErrorBody {
            error: ErrorDetail {
                code: self.code,
                message: self.message,
                hint: self.hint,
                field: self.field.map(str::to_owned),
                request_id: request_id.to_owned(),
            },
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        let seconds = match self.retry_after {
            Some(after) => Some(after.as_secs().max(1)),
            None if self.status() == StatusCode::SERVICE_UNAVAILABLE => Some(1),
            None => None,
        };
        if let Some(seconds) = seconds {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == ErrorCode::Unauthorized {
            response.headers_mut().insert(
                http::header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer"),
            );
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        let message = error.to_string();
        let code = match error {
            SessionError::NotFound { session } => return Self::no_session(session.as_str()),
            SessionError::NotPermitted { field, hint, .. } => {
                return Self::forbidden(message).with_hint(hint).about(field);
            }
            SessionError::PartNotPermitted { field, hint, .. } => {
                return Self {
                    field: Some(field),
                    ..Self::forbidden(message).with_hint(hint)
                };
            }
            SessionError::LimitNotPermitted { limit, hint, .. } => {
                let field = convert::limit_pointer(limit);
                return Self {
                    field: Some(field),
                    ..Self::forbidden(message).with_hint(hint)
                };
            }
            SessionError::Runtime(error) => return error.into(),
            SessionError::Log(error) => return error.into(),
            SessionError::NoAction { .. } => ErrorCode::NotFound,
            SessionError::Exists { .. }
            | SessionError::NameRemoved { .. }
            | SessionError::Tool(ToolError::Taken { .. }) => ErrorCode::Exists,
            SessionError::State { .. } => ErrorCode::Conflict,
            SessionError::KeyReused { .. } => ErrorCode::IdempotencyMismatch,
            SessionError::TooMany { .. } => ErrorCode::QuotaExceeded,
            SessionError::Away { .. } => ErrorCode::BackendUnavailable,
            SessionError::Invalid { .. } => ErrorCode::InvalidRequest,
            SessionError::ShuttingDown => ErrorCode::ShuttingDown,
            ref other => of_class(other.class()),
        };
        Self::new(code, message)
    }
}

/// Causes are in the log and not in the answer: they name files and sockets of this machine.
impl From<RuntimeError> for ApiError {
    fn from(error: RuntimeError) -> Self {
        let error = match unrecorded(error) {
            Ok(error) => return error.into(),
            Err(error) => error,
        };
        let code = match &error {
            RuntimeError::Unhonoured { field, remedy, .. } => {
                let (message, hint) = (error.to_string(), remedy.clone());
                let refused = Self::new(ErrorCode::Unsupported, message);
                return refused.with_hint(hint).about(*field);
            }
            RuntimeError::Start { .. } => ErrorCode::StartFailed,
            RuntimeError::Closed { .. } | RuntimeError::Paused { .. } => ErrorCode::Conflict,
            RuntimeError::Denied { .. } => ErrorCode::GuardDenied,
            other => of_class(other.class()),
        };
        if code.status() >= 500 {
            tracing::warn!(
                error = chain(&error),
                "a runtime could not do what was asked"
            );
        }
        // What is wrong with an image or a path, the caller must know; it is the cause that says it.
        let message = match (&error, error.class()) {
            (RuntimeError::Image { .. } | RuntimeError::Copy { .. }, class)
                if class != ErrorClass::Internal =>
            {
                chain(&error)
            }
            _ => error.to_string(),
        };
        Self::new(code, message)
    }
}

/// What the log said of a deed that was not done because it could not be recorded.
fn unrecorded(error: RuntimeError) -> Result<LogError, RuntimeError> {
    match error {
        RuntimeError::Unrecorded { class, source } => match source.downcast() {
            Ok(log) => Ok(*log),
            Err(source) => Err(RuntimeError::Unrecorded { class, source }),
        },
        error => Err(error),
    }
}

impl From<LogError> for ApiError {
    fn from(error: LogError) -> Self {
        let code = match &error {
            // The reason names the database, which is nobody's business but the operator's.
            LogError::Unavailable { reason } => {
                tracing::warn!(reason, "the event log cannot be reached now");
                let message = "the event log cannot be reached now";
                let hint = "repeat the request in a moment; the server goes on by itself";
                return Self::new(ErrorCode::BackendUnavailable, message).with_hint(hint);
            }
            LogError::Full => ErrorCode::LogFull,
            LogError::Io { .. } | LogError::Open { .. } | LogError::Damaged { .. } => {
                ErrorCode::LogIoError
            }
            LogError::TooLarge { .. } => ErrorCode::LimitExceeded,
            LogError::Quota { .. } => ErrorCode::QuotaExceeded,
            LogError::Conflict { .. } | LogError::InUse { .. } => ErrorCode::Conflict,
            LogError::Closed => ErrorCode::ShuttingDown,
            other => of_class(other.class()),
        };
        if code.status() == 500 {
            tracing::error!(error = chain(&error), "the event log failed");
        }
        Self::new(code, error.to_string())
    }
}

impl From<DecodeError> for ApiError {
    fn from(error: DecodeError) -> Self {
        let code = match error {
            DecodeError::UnknownAction { .. } => ErrorCode::Unsupported,
            _ => ErrorCode::InvalidRequest,
        };
        Self::new(code, error.in_words())
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        let code = match &error {
            BodyError::TooLarge { .. } => ErrorCode::BodyTooLarge,
            BodyError::Broken(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                let message = "the body arrives too slowly";
                return Self::new(ErrorCode::RequestTimeout, message);
            }
            BodyError::Broken(_) => ErrorCode::InvalidRequest,
        };
        Self::new(code, error.to_string())
    }
}

const fn of_class(class: ErrorClass) -> ErrorCode {
    match class {
        ErrorClass::Disconnected => ErrorCode::BackendUnavailable,
        ErrorClass::NotFound => ErrorCode::NotFound,
        ErrorClass::Permission => ErrorCode::Forbidden,
        ErrorClass::Timeout => ErrorCode::Timeout,
        ErrorClass::Invalid => ErrorCode::InvalidRequest,
        ErrorClass::Busy => ErrorCode::Conflict,
        ErrorClass::Unsupported => ErrorCode::Unsupported,
        ErrorClass::Internal => ErrorCode::Internal,
    }
}

/// An error with its causes, for the log.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §13: a database that is being restarted is no conflict, and no fault of the request.
    #[test]
    fn a_log_that_is_away_for_now_says_when_to_try_again() {
        let reason = "postgres@10.0.0.7: connection refused".to_owned();
        let error = SessionError::Log(LogError::Unavailable { reason });
        let error = ApiError::from(error);
        assert!(!error.message.contains("10.0.0.7"), "{}", error.message);
        let response = error.into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
    }

    #[test]
    fn a_sandbox_that_is_away_for_now_says_when_to_try_again() {
        let session = "s".parse().unwrap();
        let response = ApiError::from(SessionError::Away { session }).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key(RETRY_AFTER));
    }
}
