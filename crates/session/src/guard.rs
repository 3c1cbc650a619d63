//! What stands between a client and the sandbox.

use zareba_protocol::SecurityRisk;
use zareba_runtime::SandboxId;
use zareba_wire::BoxFuture;

use crate::{Deed, Requester, SessionInfo};

/// What a guard says of a deed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It must not.
    Deny {
        /// How dangerous it is.
        risk: SecurityRisk,
        /// Why, for the agent and for people.
        reason: String,
    },
}

/// What a guard knows of a deed beside the deed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DeedContext<'a> {
    /// The client that asks.
    pub requester: &'a Requester,
    /// The session; `None` for a sandbox that a command uses without a server.
    pub session: Option<&'a SessionInfo>,
    /// The sandbox; `None` for what does not reach it.
    pub sandbox: Option<&'a SandboxId>,
}

/// Judges deeds: actions ([`Deed::Action`]), programs, terminals, files, ports, hosts of tools, and
/// what is done to a session as a whole. A guard that panics or does not answer in time denies.
pub trait Guard: Send + Sync {
    /// Judges one deed before it is done.
    fn assess<'a>(&'a self, deed: &'a Deed, context: DeedContext<'a>) -> BoxFuture<'a, Verdict>;
}

/// Lets everything through.
#[derive(Clone, Copy, Debug)]
pub struct AllowAll;

impl Guard for AllowAll {
    fn assess<'a>(&'a self, _deed: &'a Deed, _context: DeedContext<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(std::future::ready(Verdict::Allow))
    }
}
