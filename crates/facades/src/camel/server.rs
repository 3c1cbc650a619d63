//! A listener of its own, for clients that know a host and a port and nothing else.

use std::{future::Future, net::SocketAddr, panic::AssertUnwindSafe, sync::Arc};

use axum::{body::Body, extract::Request as AxumRequest, response::Response};
use futures_util::FutureExt as _;
use http::{
    HeaderMap, HeaderValue, Request, StatusCode,
    header::{AUTHORIZATION, CONTENT_SECURITY_POLICY, ORIGIN, REFERRER_POLICY, WWW_AUTHENTICATE},
};
use hyper::body::Incoming;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zareba_wire::{
    Endpoint,
    server::ServerLimits,
    serving::{
        Admission, BindError, Listener, Respond, URI_BYTES_MAX, accept_until, harden,
        host_is_loopback, names_loopback,
    },
};

use super::{Camel, answer};

/// The page at `/docs` has its style inside and needs nothing else.
const CONTENT_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);

/// Who may call tools.
#[derive(Clone)]
pub enum Access {
    /// Whoever is on this machine, but no web page. CAMEL's own client can send no token, so this
    /// is what it needs.
    Loopback,
    /// Whoever shows this token as `Authorization: Bearer …`.
    Token(String),
    /// Whoever reaches the port: said by somebody who knows what that means.
    Anyone,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Loopback => "Loopback",
            Self::Token(_) => "Token(..)",
            Self::Anyone => "Anyone",
        })
    }
}

/// A tool server that has its socket and answers once it is served.
#[derive(Debug)]
pub struct CamelServer {
    listener: Listener,
    access: Access,
}

impl CamelServer {
    /// Takes the socket, so that a client that connects from now on is at worst kept waiting. Must
    /// be called inside a runtime.
    ///
    /// # Errors
    /// An address that others can reach for [`Access::Loopback`]; one that is in use; whatever the
    /// system says of it.
    pub fn bind(address: SocketAddr, access: Access) -> Result<Self, BindError> {
        let guarded = !matches!(access, Access::Loopback);
        let listener = Listener::bind(&Endpoint::Tcp(address), guarded)?;
        Ok(Self { listener, access })
    }

    /// Where it really listens: with the port that the kernel chose.
    pub fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }

    /// Whether only this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self.listener.endpoint() {
            Endpoint::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Endpoint::Unix(_) => true,
        }
    }

    /// Answers until `shutdown` is ready, then ends what is under way within `limits`.
    pub async fn serve(
        self,
        camel: Camel,
        limits: &ServerLimits,
        shutdown: impl Future<Output = ()>,
    ) {
        let gate = Gate {
            camel,
            visitors: Visitors::of(&self.access, self.is_local()),
        };
        accept_until(&self.listener, Arc::new(gate), limits, shutdown).await;
    }
}

/// Everything between a connection and the tools.
struct Gate {
    camel: Camel,
    visitors: Visitors,
}

/// Who may come in, decided on the head of a request.
enum Visitors {
    /// Whoever has the token. What a browser would send is of no interest: no page has it.
    Holding([u8; 32]),
    /// Whoever is on this machine, but no web page from elsewhere: neither by posting across sites
    /// nor through a name that was made to point here.
    Local,
    /// Whoever reaches the port. Pages from elsewhere give themselves away by their origin.
    Anyone,
}

impl Visitors {
    /// On a loopback address the names can be checked in any case.
    fn of(access: &Access, is_local: bool) -> Self {
        match access {
            Access::Token(token) => Self::Holding(digest(token.as_bytes())),
            Access::Anyone if !is_local => Self::Anyone,
            Access::Anyone | Access::Loopback => Self::Local,
        }
    }

    fn examine<B>(&self, request: &Request<B>) -> Result<(), Response> {
        match self {
            Self::Holding(token) if has_token(request.headers(), token) => Ok(()),
            Self::Holding(_) => Err(unauthenticated()),
            Self::Local if !host_is_loopback(request.uri(), request.headers()) => {
                let detail = "without a token, the Host must be `localhost` or a loopback address";
                Err(answer::detail(StatusCode::MISDIRECTED_REQUEST, detail))
            }
            Self::Local | Self::Anyone => require_own_origin(request.headers()),
        }
    }
}

impl Gate {
    async fn handle(&self, request: AxumRequest, admission: Admission) -> Response {
        let target = request.uri().path_and_query();
        if target.map_or(0, |target| target.as_str().len()) > URI_BYTES_MAX {
            let detail = format!("the URI is longer than the limit of {URI_BYTES_MAX} bytes");
            return answer::detail(StatusCode::URI_TOO_LONG, &detail);
        }
        if let Err(refusal) = self.visitors.examine(&request) {
            return refusal;
        }
        if admission == Admission::LivenessOnly {
            let detail = "too many connections, try again later";
            return answer::detail(StatusCode::SERVICE_UNAVAILABLE, detail);
        }
        let path = request.uri().path().to_owned();
        // One request's panic is its own affair: it is answered, and everything else goes on.
        let handled = AssertUnwindSafe(self.camel.answer(&path, request)).catch_unwind();
        handled.await.unwrap_or_else(|_| {
            tracing::error!(path, "a handler panicked");
            answer::exited()
        })
    }
}

impl Respond for Gate {
    async fn respond(&self, request: Request<Incoming>, admission: Admission) -> Response {
        let mut response = self.handle(request.map(Body::new), admission).await;
        harden(&mut response);
        let headers = response.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, CONTENT_POLICY);
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        response
    }
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Digests of one length are compared whole, so that the time it takes says nothing of the token.
fn has_token(headers: &HeaderMap, token: &[u8; 32]) -> bool {
    let offered = headers
        .get(AUTHORIZATION)
        .map_or(&b""[..], HeaderValue::as_bytes);
    let (scheme, offered) = offered.split_at_checked(7).unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(digest(offered).ct_eq(token))
}

fn unauthenticated() -> Response {
    let mut response = answer::detail(StatusCode::UNAUTHORIZED, "Not authenticated");
    let scheme = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    response
}

fn require_own_origin(headers: &HeaderMap) -> Result<(), Response> {
    let is_own = |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or("");
        let authority = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        authority.is_some_and(names_loopback)
    };
    if headers.get_all(ORIGIN).iter().all(is_own) {
        return Ok(());
    }
    let detail = "without a token, requests from pages of other hosts are refused";
    Err(answer::detail(StatusCode::FORBIDDEN, detail))
}
