//! Answers of the remote runtime API. An error is an object with `detail`, because the client
//! reads that key of whatever it gets.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use zareba_eventlog::LogError;
use zareba_protocol::ErrorClass;
use zareba_session::{SessionError, SessionState};

use super::Denied;

/// A request that is not served.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    detail: String,
    retry_after: Option<u64>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            retry_after: None,
        }
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// What cannot be done now and will be possible by itself.
    fn later(detail: impl Into<String>) -> Self {
        Self {
            retry_after: Some(1),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        }
    }

    /// What is not there and what is somebody else's look the same.
    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not found")
    }
}

pub(super) fn json_answer(document: &Value) -> Response {
    with_status(StatusCode::OK, document)
}

fn with_status(status: StatusCode, document: &Value) -> Response {
    let mut response = Response::new(Body::from(document.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = with_status(self.status, &json!({ "detail": self.detail }));
        if let Some(seconds) = self.retry_after {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let detail = denied.to_string();
        match denied {
            Denied::WrongKey => Self::new(StatusCode::FORBIDDEN, detail),
            Denied::Unavailable => Self::later(detail),
            Denied::TooMany { retry_after } => Self {
                status: StatusCode::TOO_MANY_REQUESTS,
                detail,
                retry_after: Some(retry_after.as_secs().max(1)),
            },
        }
    }
}

impl From<SessionError> for Refusal {
    fn from(error: SessionError) -> Self {
        let detail = error.to_string();
        let status = match &error {
            // The reason names the database, which is the operator's business.
            SessionError::Log(LogError::Unavailable { reason }) => {
                tracing::warn!(reason, "the event log cannot be reached now");
                return Self::later("the event log cannot be reached now, try again later");
            }
            SessionError::Away { .. } => return Self::later(detail),
            SessionError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            SessionError::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            SessionError::NotFound { .. } => return Self::not_found(),
            SessionError::State { state, .. } if has_ended(*state) => return Self::not_found(),
            _ => status_of(error.class()),
        };
        if status.is_server_error() {
            tracing::warn!(error = %chain(&error), "a request for a session failed");
        }
        Self::new(status, detail)
    }
}

impl From<LogError> for Refusal {
    fn from(error: LogError) -> Self {
        SessionError::from(error).into()
    }
}

/// There is nothing any more that could run an action.
pub(super) fn has_ended(state: SessionState) -> bool {
    match state {
        SessionState::Failed | SessionState::Lost | SessionState::Closed => true,
        SessionState::Starting | SessionState::Ready | SessionState::Paused => false,
    }
}

fn status_of(class: ErrorClass) -> StatusCode {
    match class {
        ErrorClass::Disconnected => StatusCode::BAD_GATEWAY,
        ErrorClass::NotFound => StatusCode::NOT_FOUND,
        ErrorClass::Permission => StatusCode::FORBIDDEN,
        ErrorClass::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorClass::Invalid => StatusCode::BAD_REQUEST,
        ErrorClass::Busy => StatusCode::CONFLICT,
        ErrorClass::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorClass::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// An error with everything that led to it.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
