//! Linux confinement: policy in, enforcement report out.
//!
//! A [`Policy`] is data. The launcher, which must run in a process with a single thread, makes a
//! process in namespaces of its own, builds its root from what the policy lists, takes every
//! right away, and starts the program. A layer that cannot be put in place stops the launch with
//! the [`Step`] that failed and what to do about it; there is no weaker way on.

mod arguments;
mod capabilities;
pub mod cgroup;
pub mod handover;
mod launch;
mod mounts;
pub mod network;
mod objects;
mod owner_map;
mod paths;
mod policy;
mod privilege;
mod quotas;
mod readback;
mod report;
mod restriction;
mod rlimits;
mod root;
mod seccomp;
mod signals;
mod step;
mod sys;

pub use arguments::show as show_arguments;
pub use capabilities::{CapabilityError, CapabilityKind, drop_all_capabilities};
pub use launch::{Confined, Hooks, LaunchError, Program, RestrictError, launch};
pub use objects::limit_objects;
pub use paths::{
    Enforcement, LandlockError, LandlockReport, MissingRight, PathPolicy, Reach, Ruleset, TcpPorts,
};
pub use policy::{
    Access, Entry, EntryKind, Identity, Layer, Lower, MemoryCap, Network, Overlay, OwnFile,
    Ownership, Policy, Root,
};
pub use privilege::{is_root_of_machine, require_capabilities};
pub use readback::{
    Capabilities, IdMap, IdRange, Ids, MountFault, MountFlags, MountInForce, MountLine,
    MountReport, NamespaceId, NamespaceKind, Namespaces, ProcessDirectory, ProcessFacts,
    ProcessLimit, ReadBackError, SeccompMode, Status, check_mounts, parse_mounts,
};
pub use report::{
    ControlGroupsInForce, EnforcementReport, Evidence, GroupLimit, LandlockInForce, LimitRow,
    MappedIds, MissingGroupLimit, NamespaceInForce, OtherLimit,
};
pub use restriction::Restriction;
pub use rlimits::{Bounds, Limit, LimitError, LimitInForce, ResourceLimits, refuse_core_handlers};
pub use seccomp::{CompiledFilter, Permissions, SeccompError, SeccompProfile};
pub use signals::{
    EndRequests, close_inherited, ignore_broken_pipes, is_ignored, let_signals_through,
    reset_signals,
};
pub use step::Step;
pub use sys::{fork_beside, fork_off, replace_environment};

/// Finds out what is the same for every sandbox, ahead of them and for copies of this process. What
/// fails now fails there again, where somebody is told.
pub fn look_ahead() {
    let _ = is_root_of_machine();
    let _ = arguments::find();
    readback::look_ahead();
    root::look_ahead();
    let _ = std::fs::File::open("/proc").map(readback::ProcessDirectory::own_namespaces);
}
