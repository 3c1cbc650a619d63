//! Why something was denied, in words that say what to change.

use std::net::IpAddr;

use thiserror::Error;

use crate::class::AddressClass;
use crate::host::HostName;

/// Why a lookup or a connection was denied. The text is for the agent that wanted it and for the
/// operator who may open the way; the code is for programs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Denial {
    /// No rule allows the name at all.
    #[error("`{name}` is not allowed; add `{name}` to native.allow")]
    Name {
        /// The name.
        name: HostName,
    },
    /// No rule allows the name on that port.
    #[error("`{name}:{port}` is not allowed; add `{name}{}` to native.allow", suffix(*.port))]
    NamePort {
        /// The name.
        name: HostName,
        /// The port.
        port: u16,
    },
    /// No rule allows the address, and no name is known for it.
    #[error(
        "{address} port {port} is not allowed; connect by a name that is, or add `{}{}` to \
         native.allow", bracketed(*.address), suffix(*.port)
    )]
    Address {
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
    },
    /// A rule denies it.
    #[error("`{subject}` is denied by the rule `{rule}` in native.deny")]
    Rule {
        /// The name or address.
        subject: String,
        /// The rule.
        rule: String,
    },
    /// An address that no name may lead to.
    #[error(
        "{address} is {class}, which only a rule by address opens; add `{}` to native.allow if \
         it is meant", bracketed(*.address)
    )]
    Special {
        /// The address.
        address: IpAddr,
        /// What it is.
        class: AddressClass,
    },
    /// An address of the machine that the sandbox runs on.
    #[error(
        "{address} is this machine itself, which only a rule by address opens; add `{}` to \
         native.allow if it is meant", bracketed(*.address)
    )]
    OwnAddress {
        /// The address.
        address: IpAddr,
    },
    /// The name that the sandbox itself has.
    #[error("`{name}` means the sandbox itself and is not looked up")]
    LocalName {
        /// The name.
        name: HostName,
    },
    /// An allowed name at an address that it was not resolved to.
    #[error(
        "`{name}` was not resolved to {address} for this sandbox; look the name up and connect \
         to what the answer says"
    )]
    NotResolved {
        /// What the client said it wants.
        name: HostName,
        /// Where it connected to.
        address: IpAddr,
    },
    /// TLS that does not say whom it wants.
    #[error(
        "the TLS connection to {address} names no server; send the server's name, or add `{}{}` \
         to native.allow", bracketed(*.address), suffix(*.port)
    )]
    NoServerName {
        /// Where it connected to.
        address: IpAddr,
        /// The port.
        port: u16,
    },
    /// What the client sent cannot be judged.
    #[error("the connection to {address} port {port} cannot be judged: {fault}")]
    Unreadable {
        /// Where it connected to.
        address: IpAddr,
        /// The port.
        port: u16,
        /// What is wrong with what the client sent.
        fault: Fault,
    },
    /// A DNS question that is not answered for any name.
    #[error("only addresses are looked up, not records of type {record_type}")]
    RecordType {
        /// What was asked for.
        record_type: String,
    },
    /// A lookup that cannot be read.
    #[error("the question is no lookup of a host's address")]
    Question,
    /// Lookups come too fast.
    #[error("more lookups per second than a sandbox may make; try again more slowly")]
    LookupRate,
    /// Too many connections at once.
    #[error("more connections at once than the limit of {limit}; close some first")]
    Connections {
        /// The limit.
        limit: usize,
    },
    /// The sandbox has used up what it may send and receive.
    #[error("the sandbox has used up the {limit} bytes that it may send and receive")]
    BytesTotal {
        /// The limit.
        limit: u64,
    },
}

/// What makes a client's first words unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// Nothing came, or not enough.
    #[error("the client did not say in time whom it wants")]
    Silent,
    /// It ended before it said.
    #[error("the client hung up before it said whom it wants")]
    HungUp,
    /// More than is kept to decide.
    #[error("the client's first words are longer than what is looked at")]
    TooLong,
    /// Neither of the two protocols that name their server, on a port of theirs.
    #[error("it is neither TLS nor HTTP; on other protocols a rule by address decides")]
    Protocol,
    /// TLS that is not as the standard has it.
    #[error("its TLS greeting is malformed")]
    Tls,
    /// A server name that is no name.
    #[error("its server name is not the name of a host")]
    ServerName,
    /// HTTP that is not as the standard has it.
    #[error("its HTTP request is malformed or ambiguous")]
    Http,
    /// HTTP without a host, or with several.
    #[error("its HTTP request does not name exactly one host")]
    HttpHost,
    /// The host of the target is not that of the header.
    #[error("the HTTP request's target and its Host header disagree")]
    HttpTarget,
    /// The port of the `Host` header is not the one connected to.
    #[error("the HTTP request's Host header names another port")]
    HttpPort,
    /// A proxy is asked for a tunnel.
    #[error("HTTP CONNECT is not passed on; connect to the host itself")]
    HttpConnect,
    /// The proxy stopped first.
    #[error("the proxy stopped before the client said whom it wants")]
    Shutdown,
    /// HTTP/2 or later without TLS.
    #[error("HTTP/2 is passed on inside TLS only")]
    HttpVersion,
}

impl Denial {
    /// A word for programs, stable across versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name { .. } | Self::NamePort { .. } => "name_not_allowed",
            Self::Address { .. } => "address_not_allowed",
            Self::Rule { .. } => "denied_by_rule",
            Self::Special { .. } => "special_address",
            Self::OwnAddress { .. } => "own_address",
            Self::LocalName { .. } => "local_name",
            Self::NotResolved { .. } => "name_not_resolved",
            Self::NoServerName { .. } => "no_server_name",
            Self::Unreadable { .. } => "unreadable",
            Self::RecordType { .. } => "record_type",
            Self::Question => "question",
            Self::LookupRate => "lookup_rate",
            Self::Connections { .. } => "connections",
            Self::BytesTotal { .. } => "bytes_total",
        }
    }
}

impl Fault {
    /// Whether an answer in HTTP would be understood by whoever made it.
    pub(crate) fn is_of_http(self) -> bool {
        match self {
            Self::Http
            | Self::HttpHost
            | Self::HttpTarget
            | Self::HttpPort
            | Self::HttpConnect
            | Self::HttpVersion => true,
            Self::Silent
            | Self::HungUp
            | Self::TooLong
            | Self::Protocol
            | Self::Tls
            | Self::ServerName
            | Self::Shutdown => false,
        }
    }
}

/// How a rule writes a port that is not one of its defaults.
fn suffix(port: u16) -> String {
    match port {
        80 | 443 => String::new(),
        other => format!(":{other}"),
    }
}

/// How a rule writes an address.
fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
