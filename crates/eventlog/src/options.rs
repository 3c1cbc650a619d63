//! How a log is opened, and how long it keeps things.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use zareba_protocol::SessionId;

use crate::{Durability, Usage, verify::Damage};

/// How a log is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What an acknowledged record survives.
    pub durability: Durability,
    /// What the payloads of one session may take together. Actions are refused from there on;
    /// what tells of things that have happened gets in for another eighth.
    pub session_bytes_max: Option<u64>,
}

/// Which logs of closed sessions are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The sessions that are closed. Others are never removed.
    pub closed: Vec<SessionId>,
    /// Those whose last record is older are removed.
    pub age_max: Option<Duration>,
    /// What the closed ones may take together. Beyond it those that take more than an eighth of
    /// it each are removed, then the oldest: one session that wrote much does not push out many
    /// that wrote little.
    pub bytes_max: Option<u64>,
}

/// What was found and done when a log was opened that had not been closed in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// How many sessions were looked at.
    pub checked: usize,
    /// How many damaged records were cut off at the ends of logs; copies are in the table `torn`.
    pub cut: usize,
    /// What is wrong and was left as it is, because good records follow it.
    pub damage: Vec<Damage>,
}

impl Retention {
    /// Whose logs go, given what each takes.
    pub(crate) fn outdated(&self, usages: Vec<Usage>, now: Timestamp) -> Vec<SessionId> {
        let mut closed: Vec<Usage> = usages
            .into_iter()
            .filter(|usage| self.closed.contains(&usage.session))
            .collect();
        closed.sort_by_key(|usage| usage.changed);
        let mut removed = Vec::new();
        if let Some(age_max) = self.age_max {
            let age_max = SignedDuration::try_from(age_max).unwrap_or(SignedDuration::MAX);
            let (old, young) = closed
                .into_iter()
                .partition(|usage| now.duration_since(usage.changed) > age_max);
            closed = young;
            removed = old;
        }
        if let Some(bytes_max) = self.bytes_max {
            let mut bytes: u64 = closed.iter().map(|usage| usage.bytes).sum();
            // Stable: within each part the oldest still come first.
            closed.sort_by_key(|usage| usage.bytes <= bytes_max / 8);
            for usage in closed {
                if bytes <= bytes_max {
                    break;
                }
                bytes -= usage.bytes;
                removed.push(usage);
            }
        }
        removed.into_iter().map(|usage| usage.session).collect()
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
