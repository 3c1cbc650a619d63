//! Addresses in the spellings that programs accept, brought back to the one that is judged.
//!
//! `2130706433`, `0x7f.1`, `0177.0.0.1` and `::ffff:127.0.0.1` all reach the same place, so they
//! must all meet the same rule (EG-2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a resolver would take `text` for a number instead of a name: its last part is one.
pub(crate) fn ends_in_a_number(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or(text);
    let is_decimal = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    is_decimal || number(last).is_some()
}

/// The address that `inet_aton` and browsers read from `text`: one to four parts, each decimal,
/// octal or hexadecimal, the last one filling all bytes that are left.
pub(crate) fn loose_ipv4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u32> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, leading) = parts.split_last()?;
    if leading.len() > 3 || leading.iter().any(|part| *part > 255) {
        return None;
    }
    let room = 32 - 8 * leading.len();
    if u64::from(*last) >= 1 << room {
        return None;
    }
    let high = leading
        .iter()
        .fold(0_u32, |address, part| address << 8 | part);
    let address = u64::from(high) << room | u64::from(*last);
    u32::try_from(address).ok().map(Ipv4Addr::from)
}

/// An IPv6 address as it stands between brackets, with or without a zone. The zone names an
/// interface of whoever wrote it and says nothing about where the address leads.
pub(crate) fn loose_ipv6(text: &str) -> Option<Ipv6Addr> {
    let address = text.split_once('%').map_or(text, |(address, _)| address);
    address.parse().ok()
}

/// The address that is judged in place of `address`: the IPv4 address that an IPv6 one carries,
/// be it mapped, translated, compatible, NAT64 or 6to4; any other address as it is.
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(wrapped) => carried_ipv4(wrapped).map_or(address, IpAddr::V4),
    }
}

fn carried_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        // `::` and `::1` are themselves, not 0.0.0.0 and 0.0.0.1.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))),
        _ => None,
    }
}

/// One part of a loosely written IPv4 address.
fn number(part: &str) -> Option<u32> {
    let (digits, radix) = if let Some(hex) = part.strip_prefix("0x").or(part.strip_prefix("0X")) {
        (hex, 16)
    } else if part.len() > 1 && part.starts_with('0') {
        (part, 8)
    } else {
        (part, 10)
    };
    // `from_str_radix` takes a sign, an address does not. A bare `0x` counts as zero.
    match digits {
        "" if radix == 16 => Some(0),
        _ if digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            u32::from_str_radix(digits, radix).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_metadata_address_is_read_as_it_eg_2() {
        for text in [
            "169.254.169.254",
            "2852039166",
            "0xa9fea9fe",
            "0XA9.0xFE.0xa9.0xfe",
            "0251.0376.0251.0376",
            "169.16689662",
            "169.254.43518",
            "0xa9.254.0251.254",
        ] {
            assert_eq!(
                loose_ipv4(text),
                Some(Ipv4Addr::new(169, 254, 169, 254)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_address_is_not_read_as_one() {
        for text in [
            "",
            ".",
            "1.",
            "256.1.1.1",
            "1.2.3.4.5",
            "1.2.3.256",
            "4294967296",
            "08",
            "0xg",
            "+1",
            "1..2",
            "1.2.65536",
            "-1",
        ] {
            assert_eq!(loose_ipv4(text), None, "{text}");
        }
    }

    #[test]
    fn ipv4_in_ipv6_clothes_is_undressed_eg_2() {
        let plain: IpAddr = "169.254.169.254".parse().unwrap();
        for text in [
            "::ffff:169.254.169.254",
            "::ffff:a9fe:a9fe",
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
        ] {
            assert_eq!(canonical(text.parse().unwrap()), plain, "{text}");
        }
        for text in ["::", "::1", "2606:4700::1111", "fe80::1", "64:ff9b:1::1"] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(canonical(address), address, "{text}");
        }
    }

    #[test]
    fn a_zone_is_dropped() {
        assert_eq!(loose_ipv6("fe80::1%eth0"), "fe80::1".parse().ok());
        assert_eq!(loose_ipv6("fe80::1%"), "fe80::1".parse().ok());
        assert_eq!(loose_ipv6("fe80:::1"), None);
    }
}
