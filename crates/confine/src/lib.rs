//! Linux confinement: policy in, enforcement report out.
//!
//! A [`Policy`] is data. The launcher, which must run in a process with a single thread, makes a
//! process in namespaces of its own, builds its root from what the policy lists, takes every
//! right away, and starts the program. A layer that cannot be put in place stops the launch with
//! the [`Step`] that failed and what to do about it; there is no weaker way on.

mod capabilities;
pub mod cgroup;
mod launch;
mod mounts;
mod owner_map;
mod paths;
mod policy;
mod readback;
mod rlimits;
mod root;
mod seccomp;
mod step;
mod sys;

pub use capabilities::{CapabilityError, CapabilityKind, drop_all_capabilities};
pub use launch::{Confined, Hooks, LaunchError, Program, RestrictError, launch};
pub use paths::{
    Enforcement, LandlockError, LandlockReport, MissingRight, PathPolicy, Reach, Ruleset, TcpPorts,
};
pub use policy::{Access, Entry, EntryKind, Identity, MemoryCap, Network, Ownership, Policy};
pub use readback::{
    Capabilities, IdMap, IdRange, Ids, NamespaceId, NamespaceKind, Namespaces, ProcessDirectory,
    ProcessFacts, ReadBackError, SeccompMode, Status,
};
pub use rlimits::{Bounds, Limit, LimitError, LimitInForce, ResourceLimits};
pub use seccomp::{CompiledFilter, Permissions, SeccompError, SeccompProfile};
pub use step::Step;
