//! The ports that a rule is about.

use std::fmt;
use std::ops::RangeInclusive;

use thiserror::Error;

/// Ports and ranges in one rule.
const RANGES_MAX: usize = 16;
/// Name lookups end at our own resolver, so this port cannot be given to anything else.
const DNS: u16 = 53;

/// One or more ports and ranges of ports: `443`, `80,443`, `8000-8010`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(Vec<RangeInclusive<u16>>);

/// Why a text is no list of ports.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PortsError {
    /// Not a number from 1 to 65535.
    #[error("`{text}` is no port; write a number from 1 to 65535, a range `8000-8010`, or a list")]
    Number {
        /// What was written.
        text: String,
    },
    /// A range that ends before it begins.
    #[error("the range `{text}` ends before it begins")]
    Backwards {
        /// What was written.
        text: String,
    },
    /// More than the named limit.
    #[error("more than {RANGES_MAX} ports and ranges in one rule; use several rules")]
    TooMany,
    /// The port that lookups use.
    #[error("port {DNS} belongs to the sandbox's own resolver; it cannot be opened")]
    Dns,
}

impl Ports {
    /// Reads what stands behind the colon of a rule.
    ///
    /// # Errors
    ///
    /// Says which entry is wrong.
    pub fn parse(text: &str) -> Result<Self, PortsError> {
        let mut ranges = Vec::new();
        for entry in text.split(',') {
            if ranges.len() == RANGES_MAX {
                return Err(PortsError::TooMany);
            }
            ranges.push(range(entry)?);
        }
        Ok(Self(ranges))
    }

    /// Whether a port is one of them.
    pub fn contains(&self, port: u16) -> bool {
        self.0.iter().any(|range| range.contains(&port))
    }

    /// Every port, possibly some twice; as many as were asked for, which may be all there are.
    pub(crate) fn each(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().cloned().flatten()
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            write!(formatter, "{}", range.start())?;
            if range.end() > range.start() {
                write!(formatter, "-{}", range.end())?;
            }
        }
        Ok(())
    }
}

fn range(text: &str) -> Result<RangeInclusive<u16>, PortsError> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = port(first, text)?..=port(last, text)?;
    if range.is_empty() {
        return Err(PortsError::Backwards { text: text.into() });
    }
    if range.contains(&DNS) {
        return Err(PortsError::Dns);
    }
    Ok(range)
}

fn port(text: &str, entry: &str) -> Result<u16, PortsError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|port| is_number && *port > 0);
    number.ok_or_else(|| PortsError::Number { text: entry.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_read() {
        let ports = Ports::parse("443,8000-8010").unwrap();
        assert_eq!(
            [442, 443, 7999, 8000, 8010, 8011].map(|port| ports.contains(port)),
            [false, true, false, true, true, false]
        );
        assert_eq!(ports.to_string(), "443,8000-8010");
    }

    #[test]
    fn what_is_no_port_is_refused() {
        for (text, message) in [
            ("", "`` is no port"),
            ("0", "`0` is no port"),
            ("65536", "`65536` is no port"),
            ("+80", "`+80` is no port"),
            ("80,", "`` is no port"),
            ("80-", "`80-` is no port"),
            ("https", "`https` is no port"),
            ("90-80", "the range `90-80` ends"),
            ("53", "port 53 belongs"),
            ("1-100", "port 53 belongs"),
        ] {
            let error = Ports::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
        let many = vec!["80"; 17].join(",");
        assert_eq!(Ports::parse(&many), Err(PortsError::TooMany));
    }
}
