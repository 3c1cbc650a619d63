//! What a sandbox reaches over the network, and how a program in it is reached from outside.
//!
//! A sandbox has a network namespace of its own with nothing in it but a loopback interface, so
//! no packet can leave it: there is no way out that could be left open by mistake (NS-1).
//!
//! With [`Network::Filtered`](crate::Network::Filtered) every address of the world is made
//! *local* to that interface by two routes, `local 0.0.0.0/0` and `local ::/0`. A program that
//! connects to any address then meets a socket of its own namespace, or nobody. Where somebody
//! shall be, the launcher has made sockets that listen, while it still had the rights for it,
//! and has handed them outside over a socket pair ([`NetworkSockets`]); the sandbox keeps no
//! copy. Whoever holds them outside sees each connection with the address that the program asked
//! for, as the local address of the accepted socket, and decides (EG-1). Consequences:
//!
//! - Programs need no proxy settings, and cannot get around the proxy by ignoring them.
//! - A port without a listener, TCP or UDP, is refused at once, and so is everything after
//!   whoever held the sockets is gone (EG-9).
//! - Reverse path filters and firewalls of the machine have no part in it: packets go from lo to
//!   lo, with a route that they carry along.
//! - Names are asked at one address per family ([`DNS_V4`], [`DNS_V6`]), to which the sockets of
//!   port 53 are bound, so that answers come from where the question went.
//! - No program inside can take the place of a listener: the ports are taken for all addresses,
//!   without `SO_REUSEADDR` or `SO_REUSEPORT`, and those below 1024 need a capability anyway. If
//!   they are given up outside, a program may listen on a port above that, and fools itself.
//!   It also means that a port in the list cannot be used for a server of the sandbox's own.
//! - Routes and addresses cannot be changed inside: that needs a capability in the namespace's
//!   owner, and all are dropped.
//!
//! The other way, a [`Doorway`] makes a connection to a program inside: a socket belongs to the
//! namespace in which it was made, wherever it is used later. So nothing inside has to help, and
//! the sandbox's own network stays as closed as it was.

mod addresses;
mod doorway;
mod listeners;
mod listening;
mod netlink;
mod ready;
mod setup;

pub use addresses::{DNS_V4, DNS_V6, OWN_V4, OWN_V6};
pub use doorway::{Doorway, DoorwayError};
pub use listeners::{DNS_PORT, NetworkSockets, TCP_PORTS_MAX};
pub use listening::Listening;
pub(crate) use ready::kept_descriptor;
pub use ready::{MakeNetworkError, ReadyNetwork};
pub(crate) use setup::{Origin, channel, receive, set_up};
