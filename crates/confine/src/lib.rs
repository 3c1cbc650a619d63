//! Linux confinement: policy in, enforcement report out.
//!
//! A [`Policy`] is data. The launcher, which must run in a process with a single thread, makes a
//! process in namespaces of its own, builds its root from what the policy lists, takes every
//! right away, and starts the program. A layer that cannot be put in place stops the launch with
//! the [`Step`] that failed and what to do about it; there is no weaker way on.

mod launch;
mod mounts;
mod policy;
mod root;
mod step;
mod sys;

pub use launch::{Confined, LaunchError, Program, Restrict, RestrictError, launch};
pub use policy::{Access, Entry, EntryKind, Identity, MemoryCap, Network, Policy};
pub use step::Step;
