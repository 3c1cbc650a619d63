//! The sockets at which a filtered sandbox finds somebody.

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::OwnedFd,
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::addresses::{DNS_V4, DNS_V6, Families};
use crate::{
    handover,
    step::{AtStep as _, Failure, Step},
};

/// Where names are asked, over UDP and TCP.
pub const DNS_PORT: u16 = 53;

/// The most TCP ports that one sandbox may have listeners on.
pub const TCP_PORTS_MAX: usize = 64;

// One for each port and family, and those for names: all travel in one message.
const _: () = assert!(TCP_PORTS_MAX * 2 + 4 <= handover::DESCRIPTORS_MAX);

/// Connections that wait to be accepted, for each listener.
const BACKLOG: i32 = 128;

/// Sockets inside a filtered sandbox, held outside. They do not block. The sandbox has no copies:
/// when they are closed, whatever is tried inside is refused.
///
/// The address that a program asked for is the local address of the accepted connection.
#[derive(Debug)]
pub struct NetworkSockets {
    /// Listening, by port: those of the policy on every address, and [`DNS_PORT`] on [`DNS_V4`]
    /// and [`DNS_V6`]. A port appears once for each version of the protocol.
    pub tcp: Vec<(u16, OwnedFd)>,
    /// Bound to [`DNS_PORT`] of [`DNS_V4`] and [`DNS_V6`].
    pub udp: Vec<OwnedFd>,
    /// There are listeners for IPv6. Not so where it is switched off on this machine: programs
    /// then have IPv4 only, and everything else is refused to them.
    pub v6: bool,
}

/// Makes all sockets; ports below 1024 need `CAP_NET_BIND_SERVICE`.
pub(crate) fn open(tcp_ports: &[u16], families: Families) -> Result<Vec<OwnedFd>, Failure> {
    let ports = distinct(tcp_ports)?;
    let everywhere = ports.iter().flat_map(|&port| {
        families
            .of(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED)
            .map(move |address| (SocketType::STREAM, SocketAddr::new(address, port)))
    });
    let resolver = [SocketType::STREAM, SocketType::DGRAM]
        .into_iter()
        .flat_map(|kind| {
            families
                .of(DNS_V4, DNS_V6)
                .map(move |address| (kind, SocketAddr::new(address, DNS_PORT)))
        });
    everywhere
        .chain(resolver)
        .map(|(kind, address)| bound(kind, address).at(Step::Listeners, address.to_string()))
        .collect()
}

/// Each port once. That of names has listeners already, and only on its own addresses.
fn distinct(tcp_ports: &[u16]) -> Result<BTreeSet<u16>, Failure> {
    let refuse =
        |what: String| Err(io::Error::from_raw_os_error(libc::EINVAL)).at(Step::Listeners, what);
    let ports: BTreeSet<u16> = tcp_ports
        .iter()
        .copied()
        .filter(|&port| port != DNS_PORT)
        .collect();
    if ports.contains(&0) {
        return refuse("port 0".to_owned());
    }
    if ports.len() > TCP_PORTS_MAX {
        return refuse(format!("{} ports of at most {TCP_PORTS_MAX}", ports.len()));
    }
    Ok(ports)
}

fn bound(kind: SocketType, address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address.ip() {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, kind, flags, None)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    if kind == SocketType::STREAM {
        rustix::net::listen(&socket, BACKLOG)?;
    }
    Ok(socket)
}

impl NetworkSockets {
    /// Sorts what came out of a sandbox: sockets know themselves what they are.
    pub(crate) fn sort(sockets: Vec<OwnedFd>) -> io::Result<Self> {
        let mut sorted = Self {
            tcp: Vec::new(),
            udp: Vec::new(),
            v6: false,
        };
        for socket in sockets {
            let address = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
            sorted.v6 |= address.is_ipv6();
            if sockopt::socket_type(&socket)? == SocketType::STREAM {
                sorted.tcp.push((address.port(), socket));
            } else {
                sorted.udp.push(socket);
            }
        }
        Ok(sorted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_named_twice_and_that_of_names_are_taken_once_eg_1() {
        let ports = distinct(&[443, 53, 80, 443]).unwrap();
        assert_eq!(ports, BTreeSet::from([80, 443]));
    }

    #[test]
    fn a_port_that_would_be_any_port_is_refused_eg_1() {
        let failure = distinct(&[443, 0]).unwrap_err();
        assert_eq!(
            (failure.step, failure.errno),
            (Step::Listeners, libc::EINVAL)
        );
        assert_eq!(failure.object, "port 0");
    }

    #[test]
    fn more_ports_than_fit_are_refused_eg_1() {
        let ports: Vec<u16> = (1000..).take(TCP_PORTS_MAX + 1).collect();
        assert!(distinct(&ports[1..]).is_ok());
        let failure = distinct(&ports).unwrap_err();
        assert_eq!(failure.object, "65 ports of at most 64");
    }
}
