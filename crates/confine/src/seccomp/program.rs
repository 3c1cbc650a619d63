//! Instructions for the kernel's filter machine.
//!
//! Conditions on arguments are written by `seccompiler`. How a number finds its decision is
//! written here, as a binary search over runs of numbers with the same decision: the kernel tries
//! every number when a filter is installed, to remember which are always allowed, and a filter
//! that compares one number after another makes that cost 0.7 ms for 300 calls (measured), more
//! than all namespaces together.

use seccompiler::{BpfProgram, SeccompRule, sock_filter};

use super::{error::SeccompError, shorten::shorten};

/// What the kernel accepts, `BPF_MAXINSNS`.
pub(super) const INSTRUCTIONS_MAX: usize = 4096;

/// Where the call's number is in what a filter is given, and where its architecture.
pub(super) const NUMBER_OFFSET: u32 = 0;
pub(super) const ARCHITECTURE_OFFSET: u32 = 4;

/// `BPF_LD | BPF_W | BPF_ABS`.
pub(super) const LOAD: u16 = 0x20;
/// `BPF_ALU | BPF_AND | BPF_K`, which masks what was loaded.
pub(super) const AND: u16 = 0x54;
/// `BPF_JMP | BPF_JA`.
pub(super) const JUMP: u16 = 0x05;
/// `BPF_JMP | BPF_JEQ | BPF_K`.
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
/// `BPF_JMP | BPF_JGE | BPF_K`.
pub(super) const JUMP_IF_AT_LEAST: u16 = 0x35;
/// `BPF_RET | BPF_K`.
pub(super) const RETURN: u16 = 0x06;

/// What happens to a call; the value that a filter returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict(pub(super) u32);

impl Verdict {
    pub(super) const ALLOW: Self = Self(libc::SECCOMP_RET_ALLOW);
    pub(super) const KILL: Self = Self(libc::SECCOMP_RET_KILL_PROCESS);
    pub(super) const NOT_PERMITTED: Self = Self(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    pub(super) const NOT_THERE: Self = Self(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
    /// Looks made, and is not.
    pub(super) const PRETENDED: Self = Self(libc::SECCOMP_RET_ERRNO);
}

/// How one call is decided: by the first rule that holds, or else by `otherwise`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) rules: Vec<(SeccompRule, Verdict)>,
    pub(super) otherwise: Verdict,
}

impl Decision {
    pub(super) fn plain(verdict: Verdict) -> Self {
        Self {
            rules: Vec::new(),
            otherwise: verdict,
        }
    }
}

/// A run of numbers with the same decision, up to the next run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) decision: Decision,
}

/// Writes the whole filter. `runs` starts at number 0 and ascends.
pub(super) fn write(architecture: u32, runs: &[Run]) -> Result<BpfProgram, SeccompError> {
    let program = shorten(&write_at_length(architecture, runs));
    if program.len() > INSTRUCTIONS_MAX {
        return Err(SeccompError::TooLong {
            instructions: program.len(),
        });
    }
    Ok(program)
}

pub(super) fn write_at_length(architecture: u32, runs: &[Run]) -> BpfProgram {
    let mut program = vec![
        load(ARCHITECTURE_OFFSET),
        branch(JUMP_IF_EQUAL, architecture, 1, 0),
        finish(Verdict::KILL),
        load(NUMBER_OFFSET),
    ];
    program.append(&mut search(runs));
    program
}

/// Finds the run that a number belongs to. As deep as the number of runs has binary digits.
fn search(runs: &[Run]) -> BpfProgram {
    let (lower, upper) = runs.split_at(runs.len() / 2);
    let Some(first_upper) = upper.first() else {
        return Vec::new();
    };
    if lower.is_empty() {
        return decide(&first_upper.decision);
    }
    let mut below = search(lower);
    let mut program = match u8::try_from(below.len()) {
        Ok(distance) => vec![branch(JUMP_IF_AT_LEAST, first_upper.first, distance, 0)],
        // A conditional jump reaches 255 instructions; a plain one reaches any.
        Err(_) => vec![
            branch(JUMP_IF_AT_LEAST, first_upper.first, 0, 1),
            statement(JUMP, u32::try_from(below.len()).unwrap_or(u32::MAX)),
        ],
    };
    program.append(&mut below);
    program.append(&mut search(upper));
    program
}

/// A rule that does not hold continues behind its verdict, with the next rule.
fn decide(decision: &Decision) -> BpfProgram {
    let mut program = Vec::new();
    for (rule, verdict) in &decision.rules {
        program.append(&mut BpfProgram::from(rule.clone()));
        program.push(finish(*verdict));
    }
    program.push(finish(decision.otherwise));
    program
}

fn load(offset: u32) -> sock_filter {
    statement(LOAD, offset)
}

pub(super) fn finish(verdict: Verdict) -> sock_filter {
    statement(RETURN, verdict.0)
}

pub(super) fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}

pub(super) fn branch(code: u16, k: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter {
        code,
        jt: if_true,
        jf: if_false,
        k,
    }
}
