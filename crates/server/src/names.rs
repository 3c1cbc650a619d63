//! What requests may call this server by, and which pages may ask (HS-5, HS-6).

use std::net::{IpAddr, SocketAddr};

use http::{
    HeaderMap, Uri,
    header::{HOST, ORIGIN},
};
use zareba_wire::{Endpoint, serving::names_loopback};

use crate::settings::{Listen, ServerSettings, Transport};

/// The names of this server.
#[derive(Debug)]
pub(crate) struct Names {
    listens: Listens,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// What stands before the host in the origin of a page of this server.
    own_scheme: &'static str,
    preview_suffix: String,
}

#[derive(Debug)]
enum Listens {
    /// Names say nothing here: no browser opens a Unix socket.
    Unix,
    Tcp(SocketAddr),
}

/// What a request's host is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Ours,
    /// A name below the preview domain: the label in front of it.
    Preview(String),
    Foreign,
}

/// What a request's origin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// There is none, or it is the server itself.
    Same,
    /// A page elsewhere that may ask.
    Allowed(String),
    Foreign,
}

impl Names {
    pub(crate) fn new(settings: &ServerSettings, endpoint: &Endpoint) -> Self {
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self {
            listens: match endpoint {
                Endpoint::Tcp(address) => Listens::Tcp(*address),
                Endpoint::Unix(_) => Listens::Unix,
            },
            hosts: lower(&settings.allowed_hosts),
            origins: lower(&settings.allowed_origins),
            own_scheme: match &settings.listen {
                Listen::Tcp {
                    transport: Transport::Tls(_) | Transport::BehindTlsProxy,
                    ..
                } => "https://",
                Listen::Tcp {
                    transport: Transport::Plain,
                    ..
                }
                | Listen::Unix(_) => "http://",
            },
            preview_suffix: format!(".{}", settings.preview_domain.to_ascii_lowercase()),
        }
    }

    /// Both the `Host` header, exactly one, and an absolute target must name this server.
    pub(crate) fn host(&self, uri: &Uri, headers: &HeaderMap) -> Host {
        let Listens::Tcp(address) = self.listens else {
            return Host::Ours;
        };
        let Some(host) = single(headers, HOST.as_str()) else {
            return Host::Foreign;
        };
        let target = uri.authority().map(|authority| authority.as_str());
        if target.is_some_and(|target| !target.eq_ignore_ascii_case(host)) {
            return Host::Foreign;
        }
        self.judge(&host.to_ascii_lowercase(), address)
    }

    fn judge(&self, host: &str, address: SocketAddr) -> Host {
        let (name, port) = split(host);
        let is_listed = self.hosts.iter().any(|allowed| *allowed == host)
            || self.hosts.iter().any(|allowed| *allowed == name);
        if is_listed {
            return Host::Ours;
        }
        let is_our_port = match port {
            Port::Given(port) => port == address.port(),
            Port::Implied => matches!(address.port(), 80 | 443),
            Port::Invalid => false,
        };
        if is_our_port && (names_loopback(host) || is_address_of(name, address)) {
            return Host::Ours;
        }
        match name.strip_suffix(&self.preview_suffix) {
            Some(label) if is_our_port && is_label(label) => Host::Preview(label.to_owned()),
            _ => Host::Foreign,
        }
    }

    /// Every origin that a request names must be the server itself or on the list.
    pub(crate) fn origin(&self, headers: &HeaderMap) -> Origin {
        if !headers.contains_key(ORIGIN) {
            return Origin::Same;
        }
        let Some(origin) = single(headers, ORIGIN.as_str()) else {
            return Origin::Foreign;
        };
        let origin = origin.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return Origin::Allowed(origin);
        }
        let authority = origin.strip_prefix(self.own_scheme);
        // The host passed the list before: a page of the same scheme, host and port is our own.
        let host = single(headers, HOST.as_str()).map(str::to_ascii_lowercase);
        match (authority, host) {
            (Some(authority), Some(host)) if authority == host => Origin::Same,
            _ => Origin::Foreign,
        }
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// The port in a host.
enum Port {
    Given(u16),
    /// The one that the scheme implies.
    Implied,
    Invalid,
}

fn split(host: &str) -> (&str, Port) {
    let end_of_address = host.rfind(']').map_or(0, |at| at + 1);
    match host[end_of_address..].rsplit_once(':') {
        Some((rest, port)) => {
            let name = &host[..end_of_address + rest.len()];
            (name, port.parse().map_or(Port::Invalid, Port::Given))
        }
        None => (host, Port::Implied),
    }
}

/// An address cannot be made to point elsewhere, so that listening everywhere means all of them.
fn is_address_of(name: &str, listens: SocketAddr) -> bool {
    let literal = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    literal.parse::<IpAddr>().is_ok_and(|address| {
        listens.ip().is_unspecified() || address.to_canonical() == listens.ip().to_canonical()
    })
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
