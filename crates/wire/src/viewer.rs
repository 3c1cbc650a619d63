//! The file viewer: a second, tiny server on loopback that shows one image or PDF as a page.
//!
//! It is for a browser on the same machine and needs no key by contract. Other users of the machine
//! reach loopback too, so its address ends with a random part, and only below that are files shown.
//! It shows only what its bytes prove to be an image or a PDF: a name alone would let a link called
//! `x.png` show any file that the executor may read.

mod file;
mod page;

use std::{
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    sync::Arc,
};

use axum::{body::Body, extract::Query, response::Response};
use http::{HeaderValue, Method, Request, StatusCode, header};
use hyper::body::Incoming;
use subtle::ConstantTimeEq as _;

use crate::{
    Endpoint,
    server::{
        Admission, BindError, Listener, Respond, ServerLimits, accept_until, harden,
        host_is_loopback,
    },
};

/// A browser opens a handful; each may hold a page of many megabytes.
const CONNECTIONS_MAX: usize = 16;

/// Nothing is loaded from anywhere: pictures and documents are in the page itself.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; img-src data:; object-src data:; \
    frame-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A viewer that has its port and answers once it is served.
#[derive(Debug)]
pub struct Viewer {
    listener: Listener,
    secret: Secret,
}

/// The part of the address that cannot be guessed.
#[derive(Clone)]
struct Secret(String);

impl Secret {
    fn random() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    /// What is behind it in a path that begins with it.
    fn leads_to<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (given, rest) = path.strip_prefix('/')?.split_at_checked(self.0.len())?;
        bool::from(given.as_bytes().ct_eq(self.0.as_bytes())).then_some(rest)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

impl Viewer {
    /// Takes the first free port of the range on the IPv4 loopback address; `0..=0` lets the
    /// kernel choose.
    ///
    /// # Errors
    /// What the system said of the last port that was tried.
    pub fn bind(ports: RangeInclusive<u16>) -> Result<Self, BindError> {
        let last = *ports.end();
        let mut ports = ports;
        loop {
            let port = ports.next().unwrap_or(last);
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            match Listener::bind(&Endpoint::Tcp(address), false) {
                Ok(listener) => {
                    let secret = Secret::random();
                    return Ok(Self { listener, secret });
                }
                Err(error) if ports.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Where it answers, as clients expect it in `/tmp/oh-server-url`: they append `/view?path=…`.
    /// It is the right to read, so only the user whose files are shown may see it.
    pub fn url(&self) -> String {
        let Secret(secret) = &self.secret;
        match self.listener.endpoint() {
            Endpoint::Tcp(address) => format!("http://localhost:{}/{secret}", address.port()),
            other @ Endpoint::Unix(_) => other.to_string(),
        }
    }

    /// Answers until `shutdown` is ready.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let limits = ServerLimits {
            connections: CONNECTIONS_MAX,
            peer_connections: CONNECTIONS_MAX,
            ..ServerLimits::default()
        };
        let pages = Arc::new(Pages(self.secret));
        accept_until(&self.listener, pages, &limits, shutdown).await;
    }
}

/// Answers with pages. Only this machine can connect, because the listener is on loopback.
struct Pages(Secret);

impl Respond for Pages {
    async fn respond(&self, request: Request<Incoming>, admission: Admission) -> Response {
        let mut response = match admission {
            Admission::Full => answer(&request, &self.0).await,
            Admission::LivenessOnly => html(
                StatusCode::SERVICE_UNAVAILABLE,
                page::error("Error: Too many connections", ""),
            ),
        };
        harden(&mut response);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(CONTENT_SECURITY_POLICY),
        );
        headers.insert(
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        );
        response
    }
}

#[derive(serde::Deserialize)]
struct ViewQuery {
    path: PathBuf,
}

async fn answer(request: &Request<Incoming>, secret: &Secret) -> Response {
    // A name that someone else's resolver made point here does not make a page ours.
    if !host_is_loopback(request.uri(), request.headers()) {
        let denied = page::error("Access Denied", "This viewer is only for this machine.");
        return html(StatusCode::FORBIDDEN, denied);
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return json(
            StatusCode::METHOD_NOT_ALLOWED,
            r#"{"detail":"Method Not Allowed"}"#,
        );
    }
    let path = request.uri().path();
    let shown = secret.leads_to(path);
    match shown.unwrap_or(path) {
        "" | "/" => json(
            StatusCode::OK,
            r#"{"status":"File viewer server is running"}"#,
        ),
        "/view" if shown.is_some() => match Query::<ViewQuery>::try_from_uri(request.uri()) {
            Ok(Query(ViewQuery { path })) => view(path).await,
            Err(_) => html(
                StatusCode::BAD_REQUEST,
                page::error("Error: Path must be absolute", ""),
            ),
        },
        _ => json(StatusCode::NOT_FOUND, r#"{"detail":"Not Found"}"#),
    }
}

async fn view(path: PathBuf) -> Response {
    let shown = tokio::task::spawn_blocking(move || {
        file::read(&path).map(|content| page::of(&path, &content))
    });
    match shown.await {
        Ok(Ok(page)) => html(StatusCode::OK, page),
        Ok(Err(error)) => html(
            error.status(),
            page::error(&error.heading(), &error.detail()),
        ),
        Err(error) => {
            tracing::error!(%error, "showing a file failed");
            html(
                StatusCode::INTERNAL_SERVER_ERROR,
                page::error("Error viewing file", ""),
            )
        }
    }
}

fn html(status: StatusCode, page: String) -> Response {
    respond(status, "text/html; charset=utf-8", Body::from(page))
}

fn json(status: StatusCode, document: &'static str) -> Response {
    respond(status, "application/json", Body::from(document))
}

fn respond(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
