//! What the kernel really enforces, limit by limit, and how to get what is missing.

use std::{fmt, io};

use super::{Controller, Version, directory::Directory};

/// Something that a sandbox's groups hold in check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Memory.
    Memory,
    /// That memory does not go to swap.
    Swap,
    /// Processes and threads.
    Pids,
    /// Processor time.
    Cpu,
    /// Disk rates.
    Io,
}

impl Limit {
    pub(super) const ALL: [Self; 5] = [Self::Memory, Self::Swap, Self::Pids, Self::Cpu, Self::Io];

    /// What enforces it.
    #[must_use]
    pub fn controller(self) -> Controller {
        match self {
            Self::Memory | Self::Swap => Controller::Memory,
            Self::Pids => Controller::Pids,
            Self::Cpu => Controller::Cpu,
            Self::Io => Controller::Io,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Memory => "memory",
            Self::Swap => "swap",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
            Self::Io => "io",
        })
    }
}

/// What came of one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nobody asked for it.
    NotRequested,
    /// The kernel holds it: the value was written and read back.
    Enforced {
        /// The generation that enforces it.
        version: Version,
        /// The control file.
        file: &'static str,
        /// What the kernel says is in it.
        value: String,
    },
    /// The sandbox runs without it.
    NotEnforced(Reason),
}

impl Outcome {
    /// The outcome of several settings that are one limit: the first that failed, or the last.
    pub(super) fn all(outcomes: impl Iterator<Item = Self>) -> Self {
        let mut last = Self::NotRequested;
        for outcome in outcomes {
            last = outcome;
            if matches!(last, Self::NotEnforced(_)) {
                break;
            }
        }
        last
    }
}

/// Why a limit is not enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The kernel has no such controller, or has it in no hierarchy that this process is in.
    Absent,
    /// No mount shows our place in the hierarchy that has the controller.
    NotVisible,
    /// The hierarchy is mounted read-only.
    ReadOnly,
    /// The place belongs to somebody else.
    NotPermitted,
    /// The place is ours, but was given without this controller.
    NotDelegated,
    /// Other processes are in the place, so that controllers cannot be handed down.
    Occupied,
    /// The kernel has the controller but not this file of it.
    Unsupported {
        /// The file.
        file: &'static str,
    },
    /// The kernel refused the value.
    Refused {
        /// The file.
        file: &'static str,
        /// The number of the error.
        errno: Option<i32>,
    },
    /// The kernel took the value and says another.
    ReadBack {
        /// The file.
        file: &'static str,
        /// What was written.
        wanted: String,
        /// What it says.
        found: String,
    },
}

impl Reason {
    /// What somebody who runs the machine can do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Absent => {
                "boot with a kernel that has this controller switched on \
                 (see /proc/cgroups; `cgroup_enable=memory` on some machines)"
            }
            Self::NotVisible => {
                "mount the hierarchy where this process can see it, or in a container \
                 give it a control-group namespace of its own"
            }
            Self::ReadOnly => {
                "mount the hierarchy read-write; in a container, give it a writable \
                 control-group namespace of its own"
            }
            Self::NotPermitted => {
                "start from a delegated place: `systemd-run --user --scope -p Delegate=yes ...`, \
                 or `Delegate=yes` in the service that runs this"
            }
            Self::NotDelegated => {
                "have the controller delegated as well: `Delegate=memory pids cpu io` in the \
                 service, and for user sessions in a drop-in of `user@.service`"
            }
            Self::Occupied => {
                "start in a place of its own: `systemd-run --user --scope -p Delegate=yes ...`, \
                 or as the only process of its service or container"
            }
            Self::Unsupported {
                file: "memory.memsw.limit_in_bytes" | "memory.swap.max",
            } => "boot with `swapaccount=1`, or run without swap",
            Self::Unsupported { .. } => "use a newer kernel, or leave this limit out",
            Self::Refused { .. } => {
                "choose a value that the kernel and the groups further up allow"
            }
            Self::ReadBack { .. } => {
                "see who else writes to these control groups: each must have one owner"
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => formatter.write_str("no control-group hierarchy has the controller"),
            Self::NotVisible => formatter.write_str("its hierarchy cannot be seen from here"),
            Self::ReadOnly => formatter.write_str("its hierarchy is mounted read-only"),
            Self::NotPermitted => formatter.write_str("control groups are not delegated to us"),
            Self::NotDelegated => formatter.write_str("the controller is not delegated to us"),
            Self::Occupied => formatter.write_str("other processes share our control group"),
            Self::Unsupported { file } => write!(formatter, "the kernel has no `{file}`"),
            Self::Refused { file, errno } => {
                write!(formatter, "the kernel refused the value for `{file}`")?;
                let error = errno.map(io::Error::from_raw_os_error);
                error.map_or(Ok(()), |error| write!(formatter, " ({error})"))
            }
            Self::ReadBack {
                file,
                wanted,
                found,
            } => {
                write!(
                    formatter,
                    "`{file}` says `{found}` after `{wanted}` was written"
                )
            }
        }
    }
}

/// How all processes of a group are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeMeans {
    /// `cgroup.freeze` of the second generation, with an event when it is done.
    Unified,
    /// The freezer of the first generation.
    Legacy,
    /// There is no way.
    None,
}

/// How all processes of a group are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillMeans {
    /// `cgroup.kill`: the kernel does it at once.
    Unified,
    /// Freeze, signal each, thaw, until none is left.
    FreezeAndSignal,
    /// Signal each until none is left; processes that multiply can outrun it.
    Signal,
    /// There is no group that would know its processes.
    None,
}

/// What the kernel enforces for one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "an unread report hides a sandbox weaker than the one requested"]
pub struct Report {
    /// Each limit, in a fixed order.
    pub limits: Vec<(Limit, Outcome)>,
    /// How it is frozen.
    pub freeze: FreezeMeans,
    /// How it is killed.
    pub kill: KillMeans,
}

impl Report {
    /// What came of one limit.
    #[must_use]
    pub fn outcome(&self, limit: Limit) -> &Outcome {
        let found = self
            .limits
            .iter()
            .find(|(candidate, _)| *candidate == limit);
        found.map_or(&Outcome::NotRequested, |(_, outcome)| outcome)
    }

    /// The limits that were asked for and are not there.
    pub fn missing(&self) -> impl Iterator<Item = (Limit, &Reason)> {
        self.limits
            .iter()
            .filter_map(|(limit, outcome)| match outcome {
                Outcome::NotEnforced(reason) => Some((*limit, reason)),
                Outcome::NotRequested | Outcome::Enforced { .. } => None,
            })
    }
}

impl fmt::Display for Report {
    /// One clause per missing limit, with its remedy; for an error message or `doctor`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (limit, reason) in self.missing() {
            write!(
                formatter,
                "{separator}{limit}: {reason} ({})",
                reason.remedy()
            )?;
            separator = "; ";
        }
        if separator.is_empty() {
            formatter.write_str("every limit that was asked for is enforced")?;
        }
        Ok(())
    }
}

/// The outcome of a setting that may not have been asked for.
pub(super) fn ask<T>(value: Option<T>, settle: impl FnOnce(T) -> Outcome) -> Outcome {
    value.map_or(Outcome::NotRequested, settle)
}

/// Writes `value` and asks the kernel for it again.
pub(super) fn settle(
    version: Version,
    directory: &Directory,
    file: &'static str,
    value: &str,
) -> Outcome {
    settle_if(version, directory, file, value, |found| found == value)
}

/// The same for files that answer in other words than they are written in.
pub(super) fn settle_if(
    version: Version,
    directory: &Directory,
    file: &'static str,
    value: &str,
    is_set: impl FnOnce(&str) -> bool,
) -> Outcome {
    match directory.exchange(file, value) {
        Ok(found) if is_set(&found) => Outcome::Enforced {
            version,
            file,
            value: found,
        },
        Ok(found) => Outcome::NotEnforced(Reason::ReadBack {
            file,
            wanted: value.to_owned(),
            found,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Outcome::NotEnforced(Reason::Unsupported { file })
        }
        Err(error) => Outcome::NotEnforced(Reason::Refused {
            file,
            errno: error.raw_os_error(),
        }),
    }
}
