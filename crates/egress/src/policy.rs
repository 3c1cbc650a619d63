//! What a sandbox may reach: the rules, checked as a whole when they are read.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::Limits;
use crate::rule::{Pattern, Rule};

/// Rules in one policy. Each is looked at for each connection.
pub const RULES_MAX: usize = 1024;
/// Ports that can be listened on. Each takes two sockets.
pub const PORTS_MAX: usize = 64;

/// The rules and limits of one sandbox. What no rule allows is denied.
///
/// It is made outside, by whoever answers for the sandbox; nothing inside can change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct Policy {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    allow_everything: bool,
    limits: Limits,
}

/// Why rules make no policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// `*` without the switch that goes with it.
    #[error(
        "the rule `{rule}` opens every name there is; name the hosts that are needed, or use \
         `--network host`, which filters nothing"
    )]
    Everything {
        /// The rule.
        rule: String,
    },
    /// More rules than are kept.
    #[error("{count} rules are more than {RULES_MAX}; use wildcards or networks")]
    TooManyRules {
        /// How many there are.
        count: usize,
    },
    /// More ports than can be listened on.
    #[error("the rules open more than {PORTS_MAX} ports; name the ports that are needed")]
    TooManyPorts,
    /// A limit that would let nothing through.
    #[error("the limit `{limit}` is zero, so that nothing could pass; leave it out or raise it")]
    ZeroLimit {
        /// The limit's name.
        limit: &'static str,
    },
}

/// A policy as it is written down, not yet checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    allow: Vec<Rule>,
    #[serde(default)]
    deny: Vec<Rule>,
    #[serde(default)]
    allow_everything: bool,
    #[serde(default)]
    limits: Limits,
}

impl Policy {
    /// A policy of these rules, in which `*` is refused.
    ///
    /// # Errors
    ///
    /// Names the rule or limit that cannot be.
    pub fn new(allow: Vec<Rule>, deny: Vec<Rule>, limits: Limits) -> Result<Self, PolicyError> {
        Self {
            allow,
            deny,
            allow_everything: false,
            limits,
        }
        .checked()
    }

    /// A policy of these rules, in which `*` may open every name there is: an operator's
    /// explicit choice (EG-3).
    ///
    /// # Errors
    ///
    /// As [`Policy::new`].
    pub fn open(allow: Vec<Rule>, deny: Vec<Rule>, limits: Limits) -> Result<Self, PolicyError> {
        Self {
            allow,
            deny,
            allow_everything: true,
            limits,
        }
        .checked()
    }

    /// What is allowed unless it is denied.
    pub fn allow(&self) -> &[Rule] {
        &self.allow
    }

    /// What is denied whatever allows it.
    pub fn deny(&self) -> &[Rule] {
        &self.deny
    }

    /// What the sandbox may use up.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The TCP ports that have to be listened on: those of the rules, and always 80 and 443, so
    /// that a refusal there can say what is missing. At most [`PORTS_MAX`].
    pub fn ports(&self) -> BTreeSet<u16> {
        let opened = self.allow.iter().flat_map(Rule::allowed_ports);
        // A policy with more has not passed its check; the cap keeps that check cheap as well.
        let mut ports = BTreeSet::from([80, 443]);
        for port in opened {
            ports.insert(port);
            if ports.len() > PORTS_MAX {
                break;
            }
        }
        ports
    }

    fn checked(self) -> Result<Self, PolicyError> {
        let count = self.allow.len() + self.deny.len();
        if count > RULES_MAX {
            return Err(PolicyError::TooManyRules { count });
        }
        let is_everything = |rule: &&Rule| *rule.pattern() == Pattern::EveryName;
        let everything = self.allow.iter().find(is_everything);
        if let Some(rule) = everything.filter(|_| !self.allow_everything) {
            let rule = rule.to_string();
            return Err(PolicyError::Everything { rule });
        }
        if self.ports().len() > PORTS_MAX {
            return Err(PolicyError::TooManyPorts);
        }
        check_limits(&self.limits)?;
        Ok(self)
    }
}

impl TryFrom<Document> for Policy {
    type Error = PolicyError;

    fn try_from(document: Document) -> Result<Self, Self::Error> {
        let Document {
            allow,
            deny,
            allow_everything,
            limits,
        } = document;
        Self {
            allow,
            deny,
            allow_everything,
            limits,
        }
        .checked()
    }
}

impl From<Policy> for Document {
    fn from(policy: Policy) -> Self {
        let Policy {
            allow,
            deny,
            allow_everything,
            limits,
        } = policy;
        Self {
            allow,
            deny,
            allow_everything,
            limits,
        }
    }
}

fn check_limits(limits: &Limits) -> Result<(), PolicyError> {
    let connections = u64::try_from(limits.connections).unwrap_or(u64::MAX);
    for (limit, value) in [
        ("connections", Some(connections)),
        ("idle_ms", Some(limits.idle_ms)),
        ("connect_ms", Some(limits.connect_ms)),
        ("opening_ms", Some(limits.opening_ms)),
        ("bytes_per_second", limits.bytes_per_second),
        ("bytes_total", limits.bytes_total),
    ] {
        if value == Some(0) {
            return Err(PolicyError::ZeroLimit { limit });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Policy, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_policy_is_read_and_written() {
        let json = r#"{"allow":["example.com","*.example.com:8443"],"deny":["bad.example.com"]}"#;
        let policy = read(json).unwrap();
        assert_eq!(
            policy.ports().into_iter().collect::<Vec<_>>(),
            [80, 443, 8443]
        );
        let written = serde_json::to_string(&policy).unwrap();
        assert_eq!(read(&written), Ok(policy));
    }

    #[test]
    fn nothing_is_allowed_by_default_eg_1() {
        let policy = read("{}").unwrap();
        assert!(policy.allow().is_empty());
        assert_eq!(policy.limits(), &Limits::default());
    }

    #[test]
    fn a_bare_star_needs_the_switch_eg_3() {
        let error = read(r#"{"allow":["*:443"]}"#).unwrap_err();
        assert!(
            error.contains("the rule `*:443` opens every name"),
            "{error}"
        );
        let open = read(r#"{"allow":["*"],"allow_everything":true}"#).unwrap();
        let star = vec![Rule::parse("*").unwrap()];
        assert_eq!(Policy::open(star, Vec::new(), Limits::default()), Ok(open));
        assert!(read(r#"{"deny":["*"]}"#).is_ok());
    }

    #[test]
    fn mistakes_are_named() {
        for (json, reason) in [
            (r#"{"alow":[]}"#, "unknown field `alow`"),
            (r#"{"limits":{"idle":1}}"#, "unknown field `idle`"),
            (
                r#"{"allow":["a.*"]}"#,
                "cannot read the rule `a.*`: `*` stands for whole labels",
            ),
            (r#"{"allow":["a.example:1000-1063"]}"#, "more than 64 ports"),
            (
                r#"{"limits":{"connections":0}}"#,
                "the limit `connections` is zero",
            ),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
        assert!(read(r#"{"allow":["a.example:1000-1061"]}"#).is_ok());
        let rules = vec![r#""a.example""#; 1025].join(",");
        let error = read(&format!(r#"{{"allow":[{rules}]}}"#)).unwrap_err();
        assert!(error.contains("1025 rules are more than 1024"), "{error}");
    }
}
