//! What kind of address one is: public, or one of the kinds that only a rule by address opens.
//!
//! A name cannot lead to any of these, whatever it resolves to (EG-6): they are this machine, its
//! neighbours, and the services that hand out a cloud machine's credentials.

use std::fmt;
use std::net::IpAddr;

use crate::literal;
use crate::network::Network;

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// Anybody's, out on the internet.
    Public,
    /// No particular address: `0.0.0.0/8` and `::`.
    Unspecified,
    /// This machine.
    Loopback,
    /// This network segment.
    LinkLocal,
    /// A cloud's metadata and credential service.
    Metadata,
    /// A private network, `10.0.0.0/8` and its like.
    Private,
    /// A provider's network, `100.64.0.0/10`.
    Shared,
    /// A private IPv6 network.
    UniqueLocal,
    /// Many machines at once.
    Multicast,
    /// Examples and measurements.
    Documentation,
    /// Not given to anybody, or for the internet's own machinery.
    Reserved,
}

/// A block of addresses that is not for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Special {
    pub(crate) class: AddressClass,
    /// The whole block that is special in this way.
    pub(crate) block: Network,
}

/// The IANA registries of special addresses, and what clouds serve metadata on.
const SPECIAL: &[Special] = &[
    v4(AddressClass::Metadata, [169, 254, 169, 254], 32),
    v4(AddressClass::Metadata, [169, 254, 170, 2], 32),
    v4(AddressClass::Metadata, [169, 254, 170, 23], 32),
    v4(AddressClass::Metadata, [100, 100, 100, 200], 32),
    v4(AddressClass::Metadata, [168, 63, 129, 16], 32),
    v4(AddressClass::Metadata, [192, 0, 0, 192], 32),
    v4(AddressClass::Unspecified, [0, 0, 0, 0], 8),
    v4(AddressClass::Private, [10, 0, 0, 0], 8),
    v4(AddressClass::Shared, [100, 64, 0, 0], 10),
    v4(AddressClass::Loopback, [127, 0, 0, 0], 8),
    v4(AddressClass::LinkLocal, [169, 254, 0, 0], 16),
    v4(AddressClass::Private, [172, 16, 0, 0], 12),
    v4(AddressClass::Reserved, [192, 0, 0, 0], 24),
    v4(AddressClass::Documentation, [192, 0, 2, 0], 24),
    v4(AddressClass::Reserved, [192, 88, 99, 0], 24),
    v4(AddressClass::Private, [192, 168, 0, 0], 16),
    v4(AddressClass::Documentation, [198, 18, 0, 0], 15),
    v4(AddressClass::Documentation, [198, 51, 100, 0], 24),
    v4(AddressClass::Documentation, [203, 0, 113, 0], 24),
    v4(AddressClass::Multicast, [224, 0, 0, 0], 4),
    v4(AddressClass::Reserved, [240, 0, 0, 0], 4),
    v6(
        AddressClass::Metadata,
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
        128,
    ),
    v6(
        AddressClass::Metadata,
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23],
        128,
    ),
    v6(
        AddressClass::Metadata,
        [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254],
        128,
    ),
    v6(AddressClass::Unspecified, [0, 0, 0, 0, 0, 0, 0, 0], 128),
    v6(AddressClass::Loopback, [0, 0, 0, 0, 0, 0, 0, 1], 128),
    v6(AddressClass::LinkLocal, [0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    v6(AddressClass::Private, [0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
    v6(AddressClass::UniqueLocal, [0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
    v6(AddressClass::Multicast, [0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
    v6(AddressClass::Reserved, [0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    v6(
        AddressClass::Documentation,
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0],
        32,
    ),
    v6(
        AddressClass::Documentation,
        [0x3fff, 0, 0, 0, 0, 0, 0, 0],
        20,
    ),
    // Only `2000::/3` is given away, so each other eighth of the space is special as a whole.
    v6(AddressClass::Reserved, [0, 0, 0, 0, 0, 0, 0, 0], 3),
    v6(AddressClass::Reserved, [0x4000, 0, 0, 0, 0, 0, 0, 0], 3),
    v6(AddressClass::Reserved, [0x6000, 0, 0, 0, 0, 0, 0, 0], 3),
    v6(AddressClass::Reserved, [0x8000, 0, 0, 0, 0, 0, 0, 0], 3),
    v6(AddressClass::Reserved, [0xa000, 0, 0, 0, 0, 0, 0, 0], 3),
    v6(AddressClass::Reserved, [0xc000, 0, 0, 0, 0, 0, 0, 0], 3),
    v6(AddressClass::Reserved, [0xe000, 0, 0, 0, 0, 0, 0, 0], 3),
];

impl AddressClass {
    /// The class of an address; an IPv4 address in an IPv6 one is what counts.
    pub fn of(address: IpAddr) -> Self {
        special(address).map_or(Self::Public, |special| special.class)
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Public => "a public address",
            Self::Unspecified => "no particular address",
            Self::Loopback => "a loopback address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a cloud metadata service",
            Self::Private => "a private address",
            Self::Shared => "an address of a provider's own network",
            Self::UniqueLocal => "a private IPv6 address",
            Self::Multicast => "a multicast address",
            Self::Documentation => "an address for examples and measurements",
            Self::Reserved => "a reserved address",
        })
    }
}

/// The smallest special block that holds `address`; `None` when it is public.
pub(crate) fn special(address: IpAddr) -> Option<Special> {
    let address = literal::canonical(address);
    SPECIAL
        .iter()
        .filter(|special| special.block.contains(address))
        .max_by_key(|special| special.block.prefix())
        .copied()
}

const fn v4(class: AddressClass, octets: [u8; 4], prefix: u8) -> Special {
    Special {
        class,
        block: Network::v4(octets, prefix),
    }
}

const fn v6(class: AddressClass, segments: [u16; 8], prefix: u8) -> Special {
    Special {
        class,
        block: Network::v6(segments, prefix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_told_from_the_others_eg_6() {
        let cases = [
            ("1.1.1.1", AddressClass::Public),
            ("2606:4700:4700::1111", AddressClass::Public),
            ("172.15.255.255", AddressClass::Public),
            ("172.32.0.0", AddressClass::Public),
            ("100.128.0.0", AddressClass::Public),
            ("0.0.0.0", AddressClass::Unspecified),
            ("0.1.2.3", AddressClass::Unspecified),
            ("::", AddressClass::Unspecified),
            ("127.0.0.1", AddressClass::Loopback),
            ("127.255.255.254", AddressClass::Loopback),
            ("::1", AddressClass::Loopback),
            ("169.254.1.1", AddressClass::LinkLocal),
            ("fe80::1", AddressClass::LinkLocal),
            ("169.254.169.254", AddressClass::Metadata),
            ("169.254.170.2", AddressClass::Metadata),
            ("100.100.100.200", AddressClass::Metadata),
            ("168.63.129.16", AddressClass::Metadata),
            ("192.0.0.192", AddressClass::Metadata),
            ("fd00:ec2::254", AddressClass::Metadata),
            ("10.0.0.1", AddressClass::Private),
            ("172.16.0.1", AddressClass::Private),
            ("172.31.255.255", AddressClass::Private),
            ("192.168.1.1", AddressClass::Private),
            ("fec0::1", AddressClass::Private),
            ("100.64.0.1", AddressClass::Shared),
            ("fd12:3456::1", AddressClass::UniqueLocal),
            ("224.0.0.251", AddressClass::Multicast),
            ("ff02::1", AddressClass::Multicast),
            ("198.51.100.1", AddressClass::Documentation),
            ("198.18.0.1", AddressClass::Documentation),
            ("2001:db8::1", AddressClass::Documentation),
            ("240.0.0.1", AddressClass::Reserved),
            ("255.255.255.255", AddressClass::Reserved),
            ("192.0.0.8", AddressClass::Reserved),
            ("2001::1", AddressClass::Reserved),
            ("64:ff9b:1::a00:1", AddressClass::Reserved),
            ("4000::1", AddressClass::Reserved),
        ];
        for (address, class) in cases {
            assert_eq!(
                AddressClass::of(address.parse().unwrap()),
                class,
                "{address}"
            );
        }
    }

    #[test]
    fn ipv4_in_ipv6_has_the_class_of_the_ipv4_address_eg_6() {
        for (inner, class) in [
            ("169.254.169.254", AddressClass::Metadata),
            ("10.0.0.1", AddressClass::Private),
            ("127.0.0.1", AddressClass::Loopback),
            ("1.1.1.1", AddressClass::Public),
        ] {
            for clothes in ["::ffff:", "::", "64:ff9b::", "::ffff:0:"] {
                let address: IpAddr = format!("{clothes}{inner}").parse().unwrap();
                assert_eq!(AddressClass::of(address), class, "{address}");
            }
        }
    }
}
