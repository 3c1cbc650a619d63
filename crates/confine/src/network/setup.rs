//! The network's part of a launch, on both sides.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{
    addresses,
    listeners::{self, NetworkSockets},
};
use crate::{
    handover,
    policy::Network,
    step::{AtStep as _, Failure, Step},
    sys,
};

/// Where a sandbox's network comes from, if it has one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It came with the sandbox.
    New,
    /// It was there, with its interface up.
    Ready,
}

/// How the sockets leave a sandbox, when there are any.
pub(crate) struct Channel {
    pub(crate) outside: Option<OwnedFd>,
    pub(crate) inside: Option<OwnedFd>,
}

/// Made before there are two sides.
pub(crate) fn channel(network: &Network) -> io::Result<Channel> {
    Ok(match network {
        Network::Filtered { .. } => {
            let (outside, inside) = handover::pair()?;
            Channel {
                outside: Some(outside),
                inside: Some(inside),
            }
        }
        Network::None | Network::Host => Channel {
            outside: None,
            inside: None,
        },
    })
}

/// Inside, while all capabilities are there.
pub(crate) fn set_up(
    network: &Network,
    origin: Origin,
    channel: Option<OwnedFd>,
) -> Result<(), Failure> {
    match (network, channel) {
        (Network::Host, _) => Ok(()),
        (Network::None, _) if origin == Origin::Ready => Ok(()),
        (Network::None, _) => bring_up_loopback(),
        (Network::Filtered { .. }, None) => {
            Err(io::Error::from(io::ErrorKind::NotConnected)).at(Step::Listeners, "the parent")
        }
        (Network::Filtered { tcp_ports }, Some(channel)) => {
            bring_up_loopback()?;
            let families = addresses::make_every_address_local().at(Step::Routes, "lo")?;
            let sockets = listeners::open(tcp_ports, families)?;
            let borrowed: Vec<_> = sockets.iter().map(|socket| socket.as_fd()).collect();
            handover::send(channel, &borrowed).at(Step::Listeners, "the parent")
        }
    }
}

/// Outside, when the sandbox has been set up.
pub(crate) fn receive(channel: Option<OwnedFd>) -> Result<Option<NetworkSockets>, Failure> {
    channel
        .map(|channel| handover::receive(channel).and_then(NetworkSockets::sort))
        .transpose()
        .at(Step::Listeners, "the child")
}

pub(crate) fn bring_up_loopback() -> Result<(), Failure> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .at(Step::Loopback, "socket")?;
    sys::bring_up(c"lo", &socket).at(Step::Loopback, "lo")
}
