//! Why a control group could not be made, used or removed.

use std::{io, path::PathBuf, time::Duration};

use super::Report;

/// Why something with control groups failed. That limits are missing on a machine is no error
/// unless the policy demands them: the [`Report`] says so instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// The kernel's own description of this process cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A name that would not be one plain directory of ours.
    #[error("`{name}` cannot name a control group: 1 to 64 of a-z, 0-9 and `-`, and none of ours")]
    Name {
        /// The name, cut to the longest allowed.
        name: String,
    },
    /// A limit that no sandbox could start under.
    #[error("{limit} cannot be limited to {value}, the least is {least}")]
    TooSmall {
        /// Which limit.
        limit: &'static str,
        /// What was asked for.
        value: u64,
        /// The smallest value that is accepted.
        least: u64,
    },
    /// A group of that name is there, perhaps with processes of another sandbox.
    #[error("control group `{path}` exists already")]
    Exists {
        /// The directory that is in the way.
        path: PathBuf,
    },
    /// A step on one directory failed.
    #[error("cannot {deed} `{path}`")]
    Io {
        /// What was tried, as a verb.
        deed: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The policy demands limits that this machine does not enforce; nothing was left behind.
    #[error("limits that the policy demands are not enforced: {report}")]
    NotEnforced {
        /// Each limit, with why and what to do.
        report: Box<Report>,
    },
    /// The group exists in no hierarchy, so it has no processes that could be controlled.
    #[error("there is no control group to {deed}")]
    Unavailable {
        /// What was asked for, as a verb.
        deed: &'static str,
    },
    /// A directory that is not a sandbox's place below `zareba/` in a hierarchy of this machine.
    #[error("`{path}` is not a control group of ours")]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// The kernel does not list a process where it was put.
    #[error("process {pid} is in control group `{found}` instead of `{expected}`")]
    NotMember {
        /// The process.
        pid: i32,
        /// Where it was put, as `/proc/PID/cgroup` names it.
        expected: String,
        /// Where it is.
        found: String,
    },
    /// Processes went on running, or stayed frozen, past the deadline.
    #[error("`{path}` did not become {state} within {waited:?}")]
    Stuck {
        /// The directory.
        path: PathBuf,
        /// `frozen` or `thawed`.
        state: &'static str,
        /// How long it was given.
        waited: Duration,
    },
    /// Processes outlived a kill, as those do that wait for a device that never answers.
    #[error("{} processes outlived the kill by {waited:?}, the first is {:?}", pids.len(), pids.first())]
    Leftover {
        /// Which, as this process sees them; 0 for one that it cannot see.
        pids: Vec<i32>,
        /// How long they were given.
        waited: Duration,
    },
    /// Directories that the kernel would not give up.
    #[error("cannot remove `{}` and {} more within {waited:?}", first.display(), others.len())]
    Busy {
        /// The first of them.
        first: PathBuf,
        /// The others.
        others: Vec<PathBuf>,
        /// How long it was tried.
        waited: Duration,
        /// What the kernel said about the first.
        source: io::Error,
    },
}
