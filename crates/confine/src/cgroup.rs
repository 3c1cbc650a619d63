//! Control groups: what a sandbox may use, what it has used, and one handle on all its processes.
//!
//! Linux has two generations of them, and many machines run both at once. [`Host`] finds out,
//! from `/proc` and never from well-known paths, which hierarchy has which controller and
//! whether this user may write there. [`Group`] is one sandbox's place in all of them: limits
//! are written, read back and reported one by one, and [`Leaf`] is where processes live.
//! Freezing, killing and membership use the second generation even where it has no controllers.
//!
//! Nothing here touches a directory outside `zareba/` below this process's own place, with one
//! exception that `v2.rs` explains. Calls block, each no longer than the deadline it is given.

mod begun;
mod counters;
mod detect;
mod directory;
mod entrance;
mod error;
mod events;
mod freeze;
mod group;
mod kill;
mod leaf;
mod limits;
mod oom;
mod place;
mod proc_files;
mod remove;
mod reopen;
mod report;
mod seats;
mod statistics;
mod v1;
mod v2;

pub use begun::Begun;
pub use counters::{LimitCounters, LimitCounts, UsedTime};
pub use detect::{Host, Mode};
pub use entrance::Entrance;
pub(crate) use entrance::enter;
pub use error::CgroupError;
pub use group::Group;
pub use leaf::{Leaf, LeafLimits, MemberFile, OomScope};
pub use limits::{Demand, IoLimit, Limits, block_device_of};
pub use oom::OomWatch;
pub use place::{Access, Controller, Hierarchy, Version};
pub use report::{FreezeMeans, KillMeans, Limit, Outcome, Reason, Report};
pub use statistics::{
    CpuStatistics, IoStatistics, MemoryStatistics, PidsStatistics, Statistics, Throttling,
};

/// The directory below which everything of ours is; nothing of ours is anywhere else.
const HOME: &str = "zareba";

/// The leaf, beside the sandboxes, into which this process moves when its own place has to be
/// free of processes; so no sandbox can have this name.
const OWN_LEAF: &str = "self";

/// The longest name of a group or leaf: twice what a 128-bit number needs in hexadecimal.
const NAME_BYTES_MAX: usize = 64;

/// Refuses names that could leave the directory they are meant for, or collide with the files
/// of the kernel, all of which contain a dot.
fn check_name(name: &str) -> Result<(), CgroupError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
    // `tasks` is the only file of the kernel that is a plain word; a leading dash looks like an
    // option to whoever lists these directories by hand.
    let taken = name == OWN_LEAF || name == "tasks" || name.starts_with('-');
    if fits && !taken && name.bytes().all(allowed) {
        Ok(())
    } else {
        Err(CgroupError::Name {
            name: name.chars().take(NAME_BYTES_MAX).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CgroupError, check_name};

    #[test]
    fn names_are_plain_and_not_taken() {
        for name in ["a", "0f3c", "sandbox-1", &"a".repeat(64)] {
            check_name(name).unwrap();
        }
        let too_long = "a".repeat(65);
        for name in [
            "", ".", "..", "a/b", "a.b", "A", "é", "-a", "self", "tasks", &too_long,
        ] {
            let refused = check_name(name);
            assert!(
                matches!(refused, Err(CgroupError::Name { .. })),
                "{name}: {refused:?}"
            );
        }
    }
}
