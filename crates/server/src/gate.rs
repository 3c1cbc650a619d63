//! What a request must pass before its route, and the net under every handler.
//!
//! Here a request gets its id, is judged by its head alone, and here its answer gets the headers
//! that every answer has, its error body, its line in the log and its place in the counters.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{
    Router,
    body::Body,
    response::{IntoResponse as _, Response},
};
use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use hyper::body::Incoming;
use tower::Service as _;
use tracing::{Instrument as _, field::Empty};
use zareba_api::{ErrorCode, REQUEST_ID, operations};
use zareba_wire::serving::{Admission, Recognised, Respond, URI_BYTES_MAX, harden};

use crate::{
    app::App,
    error::ApiError,
    names::{Host, Names, Origin},
    ports,
    routes::{KeyName, RouteName},
    traces::{self, Collected},
};

/// Where shared ports of sandboxes are: the address itself is the right to use them, so that
/// pages of any origin may.
const PREVIEWS: &str = "/p/";
/// What a client's own request id may have in characters.
const REQUEST_ID_LENGTH_MAX: usize = 64;
/// How long a browser may remember what a page elsewhere may do.
const PREFLIGHT_SECONDS: u32 = 600;

/// Everything between a connection and the routes.
pub(crate) struct Gate {
    app: Arc<App>,
    names: Names,
    router: Router,
}

/// What the gate has found out about a request.
struct Passage {
    /// The origin of a page elsewhere that may read the answer.
    origin: Option<String>,
}

impl Gate {
    pub(crate) fn new(app: Arc<App>, names: Names, router: Router) -> Self {
        Self { app, names, router }
    }

    /// Decided on the head alone: nothing of the body is read for those who are turned away.
    fn examine(
        &self,
        request: &mut Request<Body>,
        admission: Admission,
    ) -> Result<Passage, ApiError> {
        let target = request.uri().path_and_query();
        if target.map_or(0, |target| target.as_str().len()) > URI_BYTES_MAX {
            let message = format!("the URI is longer than the limit of {URI_BYTES_MAX} bytes");
            return Err(ApiError::new(ErrorCode::UriTooLong, message));
        }
        let is_preview = match self.names.host(request.uri(), request.headers()) {
            Host::Ours => request.uri().path().starts_with(PREVIEWS),
            Host::Preview(label) => {
                enter_preview(request, &label)?;
                true
            }
            Host::Foreign => return Err(misdirected()),
        };
        let origin = match self.names.origin(request.headers()) {
            _ if is_preview => None,
            Origin::Same => None,
            Origin::Allowed(origin) => Some(origin),
            Origin::Foreign => {
                let message = "requests from pages of this origin are refused";
                let hint = "the operator can allow an origin in the settings";
                return Err(ApiError::forbidden(message).with_hint(hint));
            }
        };
        if admission == Admission::LivenessOnly && !is_vital(request) {
            return Err(ApiError::overloaded());
        }
        Ok(Passage { origin })
    }

    /// One request's panic is its own affair: it is answered, and everything else goes on.
    async fn handle(&self, request: Request<Body>, request_id: &str) -> Response {
        let mut router = self.router.clone();
        let span = RequestSpan::begin(&request, request_id);
        let called = async { router.call(request).await }.instrument(span.span.clone());
        let response = match AssertUnwindSafe(called).catch_unwind().await {
            Ok(Ok(response)) => response,
            Err(_) => {
                self.app.telemetry.panic();
                tracing::error!(request_id, "a handler panicked");
                ApiError::internal().into_response()
            }
        };
        span.end(&response);
        response
    }
}

/// What a request does, in the log and in traces: whatever is logged on the way can be found by
/// its id.
struct RequestSpan {
    span: tracing::Span,
    method: Method,
    collected: Collected,
}

impl RequestSpan {
    fn begin(request: &Request<Body>, request_id: &str) -> Self {
        let span = tracing::info_span!(
            "request",
            request_id,
            otel.kind = Empty,
            otel.status_code = Empty,
            http.request.method = Empty,
            http.route = Empty,
            http.response.status_code = Empty,
        );
        let collected = traces::join(&span, request.headers());
        // The log has all that in a line of its own.
        if collected == Collected::Yes {
            span.record("otel.kind", "server");
        }
        Self {
            span,
            method: request.method().clone(),
            collected,
        }
    }

    /// Says what came of it. A path is not said: it may be the right to use a shared port.
    fn end(self, response: &Response) {
        if self.collected == Collected::No {
            return;
        }
        let route = response.extensions().get::<RouteName>();
        let route = route.map_or("none", |route| route.0);
        let (method, status) = (self.method.as_str(), response.status());
        let span = &self.span;
        span.record("http.request.method", method);
        span.record("http.route", route);
        span.record("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            span.record("otel.status_code", "ERROR");
        }
    }
}

impl Respond for Gate {
    async fn respond(&self, request: Request<Incoming>, admission: Admission) -> Response {
        let started = Instant::now();
        let mut request = request.map(Body::new);
        let request_id = request_id(request.headers());
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let (mut response, origin) = match self.examine(&mut request, admission) {
            Err(refusal) => (refusal.into_response(), None),
            Ok(Passage {
                origin: Some(origin),
            }) if method == Method::OPTIONS => (preflight(), Some(origin)),
            Ok(Passage { origin }) => (self.handle(request, &request_id).await, origin),
        };
        let is_recognised = response.extensions().get::<KeyName>().is_some()
            || response.extensions().get::<ports::Foreign>().is_some();
        if is_recognised {
            response.extensions_mut().insert(Recognised);
        }
        if admission == Admission::LivenessOnly {
            // Places of the reserve are for one question each.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        finish(&mut response, &request_id, origin);
        let status = response.status().as_u16();
        let route = response.extensions().get::<RouteName>();
        let route = route.map_or("none", |route| route.0);
        let took = started.elapsed();
        let counted = if is_usual(&method) {
            method.as_str()
        } else {
            "other"
        };
        self.app.telemetry.request(counted, route, status, took);
        let key = response.extensions().get::<KeyName>();
        let key = key.map(|key| key.0.as_str());
        let milliseconds = took.as_secs_f64() * 1000.0;
        let path = shown_path(&path, route);
        // Without the query, which may hold a ticket.
        tracing::info!(request_id, %method, path, route, status, milliseconds, key, "request");
        response
    }
}

/// A path as it may be written into a log: the address of a shared port is the right to use it.
fn shown_path<'a>(path: &'a str, route: &str) -> &'a str {
    match route == ports::ROUTE || path.starts_with(PREVIEWS) {
        true => PREVIEWS,
        false => path,
    }
}

/// Taken from the client when it is fit to be written into a log.
fn request_id(headers: &HeaderMap) -> String {
    let is_fit = |id: &&str| {
        (1..=REQUEST_ID_LENGTH_MAX).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
    };
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    match given.filter(is_fit) {
        Some(id) => id.to_owned(),
        None => format!("{:032x}", rand::random::<u128>()),
    }
}

/// What must work under overload: to ask whether the server lives, and to end a session.
fn is_vital(request: &Request<Body>) -> bool {
    let path = request.uri().path();
    if request.method() == Method::DELETE {
        let session = path.strip_prefix("/v1/sessions/");
        return session.is_some_and(|session| !session.contains('/'));
    }
    request.method() == Method::GET && path == operations::service::HEALTH.path
}

/// A name of its own for each preview leads to the same route as its path does.
fn enter_preview(request: &mut Request<Body>, label: &str) -> Result<(), ApiError> {
    let rest = request.uri().path_and_query();
    let rest = rest.map_or("/", |rest| rest.as_str());
    let target: Uri = format!("{PREVIEWS}{label}{rest}")
        .parse()
        .map_err(|_| misdirected())?;
    *request.uri_mut() = target;
    Ok(())
}

fn misdirected() -> ApiError {
    let message = "this server does not go by the name in `Host`";
    let hint = "the operator can allow a name in the settings";
    ApiError::new(ErrorCode::MisdirectedRequest, message).with_hint(hint)
}

fn is_usual(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET
            | Method::HEAD
            | Method::POST
            | Method::PUT
            | Method::PATCH
            | Method::DELETE
            | Method::OPTIONS
    )
}

/// What a page elsewhere may do: whatever the API offers to those who have a key, and nothing by
/// the browser's own credentials.
fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE"),
    );
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "authorization, content-type, idempotency-key, last-event-id, x-api-key, x-request-id",
        ),
    );
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from(PREFLIGHT_SECONDS),
    );
    response
}

/// Writes the body of an error, and the headers that every answer has.
fn finish(response: &mut Response, request_id: &str, origin: Option<String>) {
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        let body = serde_json::to_vec(&error.into_body(request_id)).unwrap_or_default();
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        *response.body_mut() = Body::from(body);
    }
    // What a sandbox has written has headers of its own.
    if response.extensions().get::<ports::Foreign>().is_none() {
        harden(response);
    }
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert(REQUEST_ID, value);
    }
    if let Some(origin) = origin.and_then(|origin| HeaderValue::from_str(&origin).ok()) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("location, retry-after, x-request-id"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_shared_ports_are_not_logged() {
        let token = "0123456789abcdef0123456789abcdef";
        for (path, route) in [
            (format!("/p/{token}/page"), ports::ROUTE),
            // Turned away before any route.
            (format!("/p/{token}"), "none"),
            // By a name of its own, whose path is the program's.
            ("/private/page".to_owned(), ports::ROUTE),
        ] {
            assert_eq!(shown_path(&path, route), PREVIEWS, "{path}");
        }
        assert_eq!(shown_path("/v1/status", "/v1/status"), "/v1/status");
    }
}
