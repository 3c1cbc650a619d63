//! Answers in the shapes of the original, to the byte.

use axum::{body::Body, response::Response};
use http::{
    HeaderValue, StatusCode,
    header::{ALLOW, CONTENT_TYPE, LOCATION},
};
use serde_json::{Value, json};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// What the original says of everything that goes wrong inside a call.
const INTERNAL: &str = "Internal Server Error";

/// A document with a status of its own.
pub(super) fn document(status: StatusCode, document: &Value) -> Response {
    with_type(status, JSON, document.to_string())
}

pub(super) fn page(text: String) -> Response {
    with_type(StatusCode::OK, HTML, text)
}

/// `{"detail": …}`.
pub(super) fn detail(status: StatusCode, detail: &str) -> Response {
    document(status, &json!({ "detail": detail }))
}

pub(super) fn not_found() -> Response {
    detail(StatusCode::NOT_FOUND, "Not Found")
}

pub(super) fn method_not_allowed(allowed: &'static str) -> Response {
    let mut response = detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// The same request, a slash less.
pub(super) fn elsewhere(location: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// A body that is not what a call needs.
pub(super) fn unfit(problems: Value) -> Response {
    let told = json!({ "detail": problems });
    document(StatusCode::UNPROCESSABLE_ENTITY, &told)
}

/// A call that came to nothing.
pub(super) fn failed(message: &str) -> Response {
    let told = json!({ "detail": INTERNAL, "error_message": message });
    document(StatusCode::INTERNAL_SERVER_ERROR, &told)
}

/// A tool that wanted to end the process. The original has nothing that would catch that.
pub(super) fn exited() -> Response {
    with_type(StatusCode::INTERNAL_SERVER_ERROR, TEXT, INTERNAL.to_owned())
}

fn with_type(status: StatusCode, content_type: HeaderValue, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
