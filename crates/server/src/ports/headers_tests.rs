//! What goes to a sandbox and what may come back.

use super::*;

fn caller(way: Way) -> Caller {
    Caller {
        way,
        port: 8000,
        host: "127.0.0.1:7777".to_owned(),
        scheme: "http",
        address: Some([10, 0, 0, 9].into()),
    }
}

fn by_path() -> Caller {
    caller(Way::Path {
        prefix: "/p/abc".to_owned(),
    })
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
        .collect()
}

fn all(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).iter();
    values
        .map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

/// G-1: a sandbox never gets a key of ours, nor what others say about who asks.
#[test]
fn keys_cookies_and_hops_are_not_forwarded() {
    let sent = headers(&[
        ("authorization", "Bearer zrb_secret"),
        ("x-api-key", "zrb_secret"),
        ("x-session-api-key", "zrb_secret"),
        (
            "cookie",
            "zareba_session=secret; theme=dark; __Host-zareba=secret",
        ),
        ("x-forwarded-for", "1.2.3.4"),
        ("forwarded", "for=1.2.3.4"),
        ("connection", "keep-alive, X-Hop"),
        ("x-hop", "1"),
        ("te", "trailers"),
        ("transfer-encoding", "chunked"),
        ("accept", "text/html"),
        ("origin", "http://127.0.0.1:7777"),
        ("host", "127.0.0.1:7777"),
    ]);
    for (way, cookie) in [(Way::Name, Some("theme=dark")), (by_path().way, None)] {
        let got = outward(sent.clone(), &caller(way));
        let text = format!("{got:?}");
        assert!(
            !text.contains("secret") && !text.contains("1.2.3.4"),
            "{text}"
        );
        for name in [
            "connection",
            "x-hop",
            "te",
            "transfer-encoding",
            "authorization",
        ] {
            assert!(!got.contains_key(name), "{name}");
        }
        assert_eq!(
            got.get("cookie").map(|value| value.to_str().unwrap()),
            cookie
        );
        assert_eq!(got["host"], "localhost:8000");
        assert_eq!(got["origin"], "http://localhost:8000");
        assert_eq!(got["accept"], "text/html");
        assert_eq!(got["x-forwarded-for"], "10.0.0.9");
        assert_eq!(got["x-forwarded-host"], "127.0.0.1:7777");
        assert_eq!(got["x-forwarded-proto"], "http");
    }
    let got = outward(sent, &by_path());
    assert_eq!(got["x-forwarded-prefix"], "/p/abc");
}

#[test]
fn an_upgrade_is_passed_on() {
    let sent = headers(&[
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "websocket"),
    ]);
    let got = outward(sent, &caller(Way::Name));
    assert_eq!(
        (&got["connection"], &got["upgrade"]),
        (&"Upgrade".parse().unwrap(), &"websocket".parse().unwrap())
    );
    let without = outward(headers(&[("upgrade", "h2c")]), &caller(Way::Name));
    assert!(!without.contains_key("upgrade"));
}

/// UI-4: on the control plane's origin a page gets no origin, and sets no cookie there.
#[test]
fn a_page_on_our_origin_is_confined() {
    let sent = headers(&[
        ("set-cookie", "a=1"),
        ("content-security-policy", "default-src *"),
        ("clear-site-data", "\"*\""),
        ("service-worker-allowed", "/"),
        ("strict-transport-security", "max-age=1"),
        ("access-control-allow-credentials", "true"),
        ("content-type", "text/html"),
    ]);
    let got = inward(sent, &by_path());
    for name in [
        "set-cookie",
        "clear-site-data",
        "service-worker-allowed",
        "strict-transport-security",
        "access-control-allow-credentials",
    ] {
        assert!(!got.contains_key(name), "{name}");
    }
    let policies = all(&got, "content-security-policy");
    assert_eq!(policies.len(), 2, "{policies:?}");
    assert!(
        policies[1].starts_with("sandbox allow-scripts"),
        "{policies:?}"
    );
    assert!(!policies[1].contains("allow-same-origin"));
    assert_eq!(got["referrer-policy"], "no-referrer");
    assert_eq!(got["content-type"], "text/html");
}

#[test]
fn a_page_with_a_name_of_its_own_sets_cookies_for_that_name_only() {
    let mut sent = HeaderMap::new();
    for cookie in [
        "a=1; Path=/; Domain=localhost; HttpOnly",
        "b=2; domain=.localhost",
        "zareba_session=x; Path=/",
        "__Host-zareba=x",
    ] {
        sent.append(SET_COOKIE, HeaderValue::from_static(cookie));
    }
    let got = inward(sent, &caller(Way::Name));
    assert_eq!(all(&got, "set-cookie"), ["a=1; Path=/; HttpOnly", "b=2"]);
    assert!(!got.contains_key("content-security-policy"));
}

#[test]
fn redirects_to_itself_lead_back_through_the_address() {
    for (place, by_path_expected, by_name_expected) in [
        ("/login?a=1", "/p/abc/login?a=1", "/login?a=1"),
        ("/p/abc/login", "/p/abc/login", "/p/abc/login"),
        ("http://localhost:8000/x#y", "/p/abc/x#y", "/x#y"),
        ("http://127.0.0.1:8000", "/p/abc/", "/"),
        ("http://127.0.0.1:7777/x", "/p/abc/x", "/x"),
        ("relative", "relative", "relative"),
        (
            "https://example.org/x",
            "https://example.org/x",
            "https://example.org/x",
        ),
        ("//example.org/x", "//example.org/x", "//example.org/x"),
        (
            "http://localhost:9000/x",
            "http://localhost:9000/x",
            "http://localhost:9000/x",
        ),
    ] {
        let sent = headers(&[("location", place)]);
        assert_eq!(
            inward(sent.clone(), &by_path())["location"],
            by_path_expected,
            "{place}"
        );
        let by_name = inward(sent, &caller(Way::Name));
        assert_eq!(by_name["location"], by_name_expected, "{place}");
    }
}
