//! One decision, as it is written down.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::denial::Denial;

/// What was decided about one lookup or one connection, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// When it began, in milliseconds since 1970.
    pub time_ms: u64,
    /// What it is about.
    pub kind: DecisionKind,
    /// The name that was wanted, when one was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// The address that was wanted; for a lookup the first one that was answered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub address: Option<IpAddr>,
    /// The port that was wanted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub port: Option<u16>,
    /// Whether it was let through.
    pub verdict: VerdictKind,
    /// The rule that let it through.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
    /// Why it was not let through.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Reason>,
    /// How it ended, when it was let through.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end: Option<End>,
    /// Bytes from the sandbox to the outside.
    pub bytes_up: u64,
    /// Bytes from the outside to the sandbox.
    pub bytes_down: u64,
    /// From its beginning to its end, in milliseconds.
    pub duration_ms: u64,
}

/// What a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// A lookup of a name.
    Dns,
    /// A connection.
    Tcp,
}

/// Whether something was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It was.
    Allow,
    /// It was not.
    Deny,
}

/// Why something was not let through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// For programs.
    pub code: String,
    /// For people: what would have to change.
    pub message: String,
}

/// How something that was let through ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Both sides were done, or the lookup was answered.
    Closed,
    /// One side broke the connection off.
    Reset,
    /// No byte passed for longer than the limit.
    Idle,
    /// The other side did not accept the connection, or did not in time.
    Unreachable,
    /// The name servers gave no answer.
    Unresolved,
    /// The proxy stopped.
    Shutdown,
}

impl Decision {
    /// A decision that is still open: allowed by nothing, denied by nothing.
    pub(crate) fn begin(kind: DecisionKind) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            time_ms: milliseconds(since_1970.unwrap_or_default()),
            kind,
            name: None,
            address: None,
            port: None,
            verdict: VerdictKind::Deny,
            rule: None,
            reason: None,
            end: None,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
        }
    }

    pub(crate) fn allow(&mut self, rule: String) {
        self.verdict = VerdictKind::Allow;
        self.rule = Some(rule);
    }

    /// Denies, also what had been allowed before.
    pub(crate) fn deny(&mut self, denial: &Denial) {
        self.verdict = VerdictKind::Deny;
        self.rule = None;
        self.end = None;
        self.reason = Some(Reason {
            code: denial.code().to_owned(),
            message: denial.to_string(),
        });
    }

    pub(crate) fn lasted(&mut self, duration: Duration) {
        self.duration_ms = milliseconds(duration);
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
