//! A listener of its own, for clients that know a host and a port and nothing else.

use std::{future::Future, net::SocketAddr, panic::AssertUnwindSafe, sync::Arc};

use axum::{body::Body, extract::Request as AxumRequest, response::Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::FutureExt as _;
use http::{
    HeaderMap, HeaderValue, Request, StatusCode,
    header::{AUTHORIZATION, CONTENT_SECURITY_POLICY, REFERRER_POLICY, WWW_AUTHENTICATE},
};
use hyper::body::Incoming;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zareba_wire::{
    Endpoint,
    server::ServerLimits,
    serving::{
        Admission, BindError, Listener, Recognised, Respond, Secure, URI_BYTES_MAX, accept_until,
        harden, host_is_loopback, origin_is_own_loopback,
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
    /// Whoever is on this machine, but no web page.
    Loopback,
    /// Whoever shows this token: as `Authorization: Bearer …`, or as the password of a user whose
    /// name does not matter. CAMEL's own client can do the latter: it makes URLs of the host that
    /// it is given, and `any:TOKEN@host` is one.
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
    scheme: &'static str,
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
        Ok(Self {
            listener,
            access,
            scheme: "http",
        })
    }

    /// The same, with a handshake that encrypts each connection.
    #[must_use]
    pub fn secured(self, secure: Arc<dyn Secure>) -> Self {
        Self {
            listener: self.listener.secured(secure),
            scheme: "https",
            ..self
        }
    }

    /// Where it really listens: with the port that the kernel chose.
    pub fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }

    /// The same for clients.
    pub fn url(&self) -> String {
        match self.listener.endpoint() {
            Endpoint::Tcp(address) => format!("{}://{address}", self.scheme),
            Endpoint::Unix(path) => format!("unix:{}", path.display()),
        }
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
    /// Whoever has the token. A page has none to send as a bearer, but a browser sends a password
    /// that it knows by itself, so that pages from elsewhere are refused then.
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
            Self::Holding(token) => match shown(request.headers(), token) {
                Some(Shown::Bearer) => Ok(()),
                Some(Shown::Password) => require_own_origin(request.headers()),
                None => Err(unauthenticated()),
            },
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
        let mut response = self.call(request).await;
        response.extensions_mut().insert(Recognised);
        response
    }

    async fn call(&self, request: AxumRequest) -> Response {
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

/// How a caller showed the token.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Bearer,
    Password,
}

/// Digests of one length are compared whole, so that the time it takes says nothing of the token.
fn shown(headers: &HeaderMap, token: &[u8; 32]) -> Option<Shown> {
    let mut offers = headers.get_all(AUTHORIZATION).iter();
    let (Some(offered), None) = (offers.next(), offers.next()) else {
        return None;
    };
    let is_token = |offered: &[u8]| bool::from(digest(offered).ct_eq(token));
    let (scheme, offered) = split_at_space(offered.as_bytes())?;
    if scheme.eq_ignore_ascii_case(b"Bearer") {
        return is_token(offered).then_some(Shown::Bearer);
    }
    if !scheme.eq_ignore_ascii_case(b"Basic") {
        return None;
    }
    let pair = STANDARD.decode(offered).ok()?;
    let colon = pair.iter().position(|&byte| byte == b':')?;
    let password = pair.get(colon + 1..)?;
    is_token(password).then_some(Shown::Password)
}

fn split_at_space(header: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = header.iter().position(|&byte| byte == b' ')?;
    Some((header.get(..space)?, header.get(space + 1..)?))
}

fn unauthenticated() -> Response {
    let mut response = answer::detail(StatusCode::UNAUTHORIZED, "Not authenticated");
    let scheme = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    response
}

fn require_own_origin(headers: &HeaderMap) -> Result<(), Response> {
    if origin_is_own_loopback(headers) {
        return Ok(());
    }
    let detail = "requests from pages of other origins are refused";
    Err(answer::detail(StatusCode::FORBIDDEN, detail))
}

#[cfg(test)]
mod tests {
    use http::header::{HOST, ORIGIN};

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn headers(authorizations: &[String]) -> HeaderMap {
        let values = authorizations.iter();
        let values = values.map(|value| (AUTHORIZATION, HeaderValue::from_str(value).unwrap()));
        values.collect()
    }

    fn password(pair: &str) -> String {
        format!("Basic {}", STANDARD.encode(pair))
    }

    #[test]
    fn a_token_is_a_bearer_or_a_password() {
        let shown_by = |value: String| shown(&headers(&[value]), &digest(TOKEN.as_bytes()));
        assert_eq!(shown_by(format!("Bearer {TOKEN}")), Some(Shown::Bearer));
        assert_eq!(shown_by(format!("bearer {TOKEN}")), Some(Shown::Bearer));
        for user in ["", "zareba"] {
            let given = password(&format!("{user}:{TOKEN}"));
            assert_eq!(shown_by(given), Some(Shown::Password));
        }
        for wrong in [
            TOKEN.to_owned(),
            format!("Bearer  {TOKEN}"),
            format!("Bearer {TOKEN}x"),
            format!("Digest {TOKEN}"),
            format!("Basic {TOKEN}"),
            format!("Basic zareba:{TOKEN}"),
            password(TOKEN),
            password(&format!("{TOKEN}:")),
            password(&format!("a:b:{TOKEN}")),
            "Bearer".to_owned(),
            "Basic ".to_owned(),
        ] {
            assert_eq!(shown_by(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn nothing_and_two_answers_are_no_token() {
        let token = digest(TOKEN.as_bytes());
        assert_eq!(shown(&HeaderMap::new(), &token), None);
        let mut twice = headers(&[format!("Bearer {TOKEN}")]);
        twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        assert_eq!(shown(&twice, &token), None);
    }

    #[test]
    fn a_browser_that_knows_the_password_is_no_way_in_for_pages() {
        let visitors = Visitors::of(&Access::Token(TOKEN.to_owned()), true);
        let status = |authorization: String, origin: &'static str| {
            let mut request = Request::new(());
            *request.headers_mut() = headers(&[authorization]);
            let origin_value = HeaderValue::from_static(origin);
            request.headers_mut().insert(ORIGIN, origin_value);
            let host = HeaderValue::from_static("localhost:8000");
            request.headers_mut().insert(HOST, host);
            visitors.examine(&request).err().map(|it| it.status())
        };
        let known = || password(&format!("a:{TOKEN}"));
        let forbidden = Some(StatusCode::FORBIDDEN);
        assert_eq!(status(known(), "https://evil.example"), forbidden);
        assert_eq!(status(known(), "null"), forbidden);
        assert_eq!(status(known(), "http://localhost:8001"), forbidden);
        assert_eq!(status(known(), "http://localhost:8000"), None);
        assert_eq!(
            status(format!("Bearer {TOKEN}"), "https://app.example"),
            None
        );
    }
}
