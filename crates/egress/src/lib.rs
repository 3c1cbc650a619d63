//! The proxy that a sandbox's traffic passes.
//!
//! Inside the sandbox every address is local, so that whatever a program connects to ends at a
//! socket that this proxy holds, and the connection's own address says what the program wanted.
//! The proxy decides by name and address, connects to exactly the address that it judged, and
//! passes bytes on unchanged. Whatever has no listener is refused by the kernel.
//!
//! The way of a connection is the order of the modules: a [`Policy`] of rules is matched against
//! a [`Host`] and an address by the pure verdict of `judge`; `dns` answers for allowed names
//! only and remembers what it answered; `connection` asks what the client says it wants, checks
//! that against both, and splices; `record` writes every decision down.
//!
//! Deliberately absent: TLS is never broken open, no URL or path is kept, no UDP but name
//! lookups is carried, and nothing here reads configuration or decides what is allowed.

#![deny(missing_docs)]

mod class;
mod connection;
mod denial;
mod dns;
mod host;
mod http;
mod judge;
mod limits;
mod literal;
mod meter;
mod network;
mod opening;
mod policy;
mod ports;
mod proxy;
mod record;
mod resolved;
mod rule;
mod serve;
mod splice;
#[cfg(test)]
mod stage;
mod tls;
mod upstream;

pub use class::AddressClass;
pub use denial::{Denial, Fault};
pub use host::{Host, HostError, HostName};
pub use judge::{Target, Verdict};
pub use limits::Limits;
pub use network::{Network, NetworkError};
pub use policy::{PORTS_MAX, Policy, PolicyError, RULES_MAX};
pub use ports::{Ports, PortsError};
pub use record::{Counters, Decision, DecisionKind, End, HostCounters, Reason, VerdictKind};
pub use rule::{Rule, RuleError, RuleFault};
pub use serve::{Output, ServeError, Sockets, serve};
