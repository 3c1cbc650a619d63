//! What stands between a client and the sandbox.

use zareba_protocol::{ActionEvent, SecurityRisk};
use zareba_runtime::SandboxId;
use zareba_wire::BoxFuture;

use crate::{Deed, Requester, SessionInfo};

/// What a guard says of an action or a deed.
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

/// Judges actions and deeds. A guard that cannot judge denies.
pub trait Guard: Send + Sync {
    /// Judges one action of one session.
    fn assess<'a>(
        &'a self,
        action: &'a ActionEvent,
        session: &'a SessionInfo,
    ) -> BoxFuture<'a, Verdict>;

    /// Judges what is no action of a session: programs, terminals, files, ports, hosts of tools.
    /// A guard that says nothing about deeds allows them.
    fn assess_deed<'a>(
        &'a self,
        deed: &'a Deed,
        context: DeedContext<'a>,
    ) -> BoxFuture<'a, Verdict> {
        let _ = (deed, context);
        Box::pin(std::future::ready(Verdict::Allow))
    }
}

/// Lets everything through.
#[derive(Clone, Copy, Debug)]
pub struct AllowAll;

impl Guard for AllowAll {
    fn assess<'a>(
        &'a self,
        _action: &'a ActionEvent,
        _session: &'a SessionInfo,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(std::future::ready(Verdict::Allow))
    }
}
