//! What a request must pass before a handler sees it, and the net under every handler.

use std::{
    net::{IpAddr, Ipv4Addr},
    panic::AssertUnwindSafe,
    sync::Arc,
};

use axum::{
    Router,
    body::Body,
    response::{IntoResponse as _, Response},
};
use futures_util::FutureExt as _;
use http::{
    HeaderMap, Request, StatusCode, Uri,
    header::{HOST, ORIGIN},
};
use hyper::body::Incoming;
use tower::Service as _;

use super::{
    OpenAccess, ServerOptions,
    accept::{Peer, Respond},
    answer::{Refusal, harden},
    census::{Admission, Recognised},
    handlers::Surface,
    limits::URI_BYTES_MAX,
    routes::{Access, RouteTable},
    tools::PostAddress,
};
use crate::{
    ActionService, Endpoint,
    key::{KEY_HEADER, KeyDigest},
    wrong_keys::WrongKeys,
};

/// Everything between a connection and the handlers.
pub(super) struct Gate {
    router: Router,
    public_paths: Vec<&'static str>,
    visitors: Visitors,
    wrong_keys: WrongKeys,
}

/// Who may come in.
enum Visitors {
    /// Whoever has the key. What a browser would send is of no interest: no page has the key.
    Keyed(KeyDigest),
    /// Whoever is on this machine, but no web page from elsewhere: neither by posting across
    /// sites nor through a name that was made to point here.
    Loopback,
    /// Whoever reaches the port. Names cannot be checked, since the caller's name for us is
    /// unknown; pages from elsewhere still give themselves away by their origin.
    Anyone,
    /// Whoever may open the Unix socket, which no browser can.
    SocketOwner,
}

impl Gate {
    pub(super) fn new(
        service: Arc<dyn ActionService>,
        options: ServerOptions,
        endpoint: &Endpoint,
    ) -> Self {
        let visitors = match (&options.session_key, endpoint, options.open_access) {
            (Some(key), _, _) => Visitors::Keyed(key.digest()),
            (None, Endpoint::Unix(_), _) => Visitors::SocketOwner,
            (None, Endpoint::Tcp(address), OpenAccess::Acknowledged)
                if !address.ip().to_canonical().is_loopback() =>
            {
                Visitors::Anyone
            }
            (None, Endpoint::Tcp(_), _) => Visitors::Loopback,
        };
        let table = RouteTable::contract();
        let public_paths = table
            .routes()
            .iter()
            .filter(|route| route.access == Access::Public)
            .map(|route| route.path)
            .collect();
        let surface = Surface::new(service, options.limits, PostAddress::Absolute);
        let router = table.into_router(Arc::new(surface));
        Self {
            router,
            public_paths,
            visitors,
            wrong_keys: WrongKeys::default(),
        }
    }

    /// Whatever is not declared public is closed, unknown paths included.
    fn is_public(&self, uri: &Uri) -> bool {
        self.public_paths.contains(&uri.path())
    }

    /// Decided on the head alone: nothing of the body is read for those who are turned away.
    fn examine(&self, request: &Request<Incoming>, admission: Admission) -> Result<(), Refusal> {
        let (uri, headers) = (request.uri(), request.headers());
        let uri_bytes = uri
            .path_and_query()
            .map_or(0, |target| target.as_str().len());
        if uri_bytes > URI_BYTES_MAX {
            let detail = format!("the URI is longer than the limit of {URI_BYTES_MAX} bytes");
            return Err(Refusal::new(StatusCode::URI_TOO_LONG, detail));
        }
        let is_public = self.is_public(uri);
        if admission == Admission::LivenessOnly && !is_public {
            return Err(Refusal::overloaded());
        }
        match &self.visitors {
            Visitors::Keyed(key) if is_public || key.admits(headers.get(KEY_HEADER)) => Ok(()),
            Visitors::Keyed(_) => Err(self.wrong_key(request)),
            Visitors::Loopback => {
                require_loopback_host(uri, headers)?;
                require_own_origin(headers)
            }
            Visitors::Anyone => require_own_origin(headers),
            Visitors::SocketOwner => Ok(()),
        }
    }

    /// HS-10: after some guesses their sender is told to wait. No key at all is no guess.
    fn wrong_key(&self, request: &Request<Incoming>) -> Refusal {
        if !request.headers().contains_key(KEY_HEADER) {
            return Refusal::new(StatusCode::FORBIDDEN, "Invalid API Key");
        }
        let peer = request.extensions().get::<Peer>();
        let source = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
        match self.wrong_keys.count(source) {
            Ok(()) => Refusal::new(StatusCode::FORBIDDEN, "Invalid API Key"),
            Err(wait) => Refusal::too_many_wrong_keys(wait),
        }
    }

    /// One request's panic is its own affair: it is answered, and everything else goes on.
    async fn handle(&self, request: Request<Incoming>) -> Response {
        let path = request.uri().path().to_owned();
        let mut router = self.router.clone();
        let handled = AssertUnwindSafe(async { router.call(request.map(Body::new)).await });
        match handled.catch_unwind().await {
            Ok(Ok(response)) => response,
            Err(_) => {
                tracing::error!(path, "a handler panicked");
                Refusal::unexpected().into_response()
            }
        }
    }
}

impl Respond for Gate {
    async fn respond(&self, request: Request<Incoming>, admission: Admission) -> Response {
        let is_public = self.is_public(request.uri());
        let mut response = match self.examine(&request, admission) {
            Ok(()) => {
                let mut response = self.handle(request).await;
                if !is_public {
                    response.extensions_mut().insert(Recognised);
                }
                response
            }
            Err(refusal) => {
                let status = refusal.status.as_u16();
                tracing::info!(path = request.uri().path(), status, "request turned away");
                refusal.into_response()
            }
        };
        harden(&mut response);
        response
    }
}

fn require_loopback_host(uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    if host_is_loopback(uri, headers) {
        return Ok(());
    }
    let detail = "without a session key, the Host must be `localhost` or a loopback address";
    Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, detail))
}

fn require_own_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    if origin_is_own_loopback(headers) {
        return Ok(());
    }
    let detail = "without a session key, requests from pages of other origins are refused";
    Err(Refusal::new(StatusCode::FORBIDDEN, detail))
}

/// Whether a request comes from no page, or from one that this server itself serves on a loopback
/// name: scheme, host and port of the one origin are those of the one `Host`. Another port of this
/// machine is another server, perhaps a program's in a sandbox. No page of ours asks over TLS.
pub fn origin_is_own_loopback(headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) => return true,
        (Some(origin), None) => origin.to_str().ok(),
        (Some(_), Some(_)) => None,
    };
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let authority = origin.and_then(|origin| origin.strip_prefix("http://"));
    let own =
        authority.filter(|authority| host.as_bytes().eq_ignore_ascii_case(authority.as_bytes()));
    own.is_some_and(names_loopback)
}

/// Both the `Host` header, exactly one, and an absolute target must name this machine.
pub fn host_is_loopback(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    host.to_str().is_ok_and(names_loopback)
        && uri
            .authority()
            .is_none_or(|authority| names_loopback(authority.as_str()))
}

/// Whether `host[:port]` is this machine by a name that no resolver can be made to change.
pub fn names_loopback(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port)) => (
                host,
                port.strip_prefix(':').or(port.is_empty().then_some("")),
            ),
            None => return false,
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, Some("")),
        },
    };
    let port_is_fine = port.is_some_and(|port| port.is_empty() || port.parse::<u16>().is_ok());
    let is_address = host
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    port_is_fine && (is_address || host.eq_ignore_ascii_case("localhost"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_fixed_names_of_this_machine_are_loopback() {
        for (authority, expected) in [
            ("localhost", true),
            ("LOCALHOST:3000", true),
            ("127.0.0.1:3000", true),
            ("127.9.8.7", true),
            ("[::1]:3000", true),
            ("[::1]", true),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example:80", false),
            ("evil.example", false),
            ("user@localhost", false),
            ("localhost:port", false),
            ("localhost:1:2", false),
            ("[::1", false),
            ("[::1]x", false),
            ("10.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(names_loopback(authority), expected, "{authority:?}");
        }
    }

    /// HS-6.
    #[test]
    fn an_origin_must_be_ours_by_scheme_host_and_port() {
        for (origin, host, expected) in [
            ("http://localhost:3000", "localhost:3000", true),
            ("http://LOCALHOST:3000", "localhost:3000", true),
            ("http://127.0.0.1", "127.0.0.1", true),
            ("https://localhost:3000", "localhost:3000", false),
            ("http://localhost:3001", "localhost:3000", false),
            ("http://127.0.0.1:3000", "localhost:3000", false),
            ("http://evil.example", "evil.example", false),
            ("null", "localhost", false),
            ("file://localhost", "localhost", false),
            ("http://localhost/", "localhost", false),
            ("", "localhost", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
            headers.insert(HOST, HeaderValue::from_static(host));
            assert_eq!(
                origin_is_own_loopback(&headers),
                expected,
                "{origin:?} {host:?}"
            );
            headers.append(ORIGIN, HeaderValue::from_static("http://localhost:3000"));
            assert!(
                !origin_is_own_loopback(&headers),
                "{origin:?} and another one"
            );
        }
        assert!(origin_is_own_loopback(&HeaderMap::new()));
    }
}
