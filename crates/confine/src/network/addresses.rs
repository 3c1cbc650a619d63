//! Addresses of a filtered sandbox, and the routes that make all others its own.
//!
//! They are of the ranges for documentation (RFC 5737, RFC 3849), which nothing in the world has:
//! no real address is hidden by them.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::netlink::Netlink;

/// The sandbox's own address, from which its connections come. Without an address other than
/// that of loopback, name lookups with `AI_ADDRCONFIG` find nothing.
pub const OWN_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The same for IPv6.
pub const OWN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// Where names are asked: for `/etc/resolv.conf` inside.
pub const DNS_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);
/// The same for IPv6; answers only where [`NetworkSockets::v6`](super::NetworkSockets::v6).
pub const DNS_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x53);

/// Which versions of the protocol a sandbox has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Families {
    V4AndV6,
    /// IPv6 is switched off on this machine.
    V4Only,
}

impl Families {
    /// Of an address for each version, those that can be used.
    pub(crate) fn of(self, v4: Ipv4Addr, v6: Ipv6Addr) -> impl Iterator<Item = IpAddr> + use<> {
        let v6 = match self {
            Self::V4AndV6 => Some(IpAddr::V6(v6)),
            Self::V4Only => None,
        };
        [IpAddr::V4(v4)].into_iter().chain(v6)
    }
}

/// Makes every address local to the loopback interface, which must be up.
pub(crate) fn make_every_address_local() -> io::Result<Families> {
    let mut netlink = Netlink::open()?;
    take_all(&mut netlink, OWN_V4.into(), DNS_V4.into())?;
    match take_all(&mut netlink, OWN_V6.into(), DNS_V6.into()) {
        Ok(()) => Ok(Families::V4AndV6),
        Err(error) if is_switched_off(&error) => Ok(Families::V4Only),
        Err(error) => Err(error),
    }
}

/// The resolver's address is given to the interface too: IPv6 lets a socket be bound to no other.
fn take_all(netlink: &mut Netlink, own: IpAddr, resolver: IpAddr) -> io::Result<()> {
    netlink.add_address(own)?;
    netlink.add_address(resolver)?;
    netlink.make_all_local(own)
}

/// How the kernel says that it has no IPv6 at all (`ipv6.disable=1`), or none on this interface
/// (`disable_ipv6`). A lack of rights is `EPERM`.
fn is_switched_off(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAFNOSUPPORT | libc::EOPNOTSUPP | libc::EACCES)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{network::setup, sys};

    /// In a network of its own that ends with the thread.
    fn in_a_new_network(work: impl FnOnce() + Send + 'static) {
        let thread = std::thread::spawn(|| {
            sys::unshare_network().unwrap();
            work();
        });
        thread.join().unwrap();
    }

    #[test]
    #[ignore = "needs root"]
    fn without_ipv6_the_sandbox_has_ipv4_eg_1() {
        in_a_new_network(|| {
            std::fs::write("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "1").unwrap();
            setup::bring_up_loopback().unwrap();
            assert_eq!(make_every_address_local().unwrap(), Families::V4Only);
        });
    }

    #[test]
    #[ignore = "needs root"]
    fn a_refusal_is_not_taken_for_a_lack_of_ipv6_eg_1() {
        in_a_new_network(|| {
            setup::bring_up_loopback().unwrap();
            assert_eq!(make_every_address_local().unwrap(), Families::V4AndV6);
            // All of it is there already.
            let error = make_every_address_local().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EEXIST));
        });
    }
}
