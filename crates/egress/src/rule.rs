//! One rule: a host, a family of hosts or a network, with or without ports.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::class;
use crate::host::{Host, HostError, HostName};
use crate::literal;
use crate::network::{Network, NetworkError};
use crate::ports::{Ports, PortsError};

/// Longest rule that is read: the longest name and a full list of ports.
const RULE_BYTES_MAX: usize = 512;
/// What a rule that allows is about when it names no ports.
const WEB: [u16; 2] = [80, 443];

/// What a rule says about a host: `example.com`, `*.example.com:8443`, `10.0.0.0/8:5432`,
/// `[2001:db8::]/32`, or `*`.
///
/// Without ports, a rule that allows is about 80 and 443 and one that denies about all ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    pattern: Pattern,
    ports: Option<Ports>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// `*`: every name.
    EveryName,
    /// `example.com`: that name only.
    Name(HostName),
    /// `*.example.com`: every name below, not the name itself.
    Below(HostName),
    /// Addresses, whatever name led there.
    Addresses(Network),
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot read the rule `{rule}`")]
pub struct RuleError {
    /// The rule as it was written, shortened if it is too long to be one.
    pub rule: String,
    /// What is wrong with it.
    #[source]
    pub fault: RuleFault,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleFault {
    /// It is longer than a rule can be.
    #[error("it is longer than {RULE_BYTES_MAX} bytes")]
    TooLong,
    /// An address of a page, not of a host.
    #[error("a rule names a host, not a page; leave out the scheme and the path")]
    Url,
    /// A `*` that is not the whole first label.
    #[error("`*` stands for whole labels and only in front, as in `*.example.com`")]
    Wildcard,
    /// An IPv6 address that cannot be told from a port.
    #[error("an IPv6 address is written in brackets, as in `[2001:db8::1]:443`")]
    Brackets,
    /// Another spelling of an address.
    #[error("this is an unusual spelling of an address; write `{canonical}`")]
    Spelling {
        /// How the address is written.
        canonical: IpAddr,
    },
    /// A network of names.
    #[error("only an address can have a `/` and a length behind it")]
    Prefix,
    /// The machine itself.
    #[error(
        "`localhost` is the sandbox itself; to open a service of this machine, list its address"
    )]
    Local,
    /// Not a host.
    #[error("cannot read its host")]
    Host(#[source] HostError),
    /// Not a network.
    #[error("cannot read its network")]
    Network(#[source] NetworkError),
    /// Not ports.
    #[error("cannot read its ports")]
    Ports(#[source] PortsError),
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    ///
    /// Names the rule and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        if text.len() > RULE_BYTES_MAX {
            let rule = text.chars().take(40).chain(['…']).collect();
            let fault = RuleFault::TooLong;
            return Err(RuleError { rule, fault });
        }
        read(text).map_err(|fault| RuleError {
            rule: text.into(),
            fault,
        })
    }

    /// Whether all that the other rule allows is allowed by this one, too. Of networks only an equal
    /// one and single addresses are known to be: a smaller network may open a special address that
    /// the larger one does not.
    pub fn allows_all_of(&self, other: &Self) -> bool {
        let covers_host = match (&self.pattern, &other.pattern) {
            (Pattern::EveryName, Pattern::EveryName | Pattern::Name(_) | Pattern::Below(_)) => true,
            (Pattern::Name(one), Pattern::Name(other)) => one == other,
            (Pattern::Below(parent), Pattern::Name(name)) => name.is_below(parent),
            (Pattern::Below(parent), Pattern::Below(other)) => {
                other == parent || other.is_below(parent)
            }
            (Pattern::Addresses(one), Pattern::Addresses(other)) => {
                one == other || other.only().is_some_and(|only| self.lists_address(only))
            }
            _ => false,
        };
        covers_host && other.allowed_ports().all(|port| self.allows_port(port))
    }

    /// The ports that have to be listened on for a rule that allows.
    pub(crate) fn allowed_ports(&self) -> Box<dyn Iterator<Item = u16> + '_> {
        match &self.ports {
            Some(ports) => Box::new(ports.each()),
            None => Box::new(WEB.into_iter()),
        }
    }

    pub(crate) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    pub(crate) fn allows_port(&self, port: u16) -> bool {
        match &self.ports {
            Some(ports) => ports.contains(port),
            None => WEB.contains(&port),
        }
    }

    pub(crate) fn denies_port(&self, port: u16) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports.contains(port))
    }

    pub(crate) fn denies_every_port(&self) -> bool {
        self.ports.is_none()
    }

    /// Whether the rule is about this name (EG-3).
    pub(crate) fn matches_name(&self, name: &HostName) -> bool {
        match &self.pattern {
            Pattern::EveryName => true,
            Pattern::Name(exact) => exact == name,
            Pattern::Below(parent) => name.is_below(parent),
            Pattern::Addresses(_) => false,
        }
    }

    /// Whether the rule is about this address, for a rule that denies.
    pub(crate) fn covers_address(&self, address: IpAddr) -> bool {
        match &self.pattern {
            Pattern::Addresses(network) => network.contains(literal::canonical(address)),
            Pattern::EveryName | Pattern::Name(_) | Pattern::Below(_) => false,
        }
    }

    /// Whether the rule opens this address, for a rule that allows. A special address is opened
    /// only by a network that lies within its special block, so that `0.0.0.0/0` means the
    /// internet and not this machine, and `169.254.0.0/16` not the metadata service (EG-6).
    pub(crate) fn lists_address(&self, address: IpAddr) -> bool {
        match &self.pattern {
            Pattern::Addresses(network) => {
                let is_meant = class::special(address)
                    .is_none_or(|special| network.prefix() >= special.block.prefix());
                is_meant && network.contains(literal::canonical(address))
            }
            Pattern::EveryName | Pattern::Name(_) | Pattern::Below(_) => false,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Pattern::EveryName => formatter.write_str("*")?,
            Pattern::Name(name) => write!(formatter, "{name}")?,
            Pattern::Below(parent) => write!(formatter, "*.{parent}")?,
            Pattern::Addresses(network) => write!(formatter, "{network}")?,
        }
        match &self.ports {
            Some(ports) => write!(formatter, ":{ports}"),
            None => Ok(()),
        }
    }
}

impl TryFrom<String> for Rule {
    type Error = RuleMessage;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).map_err(RuleMessage)
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> Self {
        rule.to_string()
    }
}

/// A [`RuleError`] that prints its reasons too, for serde, which keeps only the text.
#[derive(Debug)]
pub struct RuleMessage(RuleError);

impl fmt::Display for RuleMessage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)?;
        let mut cause = std::error::Error::source(&self.0);
        while let Some(error) = cause {
            write!(formatter, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

fn read(text: &str) -> Result<Rule, RuleFault> {
    if text.contains("://") {
        return Err(RuleFault::Url);
    }
    let (host, prefix, ports) = split(text)?;
    let ports = ports
        .map(Ports::parse)
        .transpose()
        .map_err(RuleFault::Ports)?;
    let pattern = pattern(host, prefix)?;
    Ok(Rule { pattern, ports })
}

/// Host, prefix length and ports, each as text.
fn split(text: &str) -> Result<(&str, Option<&str>, Option<&str>), RuleFault> {
    let host_end = if text.starts_with('[') {
        text.find(']').map(|at| at + 1)
    } else {
        text.find(['/', ':'])
    };
    let (host, rest) = text.split_at(host_end.unwrap_or(text.len()));
    let (prefix, ports) = match rest.split_once(':') {
        Some((prefix, ports)) => (prefix, Some(ports)),
        None => (rest, None),
    };
    // What is left of an unbracketed IPv6 address behind its first colon.
    if ports.is_some_and(|ports| ports.contains(':')) {
        return Err(RuleFault::Brackets);
    }
    match prefix.strip_prefix('/') {
        Some(prefix) => Ok((host, Some(prefix), ports)),
        None if prefix.is_empty() => Ok((host, None, ports)),
        None => Err(RuleFault::Host(HostError::Brackets)),
    }
}

fn pattern(host: &str, prefix: Option<&str>) -> Result<Pattern, RuleFault> {
    if let Some(wild) = host.strip_prefix('*') {
        if prefix.is_some() {
            return Err(RuleFault::Prefix);
        }
        return match wild.strip_prefix('.') {
            None if wild.is_empty() => Ok(Pattern::EveryName),
            Some(parent) if !parent.contains('*') => name(parent).map(Pattern::Below),
            _ => Err(RuleFault::Wildcard),
        };
    }
    if host.contains('*') {
        return Err(RuleFault::Wildcard);
    }
    match Host::parse(host).map_err(RuleFault::Host)? {
        Host::Address(address) => addresses(host, address, prefix),
        Host::Name(_) if prefix.is_some_and(|prefix| prefix.parse::<u8>().is_err()) => {
            Err(RuleFault::Url)
        }
        Host::Name(_) if prefix.is_some() => Err(RuleFault::Prefix),
        Host::Name(_) => name(host).map(Pattern::Name),
    }
}

fn name(text: &str) -> Result<HostName, RuleFault> {
    let name = HostName::parse(text).map_err(RuleFault::Host)?;
    if name.is_local() {
        return Err(RuleFault::Local);
    }
    Ok(name)
}

fn addresses(text: &str, address: IpAddr, prefix: Option<&str>) -> Result<Pattern, RuleFault> {
    let plain = text.trim_start_matches('[').trim_end_matches(']');
    if plain.parse() != Ok(address) {
        return Err(RuleFault::Spelling { canonical: address });
    }
    let network = match prefix {
        None => Network::single(address),
        Some(prefix) => {
            let prefix = prefix.parse().map_err(|_| RuleFault::Prefix)?;
            Network::new(address, prefix).map_err(RuleFault::Network)?
        }
    };
    Ok(Pattern::Addresses(network))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_rule_allows_all_of_another_only_when_that_is_certain() {
        let rule = |text| Rule::parse(text).unwrap();
        for (one, other, expected) in [
            ("a.example", "a.example", true),
            ("a.example", "b.example", false),
            ("a.example", "a.example:8443", false),
            ("a.example:80-90,443", "a.example", true),
            ("*.example", "a.example", true),
            ("*.example", "example", false),
            ("*.example", "*.a.example", true),
            ("*.a.example", "*.example", false),
            ("*", "*.example", true),
            ("*", "10.0.0.1", false),
            ("10.0.0.0/8", "10.0.0.0/8", true),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("0.0.0.0/0", "10.1.2.3", false),
            ("0.0.0.0/0", "192.0.2.1:443", false),
            ("0.0.0.0/0", "1.1.1.1", true),
            ("169.254.0.0/16", "169.254.169.254", false),
            ("a.example", "10.1.2.3", false),
        ] {
            assert_eq!(
                rule(one).allows_all_of(&rule(other)),
                expected,
                "{one} {other}"
            );
        }
    }

    fn message(text: &str) -> String {
        RuleMessage(Rule::parse(text).unwrap_err()).to_string()
    }

    #[test]
    fn rules_are_written_as_they_are_read() {
        for text in [
            "example.com",
            "*.example.com",
            "example.com:8443",
            "*.pypi.org:443",
            "example.com:80,443,8000-8010",
            "1.2.3.4",
            "1.2.3.4:22",
            "10.0.0.0/8:5432",
            "0.0.0.0/0",
            "[2001:db8::]/32",
            "[2001:db8::1]:443",
            "[2001:db8::]/32:443",
            "*",
            "*:443",
        ] {
            assert_eq!(Rule::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            Rule::parse("EXAMPLE.com.").unwrap().to_string(),
            "example.com"
        );
    }

    #[test]
    fn what_is_wrong_with_a_rule_is_said() {
        for (text, reason) in [
            ("", "the host is empty"),
            ("https://example.com/x", "names a host, not a page"),
            ("example.com/path", "names a host, not a page"),
            ("example.com/24", "only an address can have"),
            ("*.example.com/24", "only an address can have"),
            ("*example.com", "`*` stands for whole labels"),
            ("a.*.example.com", "`*` stands for whole labels"),
            ("*.*.example.com", "`*` stands for whole labels"),
            ("**", "`*` stands for whole labels"),
            ("2001:db8::1", "written in brackets"),
            ("[2001:db8::1", "which only an IPv6 address is"),
            ("[2001:db8::1]x", "which only an IPv6 address is"),
            ("0x7f.1", "write `127.0.0.1`"),
            ("2130706433", "write `127.0.0.1`"),
            ("[::ffff:10.0.0.1]", "write `10.0.0.1`"),
            ("10.1.2.3/8", "write `10.0.0.0/8`"),
            ("10.0.0.0/33", "`/33` is longer"),
            ("10.0.0.0/x", "only an address can have"),
            ("example.com:", "`` is no port"),
            ("example.com:0", "`0` is no port"),
            ("localhost", "the sandbox itself"),
            ("*.localhost:80", "the sandbox itself"),
            ("user@example.com", "characters that no name has"),
        ] {
            let message = message(text);
            assert!(
                message.starts_with(&format!("cannot read the rule `{text}`: ")),
                "{message}"
            );
            assert!(message.contains(reason), "{text}: {message}");
        }
        assert!(message(&"a".repeat(600)).contains("longer than 512 bytes"));
    }

    #[test]
    fn a_wide_network_opens_no_special_address_inside_it_eg_6() {
        let lists = |rule: &str, address: &str| {
            let rule = Rule::parse(rule).unwrap();
            rule.lists_address(address.parse().unwrap())
        };
        assert!(lists("0.0.0.0/0", "1.1.1.1"));
        assert!(!lists("0.0.0.0/0", "127.0.0.1"));
        assert!(!lists("0.0.0.0/0", "10.0.0.1"));
        assert!(lists("10.0.0.0/8", "10.0.0.1"));
        assert!(lists("10.1.0.0/16", "10.1.0.1"));
        assert!(!lists("169.254.0.0/16", "169.254.169.254"));
        assert!(lists("169.254.169.254", "169.254.169.254"));
        assert!(lists("169.254.169.254", "::ffff:169.254.169.254"));
        assert!(!lists("100.64.0.0/10", "100.100.100.200"));
        assert!(!lists("[::]/0", "::1"));
        assert!(!lists("[::]/0", "fd00::1"));
        assert!(lists("[::]/0", "2606:4700::1"));
        assert!(lists("[fd00::]/8", "fd00::1"));
        assert!(!lists("[fd00::]/8", "fd00:ec2::254"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_rule_or_an_error(text in "\\PC{0,60}|[*a-z0-9.:/\\[\\],-]{0,40}") {
            if let Ok(rule) = Rule::parse(&text) {
                prop_assert_eq!(Rule::parse(&rule.to_string()), Ok(rule));
            }
        }
    }
}
