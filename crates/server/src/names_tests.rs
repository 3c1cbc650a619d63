//! Which hosts and origins are ours.

use http::{HeaderMap, HeaderValue, Uri};
use zareba_wire::Endpoint;

use super::*;
use crate::settings::TlsFiles;

fn names(address: &str) -> Names {
    names_over(address, Transport::Plain)
}

fn names_over(address: &str, transport: Transport) -> Names {
    let address: SocketAddr = address.parse().unwrap();
    let mut settings = ServerSettings::new(Listen::Tcp { address, transport });
    settings.allowed_hosts = vec!["Zareba.example".to_owned(), "other.example:81".to_owned()];
    settings.allowed_origins = vec!["https://ui.example".to_owned()];
    Names::new(&settings, &Endpoint::Tcp(address))
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn judge(address: &str, host: &str) -> Host {
    let uri = Uri::from_static("/v1/health");
    names(address).host(&uri, &headers(&[("host", host)]))
}

/// HS-5.
#[test]
fn only_names_that_nobody_can_redirect_are_ours() {
    for (host, expected) in [
        ("127.0.0.1:3000", Host::Ours),
        ("LocalHost:3000", Host::Ours),
        ("[::1]:3000", Host::Ours),
        ("zareba.example", Host::Ours),
        ("zareba.example:9", Host::Ours),
        ("other.example:81", Host::Ours),
        ("abc123.localhost:3000", Host::Preview("abc123".to_owned())),
        ("other.example:82", Host::Foreign),
        ("localhost:3001", Host::Foreign),
        ("localhost", Host::Foreign),
        ("evil.example:3000", Host::Foreign),
        ("localhost.evil.example:3000", Host::Foreign),
        ("a.b.localhost:3000", Host::Foreign),
        ("10.0.0.1:3000", Host::Foreign),
        ("", Host::Foreign),
    ] {
        assert_eq!(judge("127.0.0.1:3000", host), expected, "{host:?}");
    }
}

#[test]
fn listening_everywhere_takes_addresses_but_no_names() {
    assert_eq!(judge("0.0.0.0:3000", "10.0.0.1:3000"), Host::Ours);
    assert_eq!(judge("[::]:3000", "[fe80::1]:3000"), Host::Ours);
    assert_eq!(judge("0.0.0.0:3000", "evil.example:3000"), Host::Foreign);
    assert_eq!(judge("10.0.0.1:3000", "10.0.0.2:3000"), Host::Foreign);
}

#[test]
fn two_hosts_or_another_in_the_target_are_refused() {
    let names = names("127.0.0.1:3000");
    let twice = headers(&[("host", "localhost:3000"), ("host", "localhost:3000")]);
    assert_eq!(names.host(&Uri::from_static("/"), &twice), Host::Foreign);
    let once = headers(&[("host", "localhost:3000")]);
    let elsewhere = Uri::from_static("http://evil.example/");
    assert_eq!(names.host(&elsewhere, &once), Host::Foreign);
    assert_eq!(
        names.host(&Uri::from_static("/"), &headers(&[])),
        Host::Foreign
    );
}

/// HS-6.
#[test]
fn only_our_own_pages_and_listed_ones_may_ask() {
    let names = names("127.0.0.1:3000");
    let judge =
        |origin: &str| names.origin(&headers(&[("host", "localhost:3000"), ("origin", origin)]));
    assert_eq!(judge("http://localhost:3000"), Origin::Same);
    let listed = "https://ui.example".to_owned();
    assert_eq!(judge("https://UI.example"), Origin::Allowed(listed));
    for foreign in [
        "null",
        "https://localhost:3000",
        "http://127.0.0.1:3000",
        "http://localhost:3001",
        "http://localhost",
        "https://ui.example.evil.example",
        "file://localhost:3000",
        "",
    ] {
        assert_eq!(judge(foreign), Origin::Foreign, "{foreign:?}");
    }
    assert_eq!(names.origin(&headers(&[])), Origin::Same);
    let twice = headers(&[("origin", "https://ui.example"), ("origin", "null")]);
    assert_eq!(names.origin(&twice), Origin::Foreign);
}

/// HS-6: a page that came without TLS is not a page of a server that has TLS.
#[test]
fn the_scheme_of_our_own_pages_is_that_of_the_server() {
    let files = TlsFiles {
        certificates: "certificates".into(),
        key: "key".into(),
    };
    for transport in [Transport::Tls(files), Transport::BehindTlsProxy] {
        let names = names_over("127.0.0.1:3000", transport);
        let judge = |origin: &str| {
            names.origin(&headers(&[("host", "zareba.example"), ("origin", origin)]))
        };
        assert_eq!(judge("https://zareba.example"), Origin::Same);
        assert_eq!(judge("http://zareba.example"), Origin::Foreign);
    }
}
