//! The one form in which a host is compared, wherever it was written (EG-2).
//!
//! Rules, TLS server names, `Host` headers and DNS questions all become a [`Host`] before they
//! are looked at, so two spellings of one host cannot meet two different verdicts.

use std::fmt;
use std::net::IpAddr;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use thiserror::Error;

use crate::literal;

/// Longest name that DNS can carry, without its final dot.
const NAME_BYTES_MAX: usize = 253;
/// Longest part of a name between two dots.
const LABEL_BYTES_MAX: usize = 63;
/// Longest text that is looked at: what a name takes when it is written in Unicode.
const TEXT_BYTES_MAX: usize = 1024;

/// Where somebody wants to go: a name, or an address that needs none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name that has to be resolved.
    Name(HostName),
    /// An address, in whatever spelling it came.
    Address(IpAddr),
}

/// A domain name in lower-case ASCII without a final dot, never an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(Box<str>);

/// Why a text is no host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// There is nothing.
    #[error("the host is empty; write a name or an address")]
    Empty,
    /// It cannot be a name any more.
    #[error("the host is longer than {NAME_BYTES_MAX} bytes; no name is")]
    TooLong,
    /// Something that no name has: a user, a port, a path, a space, a control character.
    #[error("the host has characters that no name has; write only the name or the address")]
    Character,
    /// Two dots in a row, a part that is too long, or one that begins or ends with a hyphen.
    #[error(
        "the host has a part that is empty, longer than {LABEL_BYTES_MAX} bytes, or has a hyphen \
         at its edge"
    )]
    Label,
    /// It ends in a number, so programs take it for an address, and it is none.
    #[error("the host looks like an IPv4 address and is none")]
    Address,
    /// It is in brackets, and what they hold is no IPv6 address.
    #[error("the host is in brackets, which only an IPv6 address is, and is none")]
    Brackets,
}

impl Host {
    /// Reads a host without a port.
    ///
    /// # Errors
    ///
    /// Everything that is neither a name nor an address, with what is wrong about it.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(HostError::TooLong);
        }
        if let Some(inside) = text.strip_prefix('[') {
            let inside = inside.strip_suffix(']').ok_or(HostError::Brackets)?;
            let address = literal::loose_ipv6(inside).ok_or(HostError::Brackets)?;
            return Ok(Self::Address(literal::canonical(address.into())));
        }
        let ascii = to_ascii(text)?;
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        if literal::ends_in_a_number(name) {
            let address = literal::loose_ipv4(name).ok_or(HostError::Address)?;
            return Ok(Self::Address(address.into()));
        }
        check_labels(name)?;
        Ok(Self::Name(HostName(name.into())))
    }
}

impl HostName {
    /// Reads a name.
    ///
    /// # Errors
    ///
    /// As [`Host::parse`], and [`HostError::Address`] for an address.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        match Host::parse(text)? {
            Host::Name(name) => Ok(name),
            Host::Address(_) => Err(HostError::Address),
        }
    }

    /// The name as it is compared, sent and written down.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this name has at least one label more than `parent` and ends in it, label for
    /// label: `a.example.com` is below `example.com`; `badexample.com` is not, nor is the
    /// parent itself (EG-3).
    pub fn is_below(&self, parent: &HostName) -> bool {
        self.0
            .strip_suffix(parent.as_str())
            .is_some_and(|rest| rest.ends_with('.'))
    }

    /// Whether the name means the machine that asks (RFC 6761): it is never sent anywhere.
    pub fn is_local(&self) -> bool {
        let last = self.0.rsplit('.').next();
        last == Some("localhost")
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(formatter),
            Self::Address(address) => address.fmt(formatter),
        }
    }
}

/// Lower case, Unicode as punycode, and none of the characters that separate a host from what
/// surrounds it.
fn to_ascii(text: &str) -> Result<String, HostError> {
    Uts46::new()
        .to_ascii(
            text.as_bytes(),
            AsciiDenyList::URL,
            Hyphens::Allow,
            DnsLength::Ignore,
        )
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| HostError::Character)
}

fn check_labels(name: &str) -> Result<(), HostError> {
    if name.len() > NAME_BYTES_MAX {
        return Err(HostError::TooLong);
    }
    for label in name.split('.') {
        // An underscore is in many real names, although no host should be called so.
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        if !label.bytes().all(is_plain) {
            return Err(HostError::Character);
        }
        let is_hyphenated = label.starts_with('-') || label.ends_with('-');
        if label.is_empty() || label.len() > LABEL_BYTES_MAX || is_hyphenated {
            return Err(HostError::Label);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn spellings_of_one_name_are_one_name_eg_2() {
        for text in [
            "bücher.example",
            "BÜCHER.example",
            "xn--bcher-kva.example",
            "XN--BCHER-KVA.EXAMPLE.",
            "bu\u{308}cher.example",
            "bücher。example",
        ] {
            assert_eq!(name(text).as_str(), "xn--bcher-kva.example", "{text}");
        }
    }

    #[test]
    fn an_address_is_never_a_name_eg_2() {
        for text in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.1",
            "127.0.0.1.",
            "１２７.0.0.1",
            "127。0。0。1",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
        ] {
            let loopback = Host::Address("127.0.0.1".parse().unwrap());
            assert_eq!(Host::parse(text), Ok(loopback), "{text}");
        }
        let link_local = Host::Address("fe80::1".parse().unwrap());
        assert_eq!(Host::parse("[fe80::1%25eth0]"), Ok(link_local));
    }

    #[test]
    fn what_is_no_host_is_refused_with_the_reason_eg_2() {
        let long = "a.".repeat(127) + "a";
        for (text, reason) in [
            ("", HostError::Empty),
            (".", HostError::Label),
            ("a..b", HostError::Label),
            ("example.com..", HostError::Label),
            ("-a.example", HostError::Label),
            (long.as_str(), HostError::TooLong),
            ("user@example.com", HostError::Character),
            ("example.com:80", HostError::Character),
            ("example.com/", HostError::Character),
            ("exam ple.com", HostError::Character),
            ("example.com\n", HostError::Character),
            ("exa\0mple.com", HostError::Character),
            ("*.example.com", HostError::Character),
            ("example.com%00.evil", HostError::Character),
            ("1.2.3.256", HostError::Address),
            ("example.1", HostError::Address),
            ("[::1", HostError::Brackets),
            ("[example.com]", HostError::Brackets),
        ] {
            assert_eq!(Host::parse(text), Err(reason), "{text:?}");
        }
        assert_eq!(HostName::parse(&"a".repeat(64)), Err(HostError::Label));
    }

    #[test]
    fn only_whole_labels_are_below_eg_3() {
        let parent = name("example.com");
        assert!(name("a.example.com").is_below(&parent));
        assert!(name("a.b.example.com").is_below(&parent));
        assert!(!name("example.com").is_below(&parent));
        assert!(!name("badexample.com").is_below(&parent));
        assert!(!name("example.com.evil.org").is_below(&parent));
    }

    #[test]
    fn names_of_this_machine_are_known() {
        assert!(name("localhost").is_local());
        assert!(name("LOCALHOST.").is_local());
        assert!(name("a.localhost").is_local());
        assert!(!name("notlocalhost").is_local());
        assert!(!name("localhost.example").is_local());
    }

    proptest! {
        #[test]
        fn a_canonical_name_stays_what_it_is(text in "\\PC{0,80}|[a-zA-Z0-9._üß-]{1,60}") {
            if let Ok(Host::Name(name)) = Host::parse(&text) {
                prop_assert_eq!(HostName::parse(name.as_str()), Ok(name.clone()));
                let plain = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
                prop_assert!(name.as_str().bytes().all(plain));
                prop_assert!(name.as_str().len() <= NAME_BYTES_MAX);
                prop_assert!(!name.as_str().ends_with('.'));
                prop_assert!(name.as_str().parse::<IpAddr>().is_err());
            }
        }

        #[test]
        fn case_and_the_final_dot_do_not_matter(text in "[a-z][a-z0-9]{0,9}(\\.[a-z][a-z0-9]{0,9}){0,4}") {
            let upper = text.to_uppercase() + ".";
            prop_assert_eq!(Host::parse(&upper), Host::parse(&text));
        }

        #[test]
        fn every_number_is_the_address_that_it_writes(bits: u32) {
            let address = Host::Address(std::net::Ipv4Addr::from(bits).into());
            for text in [format!("{bits}"), format!("{bits:#x}"), format!("0{bits:o}")] {
                prop_assert_eq!(Host::parse(&text), Ok(address.clone()));
            }
        }
    }
}
