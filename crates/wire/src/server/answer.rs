//! Answers: JSON bodies, the contract's error bodies, and the headers that every answer has.

use std::time::Duration;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS},
};
use serde_json::{Value, json};

/// What the original says when it does not want to say more.
const UNEXPECTED: &str = "An unexpected error occurred. Please try again later.";

/// 200 with a JSON document that is already written.
pub(super) fn json_bytes(document: Vec<u8>) -> Response {
    with_status(StatusCode::OK, document)
}

pub(super) fn json(document: &Value) -> Response {
    json_bytes(document.to_string().into_bytes())
}

pub(super) fn with_status(status: StatusCode, document: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(document));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Says the same of every answer: it is what its type says, for the one who asked, and not to
/// be kept.
pub fn harden(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        "cross-origin-resource-policy",
        HeaderValue::from_static("same-origin"),
    );
}

/// A request that is not served. Its body is always an object with `detail`, because the
/// contract's client reads that key of whatever it gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) document: Value,
    /// In how many seconds it may be served, unless its status says it.
    pub(super) retry_after: Option<u64>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            document: json!({ "detail": detail.into() }),
            retry_after: None,
        }
    }

    /// A fault of ours, about which the client is told nothing.
    pub(super) fn unexpected() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, UNEXPECTED)
    }

    /// How the original reports almost everything that goes wrong inside a handler.
    pub(super) fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    /// Parameters that are missing or of the wrong type; `errors` is the text of a Python list.
    pub(super) fn invalid_parameters(errors: String) -> Self {
        let document = json!({ "detail": "Invalid request parameters", "errors": errors });
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            document,
            retry_after: None,
        }
    }

    pub(super) fn overloaded() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many connections, try again later",
        )
    }

    pub(super) fn too_many_wrong_keys(wait: Duration) -> Self {
        Self {
            retry_after: Some(wait.as_secs() + 1),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many requests without a valid key, try again later",
            )
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = with_status(self.status, self.document.to_string().into_bytes());
        let soon = (self.status == StatusCode::SERVICE_UNAVAILABLE).then_some(1);
        if let Some(seconds) = self.retry_after.or(soon) {
            let seconds = HeaderValue::from(seconds);
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}
