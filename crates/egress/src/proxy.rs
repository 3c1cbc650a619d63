//! What all lookups and connections of one sandbox share.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Semaphore, watch};

use crate::denial::Denial;
use crate::dns::Pace;
use crate::host::HostName;
use crate::judge::{Target, Verdict};
use crate::meter::Meter;
use crate::policy::Policy;
use crate::record::Recorder;
use crate::resolved::Resolved;
use crate::upstream::{Route, Upstream};

/// One sandbox's proxy. Locks are held for lookups in memory only, never across an await.
pub(crate) struct Proxy {
    pub(crate) policy: Policy,
    pub(crate) upstream: Box<dyn Upstream>,
    pub(crate) meter: Meter,
    pub(crate) recorder: Recorder,
    /// One permit per connection.
    pub(crate) slots: Arc<Semaphore>,
    resolved: Mutex<Resolved>,
    pace: Mutex<Pace>,
    closing: watch::Receiver<bool>,
}

impl Proxy {
    /// A proxy that stops when `closing` turns true or its sender goes away.
    pub(crate) fn new(
        policy: Policy,
        upstream: Box<dyn Upstream>,
        recorder: Recorder,
        closing: watch::Receiver<bool>,
    ) -> Self {
        let limits = policy.limits();
        Self {
            meter: Meter::new(limits),
            slots: Arc::new(Semaphore::new(
                limits.connections.min(Semaphore::MAX_PERMITS),
            )),
            policy,
            upstream,
            recorder,
            resolved: Mutex::default(),
            pace: Mutex::new(Pace::new(Instant::now())),
            closing,
        }
    }

    /// Returns when the proxy is to stop.
    pub(crate) async fn closed(&self) {
        let mut closing = self.closing.clone();
        // An error means that whoever could say so is gone, which says the same.
        let _ = closing.wait_for(|is_closing| *is_closing).await;
    }

    pub(crate) fn resolved(&self) -> MutexGuard<'_, Resolved> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more lookup may be made now.
    pub(crate) fn may_look_up(&self) -> bool {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.admit(Instant::now())
    }

    /// The name and the rule that open an address for whoever does not say a name: the latest
    /// name that was resolved to it and is allowed on that port. Several allowed names at one
    /// address are no ambiguity, since each of them may be reached there.
    pub(crate) fn opened_by(&self, wanted: SocketAddr) -> Result<(HostName, String), Denial> {
        let (address, port) = (wanted.ip(), wanted.port());
        let resolved = self.resolved();
        let mut first = None;
        for name in resolved.names_of(address, Instant::now()) {
            match self.judge(Some(name), wanted) {
                Verdict::Allow { rule } => return Ok((name.clone(), rule.to_string())),
                Verdict::Deny { reason } => first = first.or(Some(reason)),
            }
        }
        Err(match (first, self.judge(None, wanted)) {
            (Some(reason), _) | (None, Verdict::Deny { reason }) => reason,
            (None, Verdict::Allow { .. }) => Denial::Address { address, port },
        })
    }

    /// The rule that opens `wanted` under the name that the client says (EG-4): allowed, and
    /// resolved to exactly that address for this sandbox.
    pub(crate) fn opened_as(&self, name: &HostName, wanted: SocketAddr) -> Result<String, Denial> {
        let rule = match self.judge(Some(name), wanted) {
            Verdict::Allow { rule } => rule.to_string(),
            Verdict::Deny { reason } => return Err(reason),
        };
        let address = wanted.ip();
        if self.resolved().contains(name, address, Instant::now()) {
            Ok(rule)
        } else {
            let name = name.clone();
            Err(Denial::NotResolved { name, address })
        }
    }

    pub(crate) fn judge(&self, name: Option<&HostName>, wanted: SocketAddr) -> Verdict<'_> {
        self.policy.judge(Target {
            name,
            address: wanted.ip(),
            port: wanted.port(),
        })
    }

    /// Denies this machine's own addresses, public ones included, unless they are listed
    /// (EG-6): what listens here is not for the sandbox.
    pub(crate) fn check_route(&self, address: IpAddr) -> Result<(), Denial> {
        let is_own = self.upstream.route(address) == Route::Own;
        if is_own && !self.policy.lists(address) {
            return Err(Denial::OwnAddress { address });
        }
        Ok(())
    }
}
