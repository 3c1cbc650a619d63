//! What holds a sandbox to its limits on this machine, known before there is one.
//!
//! Control groups hold exactly, and root always has them or gets no sandbox, unless a best effort was
//! asked for. An ordinary user has them only where they were delegated. Elsewhere the number of processes is held by `RLIMIT_NPROC`, which
//! the kernel counts for each user namespace, and memory by the supervisor, which looks at it.
//! Nothing but a control group gives a share of the processors.

use zareba_confine::{
    OtherLimit,
    cgroup::{CgroupError, Controller, Host},
};
use zareba_runtime::Strictness;

use super::{groups, memory, supervise::Usage};

/// What holds one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The kernel, for all processes together, exactly.
    ControlGroup,
    /// The kernel, by a limit of each process that counts those of the sandbox, exactly.
    ProcessLimit,
    /// The supervisor, which looks again and again.
    Watched {
        /// By how much it can be passed.
        overshoot: &'static str,
    },
    /// Nothing.
    No {
        /// Why not.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

impl Hold {
    /// Whether anything does.
    pub(crate) const fn holds(&self) -> bool {
        !matches!(self, Self::No { .. })
    }
}

/// What holds each limit of a sandbox that is started now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holds {
    /// Bytes of memory.
    pub memory: Hold,
    /// Processes and threads.
    pub pids: Hold,
    /// Processor time.
    pub cpus: Hold,
    /// Bytes and number of changed files.
    pub disk: Hold,
}

/// What may hold a limit of memory or processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// Nothing else: root gets no sandbox without.
    ControlGroups,
    /// Or, for memory, looking at it.
    Watch,
    /// Or that, and for processes a limit of each process.
    WatchAndProcessLimit,
}

/// Asks this machine. Nothing is started or made.
pub fn can_hold(strictness: Strictness) -> Holds {
    let means = match groups::are_demanded(strictness) {
        true => Means::ControlGroups,
        false if counts_by_namespace(&release()) => Means::WatchAndProcessLimit,
        false => Means::Watch,
    };
    Holds::of(groups::this_machine(), means)
}

impl Holds {
    fn of(host: Result<&Host, CgroupError>, means: Means) -> Self {
        let hold = |controller, otherwise: Option<Hold>| match &host {
            Ok(host) if host.hierarchy_of(controller).is_some() => Hold::ControlGroup,
            Ok(host) => otherwise.unwrap_or_else(|| {
                let reason = host.reason_against(controller);
                Hold::No {
                    reason: reason.to_string(),
                    remedy: reason.remedy(),
                }
            }),
            Err(error) => otherwise.unwrap_or_else(|| Hold::No {
                reason: error.to_string(),
                remedy: "mount control groups at /sys/fs/cgroup",
            }),
        };
        let watched = Hold::Watched {
            overshoot: memory::OVERSHOOT,
        };
        let watched = (means != Means::ControlGroups).then_some(watched);
        let counted = (means == Means::WatchAndProcessLimit).then_some(Hold::ProcessLimit);
        Self {
            memory: hold(Controller::Memory, watched),
            pids: hold(Controller::Pids, counted),
            cpus: hold(Controller::Cpu, None),
            disk: Hold::Watched {
                overshoot: "what is written between two looks, which are at most a second apart near the limit",
            },
        }
    }

    /// What holds the limits that control groups do not.
    pub(super) fn others(&self, usage: &Usage) -> Vec<OtherLimit> {
        let row = |limit, hold: &Hold, value| match hold {
            Hold::ProcessLimit => Some(OtherLimit {
                limit,
                held_by: "RLIMIT_NPROC",
                value,
                overshoot: "",
            }),
            Hold::Watched { overshoot } => Some(OtherLimit {
                limit,
                held_by: "the supervisor",
                value,
                overshoot,
            }),
            Hold::ControlGroup | Hold::No { .. } => None,
        };
        [
            row("memory", &self.memory, usage.memory_bytes),
            row("pids", &self.pids, u64::from(usage.pids)),
            row("disk", &self.disk, usage.disk.bytes),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Since Linux 5.14 `RLIMIT_NPROC` counts the processes of a user in one user namespace; before that, all
/// that the user has.
fn counts_by_namespace(release: &str) -> bool {
    let mut numbers = release
        .split(|letter: char| !letter.is_ascii_digit())
        .map(|number| number.parse().unwrap_or(0_u32));
    (numbers.next(), numbers.next()) >= (Some(5), Some(14))
}

fn release() -> String {
    let name = rustix::system::uname();
    name.release().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted_by_namespace_since_linux_5_14() {
        let releases = ["5.13.0", "5.14.0-rc1", "6.1.0-18-amd64", "4.19", ""];
        assert_eq!(
            releases.map(counts_by_namespace),
            [false, true, true, false, false]
        );
    }

    #[test]
    fn without_control_groups_an_ordinary_user_has_other_means_and_root_has_none() {
        let host = Host::from_texts("", "");
        let mine = Holds::of(Ok(&host), Means::WatchAndProcessLimit);
        assert_eq!(mine.pids, Hold::ProcessLimit);
        assert!(matches!(mine.memory, Hold::Watched { .. }));
        assert!(matches!(mine.cpus, Hold::No { .. }));
        let before_5_14 = Holds::of(Ok(&host), Means::Watch);
        assert!(matches!(before_5_14.pids, Hold::No { .. }));
        let of_root = Holds::of(Ok(&host), Means::ControlGroups);
        assert!(matches!(of_root.memory, Hold::No { .. }));
        assert!(matches!(of_root.pids, Hold::No { .. }));
    }
}
