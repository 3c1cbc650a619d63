//! Headers on their way to a program in a sandbox and back: what is of one connection stays
//! there, what is ours is not given away, and what comes back cannot act for us.

use std::net::IpAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue, Uri,
    header::{self, CONNECTION, HOST, LOCATION, ORIGIN, SET_COOKIE, UPGRADE},
};

/// Marks an answer that a sandbox wrote, to which headers of ours do not belong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign;

/// What confines a page on the control plane's own origin: it runs, and has no origin.
const CONFINED: HeaderValue = HeaderValue::from_static(
    "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads",
);

/// Of one connection only.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    UPGRADE,
];

/// What the program must not get: keys of ours, and words of others about who asks.
const NOT_FORWARDED: [HeaderName; 10] = [
    header::AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-session-api-key"),
    header::FORWARDED,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-real-ip"),
    // The connection has said it already.
    header::EXPECT,
];

/// What a program must not make a browser do to a whole origin or host.
const NOT_RETURNED: [HeaderName; 9] = [
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("service-worker-allowed"),
    header::STRICT_TRANSPORT_SECURITY,
    header::ALT_SVC,
    HeaderName::from_static("report-to"),
    HeaderName::from_static("reporting-endpoints"),
    HeaderName::from_static("nel"),
    HeaderName::from_static("origin-agent-cluster"),
    HeaderName::from_static("x-request-id"),
];

/// Cookies with these beginnings are ours.
const OUR_COOKIES: [&str; 3] = ["zareba", "__host-zareba", "__secure-zareba"];

/// How a shared port was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// As a path of this server: everything on it shares the control plane's origin.
    Path {
        /// What stands before the program's own paths, without a slash at its end.
        prefix: String,
    },
    /// By a name of its own.
    Name,
}

/// Who asks, and how.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) way: Way,
    pub(super) port: u16,
    /// The `Host` of the request.
    pub(super) host: String,
    pub(super) scheme: &'static str,
    pub(super) address: Option<IpAddr>,
}

/// The headers of a request as the program gets them.
pub(super) fn outward(mut headers: HeaderMap, caller: &Caller) -> HeaderMap {
    let protocol = upgrade(&headers);
    remove_hop_by_hop(&mut headers);
    for name in NOT_FORWARDED {
        headers.remove(name);
    }
    keep_cookies(&mut headers, &caller.way);
    let inside = format!("localhost:{}", caller.port);
    let own_origin = format!("{}://{}", caller.scheme, caller.host);
    if headers
        .get(ORIGIN)
        .is_some_and(|origin| origin.as_bytes() == own_origin.as_bytes())
    {
        put(&mut headers, ORIGIN, &format!("http://{inside}"));
    }
    put(&mut headers, HOST, &inside);
    let set = |headers: &mut HeaderMap, name, value: &str| {
        put(headers, HeaderName::from_static(name), value);
    };
    set(&mut headers, "x-forwarded-host", &caller.host);
    set(&mut headers, "x-forwarded-proto", caller.scheme);
    if let Some(address) = caller.address {
        set(&mut headers, "x-forwarded-for", &address.to_string());
    }
    if let Way::Path { prefix } = &caller.way {
        set(&mut headers, "x-forwarded-prefix", prefix);
    }
    if let Some(protocol) = protocol {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol);
    }
    headers
}

/// The headers of an answer as the client gets them.
pub(super) fn inward(mut headers: HeaderMap, caller: &Caller) -> HeaderMap {
    let protocol = upgrade(&headers);
    remove_hop_by_hop(&mut headers);
    for name in NOT_RETURNED {
        headers.remove(name);
    }
    let location = headers.get(LOCATION).and_then(|place| place.to_str().ok());
    if let Some(place) = location.and_then(|place| rewritten(place, caller)) {
        put(&mut headers, LOCATION, &place);
    }
    // The address is a secret, and must not be told to those whom a page links to.
    let silent = HeaderValue::from_static("no-referrer");
    headers.insert(header::REFERRER_POLICY, silent);
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    match caller.way {
        Way::Name => keep_set_cookies(&mut headers),
        Way::Path { .. } => confine(&mut headers),
    }
    if let Some(protocol) = protocol {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol);
    }
    headers
}

/// UI-4: a page of a sandbox on the control plane's origin gets no origin at all, so that it can
/// neither read what is ours nor be taken for ours.
fn confine(headers: &mut HeaderMap) {
    headers.remove(SET_COOKIE);
    // Beside what the program says itself: browsers hold a page to all of them.
    headers.append(header::CONTENT_SECURITY_POLICY, CONFINED);
    // Without an origin a page's own scripts and fonts are another's. Who knows the address may
    // read what is there, and no cookie goes with a request.
    headers.remove(header::ACCESS_CONTROL_ALLOW_CREDENTIALS);
    let anyone = HeaderValue::from_static("*");
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, anyone);
    headers.remove("cross-origin-resource-policy");
}

/// What a connection is to become, when both say so.
pub(super) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut words = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    words
        .any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
        .then(|| headers.get(UPGRADE).cloned())
        .flatten()
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect();
    for name in named.into_iter().chain(HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// On our origin all cookies are ours; on a name of its own, those that are called so.
fn keep_cookies(headers: &mut HeaderMap, way: &Way) {
    let cookies: Vec<String> = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .map(|cookie| cookie.trim().to_owned())
        .filter(|cookie| !cookie.is_empty() && !is_ours(cookie))
        .collect();
    headers.remove(header::COOKIE);
    if *way == Way::Name && !cookies.is_empty() {
        put(headers, header::COOKIE, &cookies.join("; "));
    }
}

/// A cookie for a whole domain would reach the control plane, so that each is for its host only.
fn keep_set_cookies(headers: &mut HeaderMap) {
    let kept: Vec<HeaderValue> = headers
        .get_all(SET_COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .filter(|cookie| !is_ours(cookie))
        .filter_map(|cookie| {
            let parts = cookie.split(';').filter(|part| {
                let name = part.split('=').next().unwrap_or_default();
                !name.trim().eq_ignore_ascii_case("domain")
            });
            HeaderValue::try_from(parts.collect::<Vec<_>>().join(";")).ok()
        })
        .collect();
    headers.remove(SET_COOKIE);
    for cookie in kept {
        headers.append(SET_COOKIE, cookie);
    }
}

fn is_ours(cookie: &str) -> bool {
    let name = cookie.split('=').next().unwrap_or_default();
    let name = name.trim().to_ascii_lowercase();
    OUR_COOKIES.iter().any(|ours| name.starts_with(ours))
}

/// A redirect to the program itself, as the client has to follow it.
fn rewritten(place: &str, caller: &Caller) -> Option<String> {
    let own = match place.starts_with('/') && !place.starts_with("//") {
        true => place.to_owned(),
        false => {
            let uri: Uri = place.parse().ok()?;
            let authority = uri.authority()?.as_str();
            let inside = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"]
                .iter()
                .any(|host| authority == format!("{host}:{}", caller.port));
            if !inside && !authority.eq_ignore_ascii_case(&caller.host) {
                return None;
            }
            let rest = uri.path_and_query().map_or("/", |rest| rest.as_str());
            let fragment = place.split_once('#').map(|(_, fragment)| fragment);
            match fragment {
                Some(fragment) => format!("{rest}#{fragment}"),
                None => rest.to_owned(),
            }
        }
    };
    match &caller.way {
        Way::Name => Some(own),
        // Programs that know the prefix use it themselves.
        Way::Path { prefix } if own.starts_with(&format!("{prefix}/")) => Some(own),
        Way::Path { prefix } => Some(format!("{prefix}{own}")),
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
