//! What holds a sandbox, layer by layer, as the kernel tells it.
//!
//! The policy says what should be; this says what is. It is read from outside, right after the
//! program has started and before anybody can ask it for anything, and a layer that is not in
//! force is an error, not a line in the report. Two layers cannot be read from outside. What
//! Landlock covers is what its enforcement returned; a process that failed to enforce it was not
//! started. That no further user namespaces can be made was read back inside, before the start.

use std::{fs::File, os::fd::AsFd as _};

use rustix::process::Pid;
use serde::Serialize;

use crate::{
    cgroup,
    paths::{Enforcement, LandlockReport, MissingRight},
    policy::{Identity, Network, Policy},
    readback::{
        Capabilities, IdMap, IdRange, MountReport, NamespaceKind, Namespaces, ProcessDirectory,
        ProcessLimit, ReadBackError, SeccompMode, Status, check_mounts,
    },
    rlimits::{CORE_BYTES, crashes_start_a_program},
};

/// What is known beside what can be read back.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What the sandbox should be like.
    pub policy: &'a Policy,
    /// What Landlock covers.
    pub landlock: &'a LandlockReport,
    /// What came of the limits of its control groups.
    pub control_groups: &'a cgroup::Report,
    /// What holds limits that control groups do not.
    pub others: &'a [OtherLimit],
}

/// What is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use = "an unread report hides a sandbox weaker than the one requested"]
pub struct EnforcementReport {
    /// Each kind, and whether it is the sandbox's own.
    pub namespaces: Vec<NamespaceInForce>,
    /// Who its users are outside.
    pub users: Vec<MappedIds>,
    /// Who its groups are outside.
    pub groups: Vec<MappedIds>,
    /// Everything that is mounted.
    pub mounts: MountReport,
    /// How many capabilities it has or could ever get, in all five sets together.
    pub capabilities: u32,
    /// Whether no program can give it any.
    pub no_new_privileges: bool,
    /// How many filters look at its system calls; old kernels do not say.
    pub seccomp_filters: Option<u32>,
    /// What Landlock adds to the mounts.
    pub landlock: LandlockInForce,
    /// Limits of each process.
    pub process_limits: Vec<LimitRow>,
    /// Limits of all processes together.
    pub control_groups: ControlGroupsInForce,
    /// Limits that something else holds.
    pub other_limits: Vec<OtherLimit>,
    /// How many user namespaces can be made inside.
    pub nested_user_namespaces: u32,
    /// What can be reached.
    pub network: Network,
}

/// One namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamespaceInForce {
    /// Of which kind.
    pub kind: &'static str,
    /// Its number.
    pub inode: u64,
    /// Whether we are in another one.
    pub is_own: bool,
}

/// Users or groups that follow one another on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MappedIds {
    /// The first, inside.
    pub inside: u32,
    /// The first, outside.
    pub outside: u32,
    /// How many.
    pub count: u32,
}

/// What Landlock covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LandlockInForce {
    /// What the kernel has.
    pub abi: i32,
    /// Whether that is all that this version would ask for.
    pub is_complete: bool,
    /// What it cannot restrict.
    pub missing: Vec<&'static str>,
}

/// One limit of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitRow {
    /// What the kernel calls it.
    pub name: String,
    /// In force; `None` is no limit.
    pub soft: Option<u64>,
    /// Up to which it may be raised.
    pub hard: Option<u64>,
}

/// What control groups hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ControlGroupsInForce {
    /// Limits that hold.
    pub enforced: Vec<GroupLimit>,
    /// Limits that were asked for and do not.
    pub missing: Vec<MissingGroupLimit>,
}

/// A limit that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupLimit {
    /// Of what.
    pub limit: String,
    /// The file that holds it.
    pub file: &'static str,
    /// What the kernel says is in it.
    pub value: String,
}

/// A limit that something else than control groups holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OtherLimit {
    /// Of what.
    pub limit: &'static str,
    /// What holds it.
    pub held_by: &'static str,
    /// Up to what.
    pub value: u64,
    /// By how much it can be passed; empty when it cannot.
    pub overshoot: &'static str,
}

/// A limit that does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingGroupLimit {
    /// Of what.
    pub limit: String,
    /// Why not.
    pub reason: String,
    /// What somebody who runs the machine can do about it.
    pub remedy: &'static str,
}

impl EnforcementReport {
    /// Reads what is in force for a program in a sandbox: not its first process, but the one that this
    /// has started, as long as it lets others look at it.
    ///
    /// # Errors
    /// When the process has ended, or a layer is not in force.
    pub fn read(program: Pid, evidence: Evidence<'_>) -> Result<Self, ReadBackError> {
        let proc = File::open("/proc").map_err(|source| ReadBackError::ReadFile {
            file: "/proc",
            source,
        })?;
        let process = ProcessDirectory::open(proc.as_fd(), program)?;
        let own = ProcessDirectory::own_namespaces(proc.as_fd())?;
        let facts = process.facts()?;
        let policy = evidence.policy;
        require_status(&facts.status)?;
        require_map("users", &facts.users, users(policy.identity))?;
        require_map("groups", &facts.groups, groups(policy.identity))?;
        require_namespaces(&facts.namespaces, own, &policy.network)?;
        let limits = process.limits()?;
        require_no_cores(&limits)?;
        Ok(Self {
            namespaces: namespaces(&facts.namespaces, own),
            users: ranges(&facts.users),
            groups: ranges(&facts.groups),
            mounts: check_mounts(&process, policy)?,
            capabilities: 0,
            no_new_privileges: facts.status.no_new_privileges,
            seccomp_filters: facts.status.seccomp_filters,
            landlock: landlock(evidence.landlock),
            process_limits: limits.into_iter().map(limit_row).collect(),
            control_groups: control_groups(evidence),
            other_limits: evidence.others.to_vec(),
            nested_user_namespaces: 0,
            network: policy.network.clone(),
        })
    }
}

fn not_in_force(what: impl Into<String>) -> ReadBackError {
    ReadBackError::NotInForce { what: what.into() }
}

fn require(holds: bool, what: impl Into<String>) -> Result<(), ReadBackError> {
    if holds {
        Ok(())
    } else {
        Err(not_in_force(what))
    }
}

fn require_status(status: &Status) -> Result<(), ReadBackError> {
    let Capabilities {
        permitted,
        bounding,
        ..
    } = status.capabilities;
    require(
        status.capabilities.are_empty(),
        format!("it has capabilities (permitted {permitted:#x}, bounding {bounding:#x})"),
    )?;
    require(
        status.no_new_privileges,
        "programs can give it new privileges",
    )?;
    require(
        status.seccomp == SeccompMode::Filter,
        "no filter looks at its system calls",
    )
}

fn users(identity: Identity) -> IdRange {
    IdRange {
        inside: identity.uid_inside,
        outside: identity.uid_outside,
        count: 1,
    }
}

fn groups(identity: Identity) -> IdRange {
    IdRange {
        inside: identity.gid_inside,
        outside: identity.gid_outside,
        count: 1,
    }
}

fn require_map(what: &str, found: &IdMap, wanted: IdRange) -> Result<(), ReadBackError> {
    require(
        found.ranges == [wanted],
        format!("its {what} are mapped otherwise than the policy says"),
    )
}

fn require_namespaces(
    found: &Namespaces,
    own: &Namespaces,
    network: &Network,
) -> Result<(), ReadBackError> {
    let shared = found.shared_with(own);
    let wanted: &[NamespaceKind] = match network {
        Network::Host => &[NamespaceKind::Network],
        _ => &[],
    };
    require(
        shared == wanted,
        format!("it shares the namespaces {shared:?} with its supervisor"),
    )
}

fn require_no_cores(limits: &[ProcessLimit]) -> Result<(), ReadBackError> {
    let cores = limits
        .iter()
        .find(|limit| limit.name == "Max core file size");
    let is = |bytes| cores.is_some_and(|it| (it.soft, it.hard) == (Some(bytes), Some(bytes)));
    // A limit of 0 that could not be raised is as good where crashes go to files.
    require(
        is(CORE_BYTES) || is(0) && !crashes_start_a_program(),
        "a crash could leave its memory in a file, or hand it to a program outside",
    )
}

fn namespaces(found: &Namespaces, own: &Namespaces) -> Vec<NamespaceInForce> {
    let row = |kind: NamespaceKind| NamespaceInForce {
        kind: match kind {
            NamespaceKind::User => "user",
            NamespaceKind::Mount => "mount",
            NamespaceKind::Pid => "pid",
            NamespaceKind::Network => "network",
            NamespaceKind::Ipc => "ipc",
            NamespaceKind::Uts => "uts",
            NamespaceKind::Cgroup => "cgroup",
        },
        inode: found.get(kind).inode,
        is_own: found.get(kind) != own.get(kind),
    };
    NamespaceKind::ALL.into_iter().map(row).collect()
}

fn ranges(map: &IdMap) -> Vec<MappedIds> {
    let row = |range: &IdRange| MappedIds {
        inside: range.inside,
        outside: range.outside,
        count: range.count,
    };
    map.ranges.iter().map(row).collect()
}

fn landlock(report: &LandlockReport) -> LandlockInForce {
    let name = |missing: &MissingRight| match missing {
        MissingRight::Refer => "refer",
        MissingRight::Truncate => "truncate",
        MissingRight::TcpPorts => "tcp_ports",
        MissingRight::DeviceCommands => "device_commands",
        MissingRight::Scopes => "scopes",
        MissingRight::PathnameSockets => "pathname_sockets",
    };
    LandlockInForce {
        abi: report.abi,
        is_complete: report.enforcement == Enforcement::Full,
        missing: report.missing.iter().map(name).collect(),
    }
}

fn limit_row(limit: ProcessLimit) -> LimitRow {
    let ProcessLimit { name, soft, hard } = limit;
    LimitRow { name, soft, hard }
}

fn control_groups(evidence: Evidence<'_>) -> ControlGroupsInForce {
    let report = evidence.control_groups;
    let enforced = report.limits.iter().filter_map(|(limit, outcome)| {
        let cgroup::Outcome::Enforced { file, value, .. } = outcome else {
            return None;
        };
        Some(GroupLimit {
            limit: limit.to_string(),
            file,
            value: value.clone(),
        })
    });
    let held_otherwise = |limit: cgroup::Limit| {
        let name = limit.to_string();
        evidence.others.iter().any(|other| other.limit == name)
    };
    let missing = report
        .missing()
        .filter(|(limit, _)| !held_otherwise(*limit));
    let missing = missing.map(|(limit, reason)| MissingGroupLimit {
        limit: limit.to_string(),
        reason: reason.to_string(),
        remedy: reason.remedy(),
    });
    ControlGroupsInForce {
        enforced: enforced.collect(),
        missing: missing.collect(),
    }
}
