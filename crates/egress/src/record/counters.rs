//! Sums over all decisions of a sandbox, and over those of each host.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::record::decision::{Decision, VerdictKind};

/// Hosts that are counted apart. The one with the fewest decisions makes room for a new one, so
/// that a flood of strange names does not hide those that matter.
const HOSTS_MAX: usize = 256;

/// What a sandbox did on the network so far. Lookups count among allowed and denied as well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Decisions that let something through.
    pub allowed: u64,
    /// Decisions that did not.
    pub denied: u64,
    /// Bytes from the sandbox to the outside.
    pub bytes_up: u64,
    /// Bytes from the outside to the sandbox.
    pub bytes_down: u64,
    /// By name, or by address where there was no name.
    pub hosts: BTreeMap<String, HostCounters>,
    /// What hosts that are not listed any more had.
    pub others: HostCounters,
}

/// What one host had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCounters {
    /// Decisions that let something through.
    pub allowed: u64,
    /// Decisions that did not.
    pub denied: u64,
    /// Bytes from the sandbox to the host.
    pub bytes_up: u64,
    /// Bytes from the host to the sandbox.
    pub bytes_down: u64,
}

impl Counters {
    pub(crate) fn count(&mut self, decision: &Decision) {
        let mut one = HostCounters {
            bytes_up: decision.bytes_up,
            bytes_down: decision.bytes_down,
            ..HostCounters::default()
        };
        match decision.verdict {
            VerdictKind::Allow => one.allowed = 1,
            VerdictKind::Deny => one.denied = 1,
        }
        self.allowed += one.allowed;
        self.denied += one.denied;
        self.bytes_up = self.bytes_up.saturating_add(one.bytes_up);
        self.bytes_down = self.bytes_down.saturating_add(one.bytes_down);
        let address = || decision.address.map(|address| address.to_string());
        match decision.name.clone().or_else(address) {
            Some(host) => self.of(host).add(&one),
            None => self.others.add(&one),
        }
    }

    /// Replaces the file, so that a reader sees the old sums or the new ones, whole.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&name)?;
        file.write_all(&text)?;
        fs::rename(&name, path)
    }

    fn of(&mut self, host: String) -> &mut HostCounters {
        if self.hosts.len() >= HOSTS_MAX && !self.hosts.contains_key(&host) {
            self.make_room();
        }
        self.hosts.entry(host).or_default()
    }

    fn make_room(&mut self) {
        let least = self.hosts.iter().min_by_key(|(_, host)| host.decisions());
        let least = least.map(|(name, _)| name.clone());
        if let Some(host) = least.and_then(|name| self.hosts.remove(&name)) {
            self.others.add(&host);
        }
    }
}

impl HostCounters {
    fn add(&mut self, other: &Self) {
        self.allowed += other.allowed;
        self.denied += other.denied;
        self.bytes_up = self.bytes_up.saturating_add(other.bytes_up);
        self.bytes_down = self.bytes_down.saturating_add(other.bytes_down);
    }

    fn decisions(&self) -> u64 {
        self.allowed + self.denied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DecisionKind;

    fn decision(name: &str, verdict: VerdictKind, bytes_up: u64) -> Decision {
        Decision {
            name: Some(name.to_owned()),
            verdict,
            bytes_up,
            bytes_down: 2 * bytes_up,
            ..Decision::begin(DecisionKind::Tcp)
        }
    }

    #[test]
    fn decisions_are_summed_up_by_host() {
        let mut counters = Counters::default();
        counters.count(&decision("a.example", VerdictKind::Allow, 10));
        counters.count(&decision("a.example", VerdictKind::Deny, 0));
        counters.count(&decision("b.example", VerdictKind::Allow, 1));
        let a = HostCounters {
            allowed: 1,
            denied: 1,
            bytes_up: 10,
            bytes_down: 20,
        };
        let b = HostCounters {
            allowed: 1,
            denied: 0,
            bytes_up: 1,
            bytes_down: 2,
        };
        assert_eq!(
            counters,
            Counters {
                allowed: 2,
                denied: 1,
                bytes_up: 11,
                bytes_down: 22,
                hosts: [("a.example".to_owned(), a), ("b.example".to_owned(), b)].into(),
                others: HostCounters::default(),
            }
        );
    }

    #[test]
    fn a_flood_of_names_does_not_hide_the_host_that_matters() {
        let mut counters = Counters::default();
        for _ in 0..3 {
            counters.count(&decision("real.example", VerdictKind::Allow, 1));
        }
        for number in 0..1000 {
            counters.count(&decision(
                &format!("{number}.example"),
                VerdictKind::Deny,
                0,
            ));
        }
        assert_eq!(counters.hosts.len(), HOSTS_MAX);
        assert_eq!(counters.hosts["real.example"].allowed, 3);
        assert_eq!(
            counters.others.denied,
            1001 - u64::try_from(HOSTS_MAX).unwrap()
        );
    }
}
