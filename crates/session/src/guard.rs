//! What stands between an action and the sandbox.

use zareba_protocol::{ActionEvent, SecurityRisk};
use zareba_wire::BoxFuture;

use crate::SessionInfo;

/// What a guard says of an action.
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

/// Judges actions. It errs on the side of no: whoever cannot judge denies.
pub trait Guard: Send + Sync {
    /// Judges one action of one session.
    fn assess<'a>(
        &'a self,
        action: &'a ActionEvent,
        session: &'a SessionInfo,
    ) -> BoxFuture<'a, Verdict>;
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
