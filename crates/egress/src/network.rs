//! A range of addresses with a common beginning, as rules name them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// An address and how many of its first bits count; the others are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Why an address and a length are no network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetworkError {
    /// More bits than the address has.
    #[error("`/{prefix}` is longer than the {bits} bits of the address")]
    Prefix {
        /// What was written.
        prefix: u8,
        /// What is possible.
        bits: u8,
    },
    /// Bits behind the prefix are set, so it is not clear what is meant.
    #[error("`{address}` lies inside the network that is meant; write `{network}`")]
    Inside {
        /// What was written.
        address: IpAddr,
        /// The network that holds it.
        network: Network,
    },
}

impl Network {
    pub(crate) const fn v4(octets: [u8; 4], prefix: u8) -> Self {
        let [a, b, c, d] = octets;
        Self {
            address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            prefix,
        }
    }

    pub(crate) const fn v6(segments: [u16; 8], prefix: u8) -> Self {
        let [a, b, c, d, e, f, g, h] = segments;
        Self {
            address: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)),
            prefix,
        }
    }

    /// The network that starts at `address`.
    ///
    /// # Errors
    ///
    /// When the prefix is too long, or the address is not the network's first.
    pub fn new(address: IpAddr, prefix: u8) -> Result<Self, NetworkError> {
        let bits = width(address);
        if prefix > bits {
            return Err(NetworkError::Prefix { prefix, bits });
        }
        let network = Self::around(address, prefix);
        if network.address == address {
            Ok(network)
        } else {
            Err(NetworkError::Inside { address, network })
        }
    }

    /// The network of exactly one address.
    pub fn single(address: IpAddr) -> Self {
        Self {
            address,
            prefix: width(address),
        }
    }

    /// Whether the address begins like the network and is of its family.
    pub fn contains(&self, address: IpAddr) -> bool {
        Self::around(address, self.prefix.min(width(address))) == *self
    }

    /// How many bits count: the larger, the smaller the network.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Its address, if it has only one.
    pub(crate) fn only(&self) -> Option<IpAddr> {
        (self.prefix == width(self.address)).then_some(self.address)
    }

    fn around(address: IpAddr, prefix: u8) -> Self {
        let address = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(u32::from(32 - prefix.min(32)));
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask.unwrap_or(0)))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(u32::from(128 - prefix.min(128)));
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask.unwrap_or(0)))
            }
        };
        Self { address, prefix }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V4(address) => write!(formatter, "{address}")?,
            IpAddr::V6(address) => write!(formatter, "[{address}]")?,
        }
        if self.prefix < width(self.address) {
            write!(formatter, "/{}", self.prefix)?;
        }
        Ok(())
    }
}

/// Bits of an address of that family.
fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str, prefix: u8) -> Result<Network, NetworkError> {
        Network::new(address.parse().unwrap(), prefix)
    }

    #[test]
    fn a_network_holds_what_begins_like_it() {
        let cases = [
            ("10.0.0.0", 8, "10.255.1.2", true),
            ("10.0.0.0", 8, "11.0.0.0", false),
            ("0.0.0.0", 0, "255.255.255.255", true),
            ("0.0.0.0", 0, "::", false),
            ("::", 0, "ffff::", true),
            ("2001:db8::", 32, "2001:db8:ffff::1", true),
            ("2001:db8::", 32, "2001:db9::", false),
            ("1.2.3.4", 32, "1.2.3.4", true),
            ("1.2.3.4", 32, "1.2.3.5", false),
        ];
        for (first, prefix, address, expected) in cases {
            let contains = network(first, prefix)
                .unwrap()
                .contains(address.parse().unwrap());
            assert_eq!(contains, expected, "{first}/{prefix} {address}");
        }
    }

    #[test]
    fn an_address_inside_is_answered_with_the_network() {
        let error = network("10.1.2.3", 8).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`10.1.2.3` lies inside the network that is meant; write `10.0.0.0/8`"
        );
        let error = network("1.2.3.4", 33).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`/33` is longer than the 32 bits of the address"
        );
    }

    #[test]
    fn it_is_written_as_rules_write_it() {
        assert_eq!(network("10.0.0.0", 8).unwrap().to_string(), "10.0.0.0/8");
        assert_eq!(
            network("2001:db8::", 32).unwrap().to_string(),
            "[2001:db8::]/32"
        );
        assert_eq!(network("::1", 128).unwrap().to_string(), "[::1]");
    }
}
