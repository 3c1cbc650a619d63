//! Who listens inside, from the kernel's own tables.
//!
//! The tables are written by the kernel, but how long they are is up to programs inside, so both
//! what is read and what is kept have an end. Listening sockets come before all others there.

use std::{
    io::{self, Read},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// The most that is read of one table: about seven thousand sockets.
const TABLE_MAX_BYTES: u64 = 1024 * 1024;

/// The most addresses that are told.
const ADDRESSES_MAX: usize = 1024;

/// The state of a socket that listens, as the tables spell it.
const LISTENS: &str = "0A";

/// Where programs inside listen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listening {
    /// Addresses and TCP ports, in order, each once.
    pub addresses: Vec<SocketAddr>,
    /// There was more than anybody needs, and some of it was left out.
    pub is_cut_short: bool,
}

impl Listening {
    /// Adds what a table tells, without ports for which `is_ours`.
    pub(crate) fn read(
        &mut self,
        table: impl Read,
        is_ours: impl Fn(u16) -> bool,
    ) -> io::Result<()> {
        let mut text = Vec::new();
        let mut table = table.take(TABLE_MAX_BYTES);
        table.read_to_end(&mut text)?;
        self.is_cut_short |= table.limit() == 0;
        let text = String::from_utf8_lossy(&text);
        let found = text.lines().skip(1).filter_map(listening_address);
        self.addresses
            .extend(found.filter(|address| !is_ours(address.port())));
        self.addresses.sort_unstable();
        self.addresses.dedup();
        self.is_cut_short |= self.addresses.len() > ADDRESSES_MAX;
        self.addresses.truncate(ADDRESSES_MAX);
        Ok(())
    }
}

/// The local address of a line such as `0: 0100007F:1F90 00000000:0000 0A …`, if it listens.
fn listening_address(line: &str) -> Option<SocketAddr> {
    let mut words = line.split_ascii_whitespace();
    let (_number, local, _remote, state) =
        (words.next()?, words.next()?, words.next()?, words.next()?);
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    (state == LISTENS).then_some(SocketAddr::new(ip(address)?, port))
}

/// An address as the kernel keeps it: words of 32 bits, each printed as a number of this machine.
fn ip(text: &str) -> Option<IpAddr> {
    let word = |index: usize| {
        let digits = text.get(index * 8..(index + 1) * 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut octets = [0; 16];
            for (index, chunk) in octets.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(index)?);
            }
            Some(Ipv6Addr::from(octets).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "  sl  local_address rem_address   st tx_queue rx_queue\n";

    fn read(lines: &str) -> Listening {
        let mut listening = Listening::default();
        let table = format!("{HEADER}{lines}");
        listening
            .read(table.as_bytes(), |port| port == 443)
            .unwrap();
        listening
    }

    /// As the kernel would write it on this machine.
    fn line(address: SocketAddr, state: &str) -> String {
        let words: String = match address.ip() {
            IpAddr::V4(ip) => format!("{:08X}", u32::from_ne_bytes(ip.octets())),
            IpAddr::V6(ip) => ip
                .octets()
                .chunks_exact(4)
                .map(|word| format!("{:08X}", u32::from_ne_bytes(word.try_into().unwrap())))
                .collect(),
        };
        format!(
            "   0: {words}:{:04X} 00000000:0000 {state} 0:0\n",
            address.port()
        )
    }

    #[test]
    fn addresses_of_both_families_are_read() {
        let addresses: Vec<SocketAddr> = ["127.0.0.1:8080", "[::1]:8081", "[2001:db8::7]:1"]
            .map(|address| address.parse().unwrap())
            .to_vec();
        let lines: String = addresses
            .iter()
            .map(|&address| line(address, "0A"))
            .collect();
        assert_eq!(read(&lines).addresses, addresses);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_line_of_a_real_table_is_read() {
        let real = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1 0 100 0\n";
        assert_eq!(read(real).addresses, ["127.0.0.1:8080".parse().unwrap()]);
    }

    #[test]
    fn only_who_listens_and_is_not_ours_is_told() {
        let at = |text: &str, state| line(text.parse().unwrap(), state);
        let lines = [
            at("127.0.0.1:1", "01"),
            at("0.0.0.0:443", "0A"),
            at("127.0.0.1:2", "0A"),
            at("127.0.0.1:2", "0A"),
        ]
        .concat();
        assert_eq!(read(&lines).addresses, ["127.0.0.1:2".parse().unwrap()]);
    }

    #[test]
    fn broken_lines_are_passed_over() {
        let lines = "\n0:\n0: x:y z 0A\n0: 0100007F 0 0A\n0: 0100007F:FFFFF 0 0A\n0: €00007F:0001 0 0A\n\
                     0: +100007F:0001\n0: 0100007F0:0001 0 0A";
        assert_eq!(read(lines), Listening::default());
    }

    #[test]
    fn a_table_without_end_is_cut_short() {
        let mut listening = Listening::default();
        listening.read(io::repeat(b'\n'), |_| false).unwrap();
        assert!(listening.is_cut_short);
        let many: String = (1..=u16::try_from(ADDRESSES_MAX).unwrap() + 1)
            .map(|port| {
                line(
                    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 1000 + port),
                    "0A",
                )
            })
            .collect();
        let listening = read(&many);
        assert!(listening.is_cut_short);
        assert_eq!(listening.addresses.len(), ADDRESSES_MAX);
    }
}
