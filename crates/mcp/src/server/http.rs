//! Clients by streamable HTTP, on this machine, each with the token.
//!
//! A web page cannot come here: requests must name a loopback host, those with an `Origin` need
//! one that was allowed, and nobody gets past the head of a request without the token. A foreign
//! origin is answered with 403, as the protocol asks, a foreign host with 421, as everywhere here.

use std::{fmt, future::Future, net::SocketAddr, sync::Arc};

use axum::body::Body;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;
use zareba_wire::{
    Endpoint,
    serving::{
        Admission, BindError, Listener, Recognised, Respond, ServerLimits, TimedBody, accept_until,
        harden, host_is_loopback,
    },
};

use super::ToolServer;

/// Where the server is below its address.
const PATH: &str = "/mcp";
/// Clients that are served at once. One that was forgotten goes after five minutes.
const CLIENTS_MAX: usize = 64;
/// A body; a file to write travels in one.
const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The secret that clients show as `Authorization: Bearer …`.
#[derive(Clone)]
pub struct Token {
    digest: [u8; 32],
}

impl Token {
    /// Takes a token over; `None` when it is shorter than what nobody can guess.
    pub fn new(text: &str) -> Option<Self> {
        let digest = Sha256::digest(text.as_bytes()).into();
        (text.len() >= Self::BYTES_MIN).then_some(Self { digest })
    }

    /// The text of a new one: 32 bytes of randomness.
    pub fn generate() -> String {
        format!(
            "{:032x}{:032x}",
            rand::random::<u128>(),
            rand::random::<u128>()
        )
    }

    /// The shortest that a token may be.
    pub const BYTES_MIN: usize = 32;

    /// Both sides have the same length, so that the time it takes says nothing.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let mut offers = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(offered), None) = (offers.next(), offers.next()) else {
            return false;
        };
        let offered = offered.as_bytes();
        let (scheme, token) = offered.split_at_checked(7).unwrap_or((offered, b""));
        let digest: [u8; 32] = Sha256::digest(token).into();
        scheme.eq_ignore_ascii_case(b"bearer ") && self.digest.ct_eq(&digest).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(..)")
    }
}

/// How clients come by HTTP.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// A loopback address; port 0 lets the kernel choose.
    pub address: SocketAddr,
    /// What every request must show.
    pub token: Token,
    /// Origins of web pages that may ask, such as `http://localhost:6274`.
    pub origins: Vec<String>,
}

/// A server that has its socket and answers once it is served.
#[derive(Debug)]
pub struct HttpServer {
    listener: Listener,
    options: HttpOptions,
}

impl HttpServer {
    /// Takes the socket.
    ///
    /// # Errors
    /// An address that others could reach, or that is in use.
    pub fn bind(options: HttpOptions) -> Result<Self, BindError> {
        // Unguarded: then only loopback is accepted, and there is no TLS for anywhere else.
        let listener = Listener::bind(&Endpoint::Tcp(options.address), false)?;
        Ok(Self { listener, options })
    }

    /// Where it listens, with the port that the kernel chose.
    pub fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }

    /// The same as an address for clients.
    pub fn url(&self) -> String {
        match self.endpoint() {
            Endpoint::Tcp(address) => format!("http://{address}{PATH}"),
            Endpoint::Unix(path) => format!("unix:{}", path.display()),
        }
    }

    /// The usual names of this machine, and the address that clients were told.
    fn hosts(&self) -> Vec<String> {
        let own = match self.endpoint() {
            Endpoint::Tcp(address) => Some(address.ip().to_string()),
            Endpoint::Unix(_) => None,
        };
        let usual = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        usual.into_iter().chain(own).collect()
    }

    /// Serves clients until `shutdown` is ready.
    pub async fn serve(self, server: ToolServer, shutdown: impl Future<Output = ()>) {
        let limits = ServerLimits {
            json_bytes: BODY_BYTES_MAX,
            ..ServerLimits::default()
        };
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(self.hosts())
            .with_allowed_origins(self.options.origins.clone())
            .enforce_origin_validation()
            .with_max_request_body_bytes(BODY_BYTES_MAX);
        let end = config.cancellation_token.clone();
        let seats = Arc::new(Semaphore::new(CLIENTS_MAX));
        let seat = move || {
            let seat = Arc::clone(&seats).try_acquire_owned();
            let full = |_| std::io::Error::other("there are too many clients; try again later");
            seat.map(|seat| server.seated(seat)).map_err(full)
        };
        let sessions = Arc::new(LocalSessionManager::default());
        let door = Door {
            token: self.options.token,
            limits: limits.clone(),
            service: StreamableHttpService::new(seat, sessions, config),
        };
        let shutdown = async {
            shutdown.await;
            end.cancel();
        };
        accept_until(&self.listener, Arc::new(door), &limits, shutdown).await;
    }
}

/// What a request passes before it is read.
struct Door {
    token: Token,
    limits: ServerLimits,
    service: StreamableHttpService<ToolServer, LocalSessionManager>,
}

impl Door {
    fn refusal<B>(&self, request: &Request<B>, admission: Admission) -> Option<Response<Body>> {
        let refuse = |status, text| Some(refused(status, text));
        if !host_is_loopback(request.uri(), request.headers()) {
            let status = StatusCode::MISDIRECTED_REQUEST;
            return refuse(status, "requests must name a loopback host");
        }
        if !self.token.admits(request.headers()) {
            let mut answer = refused(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong; send it as `Authorization: Bearer TOKEN`",
            );
            let scheme = header::HeaderValue::from_static("Bearer");
            answer
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
            return Some(answer);
        }
        if request.uri().path() != PATH {
            return refuse(StatusCode::NOT_FOUND, "the server is at `/mcp`");
        }
        match admission {
            Admission::Full => None,
            Admission::LivenessOnly => {
                refuse(StatusCode::SERVICE_UNAVAILABLE, "too many connections")
            }
        }
    }
}

impl Respond for Door {
    async fn respond(
        &self,
        request: Request<hyper::body::Incoming>,
        admission: Admission,
    ) -> Response<Body> {
        let mut answer = match self.refusal(&request, admission) {
            Some(refusal) => refusal,
            None => {
                let stall = self.limits.body_stall;
                let request =
                    request.map(|body| Body::from_stream(TimedBody::new(Body::new(body), stall)));
                let is_end = request.method() == Method::DELETE;
                match self.service.clone().oneshot(request).await {
                    // Clients take 200 and 204 for the end of their session, and no other success.
                    Ok(answer) if is_end && answer.status() == StatusCode::ACCEPTED => {
                        let mut answer = Response::new(Body::empty());
                        *answer.status_mut() = StatusCode::NO_CONTENT;
                        answer
                    }
                    Ok(answer) => {
                        let mut answer = answer.map(Body::new);
                        answer.extensions_mut().insert(Recognised);
                        answer
                    }
                    Err(never) => match never {},
                }
            }
        };
        harden(&mut answer);
        answer
    }
}

fn refused(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_token_opens_only_as_a_bearer() {
        const TEXT: &str = "0123456789abcdef0123456789abcdef";
        let token = Token::new(TEXT).unwrap();
        let with = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            token.admits(&headers)
        };
        let bearer = format!("Bearer {TEXT}");
        assert!(with(&[&bearer]) && with(&[&format!("bearer {TEXT}")]));
        let (longer, basic) = (format!("{bearer}x"), format!("Basic {TEXT}"));
        let wrong: [&[&str]; 6] = [
            &[],
            &[&longer],
            &[TEXT],
            &[&basic],
            &["Bearer"],
            &[&bearer, "Bearer x"],
        ];
        for wrong in wrong {
            assert!(!with(wrong), "{wrong:?}");
        }
        assert!(TEXT.get(1..).and_then(Token::new).is_none());
        let made = [Token::generate(), Token::generate()];
        assert!(made.iter().all(|text| text.len() == 64), "{made:?}");
        assert_ne!(made[0], made[1]);
        assert_eq!(format!("{token:?}"), "Token(..)");
    }
}
