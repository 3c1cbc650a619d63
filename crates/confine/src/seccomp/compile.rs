//! From a profile to a filter: names become numbers, entries become decisions, decisions of
//! neighbours become runs.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::{
    calls::{self, Meaning},
    error::SeccompError,
    profile::{Condition, Errno, Permissions, SeccompProfile},
    program::{self, Decision, Run, Verdict},
};

/// `AUDIT_ARCH_X86_64` and `AUDIT_ARCH_AARCH64`: the machine's number in executables, marked as
/// 64-bit and little-endian. A 32-bit call has another value, whatever its number.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// Combinations of values that one entry may stand for; a profile has a dozen.
const ALTERNATIVES_MAX: usize = 64;

pub(super) fn compile(
    profile: &SeccompProfile,
    permissions: Permissions,
) -> Result<BpfProgram, SeccompError> {
    program::write(architecture()?, &runs(&decisions(profile, permissions)?))
}

/// The same before it is shortened, to compare with.
#[cfg(test)]
pub(super) fn compile_at_length(
    profile: &SeccompProfile,
    permissions: Permissions,
) -> Result<BpfProgram, SeccompError> {
    let runs = runs(&decisions(profile, permissions)?);
    Ok(program::write_at_length(architecture()?, &runs))
}

fn architecture() -> Result<u32, SeccompError> {
    ARCHITECTURE.ok_or(SeccompError::Architecture {
        architecture: std::env::consts::ARCH,
    })
}

/// What the entries say about one call.
#[derive(Default)]
struct Gathered {
    denied_when: Vec<(SeccompRule, Verdict)>,
    allowed_when: Vec<(SeccompRule, Verdict)>,
    allowed: bool,
    denied: Option<Verdict>,
}

impl Gathered {
    /// The order that the profile's first lines promise.
    fn decide(self) -> Decision {
        let mut rules = self.denied_when;
        let otherwise = if self.allowed {
            Verdict::ALLOW
        } else {
            rules.extend(self.allowed_when);
            self.denied.unwrap_or(Verdict::NOT_PERMITTED)
        };
        Decision { rules, otherwise }
    }
}

fn decisions(
    profile: &SeccompProfile,
    permissions: Permissions,
) -> Result<BTreeMap<u32, Decision>, SeccompError> {
    let mut gathered: BTreeMap<u32, Gathered> = BTreeMap::new();
    let denied = profile
        .deny
        .iter()
        .filter(|entry| entry.permission.is_none() || !permissions.include(entry.permission));
    for entry in denied {
        let verdict = match entry.errno {
            Errno::NotPermitted => Verdict::NOT_PERMITTED,
            Errno::NotThere => Verdict::NOT_THERE,
            Errno::None => Verdict::PRETENDED,
        };
        for name in &entry.calls {
            let rules = alternatives(name, &entry.when, verdict)?;
            let Some(call) = gathered_of(&mut gathered, name)? else {
                continue;
            };
            if entry.when.is_empty() && call.denied.replace(verdict).is_some() {
                return Err(SeccompError::Contradiction { name: name.clone() });
            }
            call.denied_when.extend(rules);
        }
    }
    for entry in &profile.allow {
        for name in &entry.calls {
            let rules = alternatives(name, &entry.when, Verdict::ALLOW)?;
            let Some(call) = gathered_of(&mut gathered, name)? else {
                continue;
            };
            if !permissions.include(entry.permission) {
                continue;
            }
            let is_plain = entry.when.is_empty();
            // A permission may lift a denial; without one, one of the two entries is a mistake.
            let lifts_denial = is_plain && entry.permission.is_none() && call.denied.is_some();
            if lifts_denial || (is_plain && call.allowed) {
                return Err(SeccompError::Contradiction { name: name.clone() });
            }
            call.allowed |= is_plain;
            call.allowed_when.extend(rules);
        }
    }
    Ok(gathered
        .into_iter()
        .map(|(number, call)| (number, call.decide()))
        .collect())
}

/// Where to note what is said about a call; `None` for one that this architecture lacks.
fn gathered_of<'a>(
    gathered: &'a mut BTreeMap<u32, Gathered>,
    name: &str,
) -> Result<Option<&'a mut Gathered>, SeccompError> {
    match calls::meaning(name) {
        Some(Meaning::Number(number)) => Ok(Some(gathered.entry(number).or_default())),
        Some(Meaning::Elsewhere) => Ok(None),
        None => Err(SeccompError::UnknownCall {
            name: name.to_owned(),
        }),
    }
}

/// One rule for each combination of the values that the conditions leave open.
fn alternatives(
    name: &str,
    when: &[Condition],
    verdict: Verdict,
) -> Result<Vec<(SeccompRule, Verdict)>, SeccompError> {
    if when.is_empty() {
        return Ok(Vec::new());
    }
    let mut combinations: Vec<Vec<SeccompCondition>> = vec![Vec::new()];
    for condition in when {
        let bad = || SeccompError::BadCondition {
            name: name.to_owned(),
            argument: condition.argument,
        };
        let values = comparisons(condition).ok_or_else(bad)?;
        combinations = combinations
            .iter()
            .flat_map(|so_far| {
                values
                    .iter()
                    .map(|next| [so_far.as_slice(), std::slice::from_ref(next)].concat())
            })
            .collect();
        if combinations.is_empty() || combinations.len() > ALTERNATIVES_MAX {
            return Err(bad());
        }
    }
    let rules = combinations
        .into_iter()
        .map(|conditions| SeccompRule::new(conditions).map(|rule| (rule, verdict)));
    rules
        .collect::<Result<_, _>>()
        .map_err(|_| SeccompError::BadCondition {
            name: name.to_owned(),
            argument: 0,
        })
}

/// `None` when a value has bits that the mask takes away, there is no such argument, or the condition says
/// two things.
fn comparisons(condition: &Condition) -> Option<Vec<SeccompCondition>> {
    if let Some(is_null) = condition.is_null {
        if condition.mask.is_some() || !condition.values.is_empty() {
            return None;
        }
        let operator = match is_null {
            true => SeccompCmpOp::Eq,
            false => SeccompCmpOp::Ne,
        };
        let whole = SeccompCmpArgLen::Qword;
        let comparison = SeccompCondition::new(condition.argument, whole, operator, 0);
        return comparison.ok().map(|it| vec![it]);
    }
    let compare = |value: u32| {
        if condition.mask.is_some_and(|mask| value & !mask != 0) {
            return None;
        }
        let operator = match condition.mask {
            Some(mask) => SeccompCmpOp::MaskedEq(u64::from(mask)),
            None => SeccompCmpOp::Eq,
        };
        SeccompCondition::new(
            condition.argument,
            SeccompCmpArgLen::Dword,
            operator,
            u64::from(value),
        )
        .ok()
    };
    condition.values.iter().copied().map(compare).collect()
}

/// Fills the gaps between the numbers, and what comes after the last, with "not there".
fn runs(decisions: &BTreeMap<u32, Decision>) -> Vec<Run> {
    let not_there = Decision::plain(Verdict::NOT_THERE);
    let mut runs: Vec<Run> = Vec::new();
    let mut next = 0;
    for (&number, decision) in decisions {
        if number > next {
            extend(&mut runs, next, &not_there);
        }
        extend(&mut runs, number, decision);
        next = number + 1;
    }
    extend(&mut runs, next, &not_there);
    runs
}

/// Starts a run, unless the last one decides the same.
fn extend(runs: &mut Vec<Run>, first: u32, decision: &Decision) {
    if runs.last().is_none_or(|last| last.decision != *decision) {
        runs.push(Run {
            first,
            decision: decision.clone(),
        });
    }
}
