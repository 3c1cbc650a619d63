//! The system call filter of a container, in the Engine's words (DK-1).
//!
//! The decisions are those of the `native` sandbox: one file for both, so that a call is never
//! open in one and shut in the other. The Engine's language is poorer than that file's. It knows
//! no order of rules, and conditions that are refusals get lost beside a plain permission for the
//! same call. So refusals are turned around here: a call is allowed where none of its refusals
//! holds, written as alternatives of `argument & mask == value`, which `alternatives` works out.

mod alternatives;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use self::alternatives::Alternatives;

/// The decisions, with their reasons.
const PROFILE: &str = include_str!("../../confine/src/seccomp/profile.toml");

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// What is granted beyond the plain profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permissions {
    /// Debuggers and tracers.
    pub(crate) debugging: bool,
    /// Set-user-ID bits on files, which matter only where this machine sees them.
    pub(crate) set_id_files: bool,
}

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeccompError {
    #[error("the profile of system calls cannot be read")]
    Parse(#[source] Box<toml::de::Error>),
    #[error("the conditions for `{call}` cannot be told to the Engine")]
    TooManyAlternatives { call: String },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    allow: Vec<Allow>,
    deny: Vec<Deny>,
}

#[derive(Debug, Deserialize)]
struct Allow {
    calls: Vec<String>,
    with: Option<Permission>,
    #[serde(default)]
    when: Vec<Condition>,
}

#[derive(Debug, Deserialize)]
struct Deny {
    calls: Vec<String>,
    unless: Option<Permission>,
    #[serde(default)]
    when: Vec<Condition>,
    #[serde(default)]
    errno: Errno,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Permission {
    Debugging,
    UserNamespaces,
    SetIdFiles,
}

/// The low 32 bits of an argument, after the mask, are one of some values, or it is a pointer.
#[derive(Clone, Debug, Deserialize)]
struct Condition {
    argument: u8,
    mask: Option<u32>,
    #[serde(default)]
    is: Vec<u32>,
    is_null: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum Errno {
    #[default]
    #[serde(rename = "EPERM")]
    NotPermitted,
    #[serde(rename = "ENOSYS")]
    NotThere,
    #[serde(rename = "NONE")]
    None,
}

impl Errno {
    fn number(self) -> u32 {
        match self {
            Self::NotPermitted => EPERM,
            Self::NotThere => ENOSYS,
            Self::None => 0,
        }
    }
}

impl Permissions {
    fn include(self, permission: Option<Permission>) -> bool {
        match permission {
            None => true,
            Some(Permission::Debugging) => self.debugging,
            Some(Permission::SetIdFiles) => self.set_id_files,
            Some(Permission::UserNamespaces) => false,
        }
    }
}

/// What is said about one call.
#[derive(Debug)]
struct Decision<'a> {
    allowed: Vec<&'a [Condition]>,
    refused: Vec<(&'a [Condition], Errno)>,
    /// What is answered where it is not allowed.
    errno: u32,
}

impl Default for Decision<'_> {
    fn default() -> Self {
        Self {
            allowed: Vec::new(),
            refused: Vec::new(),
            errno: EPERM,
        }
    }
}

/// The filter as the Engine takes it.
pub(crate) fn profile(permissions: Permissions) -> Result<Value, SeccompError> {
    let profile: Profile =
        toml::from_str(PROFILE).map_err(|error| SeccompError::Parse(Box::new(error)))?;
    let mut rules = Vec::new();
    for (call, decision) in decisions(&profile, permissions) {
        let too_many = || SeccompError::TooManyAlternatives {
            call: call.to_owned(),
        };
        let allowed = alternatives_of(&decision).ok_or_else(too_many)?;
        let everywhere = allowed.is_always();
        rules.extend(allowed.rules().map(
            |arguments| json!({ "names": [call], "action": "SCMP_ACT_ALLOW", "args": arguments }),
        ));
        // An answer of its own is said for the very arguments: without any it would go before all else.
        for (conditions, errno) in &decision.refused {
            if *errno == Errno::NotPermitted {
                continue;
            }
            let refused = hold(conditions).ok_or_else(too_many)?;
            rules.extend(refused.rules().map(|arguments| {
                json!({
                    "names": [call],
                    "action": "SCMP_ACT_ERRNO",
                    "errnoRet": errno.number(),
                    "args": arguments,
                })
            }));
        }
        // Where it is allowed sometimes, the rest falls to the default, which is the same answer.
        if !everywhere && (allowed.is_never() || decision.errno != EPERM) {
            rules.push(json!({
                "names": [call],
                "action": "SCMP_ACT_ERRNO",
                "errnoRet": decision.errno,
            }));
        }
    }
    Ok(json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        "archMap": [{ "architecture": architecture(), "subArchitectures": [] }],
        "syscalls": rules,
    }))
}

/// By call, in the order of names, so that the same profile is the same text.
fn decisions<'a>(
    profile: &'a Profile,
    permissions: Permissions,
) -> BTreeMap<&'a str, Decision<'a>> {
    let mut decisions: BTreeMap<&str, Decision<'_>> = BTreeMap::new();
    for entry in &profile.allow {
        for call in &entry.calls {
            let decision = decisions.entry(call).or_default();
            if permissions.include(entry.with) {
                decision.allowed.push(&entry.when);
            }
        }
    }
    for entry in &profile.deny {
        let is_lifted = entry.unless.is_some() && permissions.include(entry.unless);
        for call in &entry.calls {
            let decision = decisions.entry(call).or_default();
            if entry.when.is_empty() {
                // Not a refusal of what is allowed, only what is said to all the rest.
                decision.errno = entry.errno.number();
            } else if !is_lifted {
                decision.refused.push((&entry.when, entry.errno));
            }
        }
    }
    decisions
}

/// Where a call is allowed: some permission holds, and no refusal does.
fn alternatives_of(decision: &Decision<'_>) -> Option<Alternatives> {
    let mut allowed = Alternatives::never();
    for conditions in &decision.allowed {
        allowed = allowed.or(hold(conditions)?);
    }
    for (conditions, _) in &decision.refused {
        let mut spared = Alternatives::never();
        for condition in *conditions {
            spared = spared.or(fails(condition)?);
        }
        allowed = allowed.and(&spared)?;
    }
    Some(allowed)
}

/// Where all of these hold.
fn hold(conditions: &[Condition]) -> Option<Alternatives> {
    let mut all = Alternatives::always();
    for condition in conditions {
        all = all.and(&holds(condition))?;
    }
    Some(all)
}

fn holds(condition: &Condition) -> Alternatives {
    let mask = condition.mask.unwrap_or(u32::MAX);
    match condition.is_null {
        None => Alternatives::one_of(condition.argument, mask, &condition.is),
        Some(true) => Alternatives::null(condition.argument),
        Some(false) => Alternatives::not_null(condition.argument),
    }
}

fn fails(condition: &Condition) -> Option<Alternatives> {
    let mask = condition.mask.unwrap_or(u32::MAX);
    match condition.is_null {
        None => Alternatives::none_of(condition.argument, mask, &condition.is),
        Some(true) => Some(Alternatives::not_null(condition.argument)),
        Some(false) => Some(Alternatives::null(condition.argument)),
    }
}

/// Calls of other architectures, 32-bit ones above all, end the process.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "SCMP_ARCH_AARCH64",
        _ => "SCMP_ARCH_X86_64",
    }
}

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod tests;
