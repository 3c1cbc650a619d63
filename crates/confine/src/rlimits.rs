//! Limits of each process: the floor that holds also where no control group can be had (NS-15).
//!
//! A hard limit can be lowered by anybody and raised only with `CAP_SYS_RESOURCE`, which root
//! itself lacks in many containers. So nothing is ever raised: where the machine is stricter than
//! the policy, the machine's limit stays, and what really is in force is returned. The address
//! space has no limit on purpose: language runtimes reserve far more than they use.

use std::{fmt, io};

use rustix::process::{Resource, Rlimit};

/// The most that a process may use without asking, and the most that it may ask for. `u64::MAX`
/// is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// In force from the start.
    pub soft: u64,
    /// Up to which the process itself may raise it.
    pub hard: u64,
}

impl Bounds {
    /// One value for both.
    pub const fn fixed(value: u64) -> Self {
        Self {
            soft: value,
            hard: value,
        }
    }
}

/// What `RLIMIT_CORE` is, so that the memory of a process that crashed goes nowhere (NS-7).
///
/// It is too small for any file. And where the machine hands crashes to a program, with a
/// `core_pattern` that begins with `|`, the kernel ignores every limit, also 0, and starts that program
/// outside as root; only at exactly 1 it does not.
pub(crate) const CORE_BYTES: u64 = 1;

/// Limits of every process of a sandbox. Core dumps are always off: one would hold the memory of
/// a process in a file, or hand it to a program outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Open descriptors.
    pub open_files: Bounds,
    /// Processes and threads of the user; counts nobody else's in a user namespace of one's own.
    /// `None` leaves them to the control group.
    pub processes: Option<Bounds>,
    /// Size of a file that is written. `None` leaves it to the disk cap.
    pub file_bytes: Option<Bounds>,
    /// Stack of the first thread.
    pub stack_bytes: Bounds,
    /// Memory that must not be swapped.
    pub locked_bytes: Bounds,
    /// Signals waiting to be delivered.
    pub pending_signals: Bounds,
    /// POSIX message queues.
    pub message_queue_bytes: Bounds,
}

/// A limit of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `RLIMIT_NOFILE`.
    OpenFiles,
    /// `RLIMIT_NPROC`.
    Processes,
    /// `RLIMIT_FSIZE`.
    FileBytes,
    /// `RLIMIT_CORE`.
    CoreBytes,
    /// `RLIMIT_STACK`.
    StackBytes,
    /// `RLIMIT_MEMLOCK`.
    LockedBytes,
    /// `RLIMIT_SIGPENDING`.
    PendingSignals,
    /// `RLIMIT_MSGQUEUE`.
    MessageQueueBytes,
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::OpenFiles => "RLIMIT_NOFILE",
            Self::Processes => "RLIMIT_NPROC",
            Self::FileBytes => "RLIMIT_FSIZE",
            Self::CoreBytes => "RLIMIT_CORE",
            Self::StackBytes => "RLIMIT_STACK",
            Self::LockedBytes => "RLIMIT_MEMLOCK",
            Self::PendingSignals => "RLIMIT_SIGPENDING",
            Self::MessageQueueBytes => "RLIMIT_MSGQUEUE",
        })
    }
}

impl Limit {
    fn resource(self) -> Resource {
        match self {
            Self::OpenFiles => Resource::Nofile,
            Self::Processes => Resource::Nproc,
            Self::FileBytes => Resource::Fsize,
            Self::CoreBytes => Resource::Core,
            Self::StackBytes => Resource::Stack,
            Self::LockedBytes => Resource::Memlock,
            Self::PendingSignals => Resource::Sigpending,
            Self::MessageQueueBytes => Resource::Msgqueue,
        }
    }
}

/// One limit as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitInForce {
    /// Which one.
    pub limit: Limit,
    /// What the policy asked for.
    pub asked: Bounds,
    /// What holds: the same, or less where the machine was stricter already.
    pub in_force: Bounds,
}

/// Why a limit is not set.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// The kernel refused it.
    #[error("cannot set {limit}")]
    Set {
        /// Which one.
        limit: Limit,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel took it and reports another.
    #[error("{limit} is not what it was set to")]
    NotInForce {
        /// Which one.
        limit: Limit,
    },
}

impl LimitError {
    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Set { .. } => {
                "in a container, its own filter must allow `prlimit64`; look at the limits it was given"
            }
            Self::NotInForce { .. } => {
                "let nothing else change the limits of this process while it starts"
            }
        }
    }

    /// The error number of the system, when the system refused.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Set { source, .. } => source.raw_os_error(),
            Self::NotInForce { .. } => None,
        }
    }
}

impl ResourceLimits {
    /// Sets the limits of this process and whatever it becomes or starts, and reads them back.
    ///
    /// # Errors
    /// The first limit that the kernel refuses, or reports otherwise than it was set.
    pub fn apply(&self) -> Result<Vec<LimitInForce>, LimitError> {
        let wanted = [
            (Limit::OpenFiles, Some(self.open_files)),
            (Limit::Processes, self.processes),
            (Limit::FileBytes, self.file_bytes),
            (Limit::CoreBytes, Some(Bounds::fixed(CORE_BYTES))),
            (Limit::StackBytes, Some(self.stack_bytes)),
            (Limit::LockedBytes, Some(self.locked_bytes)),
            (Limit::PendingSignals, Some(self.pending_signals)),
            (Limit::MessageQueueBytes, Some(self.message_queue_bytes)),
        ];
        let wanted = wanted
            .into_iter()
            .filter_map(|(limit, asked)| Some((limit, asked?)));
        wanted.map(|(limit, asked)| set(limit, asked)).collect()
    }
}

/// Lets no crash of this process, and of what it starts, hand its memory to anybody.
///
/// To be called before the launch: a machine whose hard limit is 0 is stricter with files, and starts
/// its program for crashes all the same, and inside a sandbox no limit can be raised any more.
///
/// # Errors
/// When the machine hands crashes to a socket, which no limit prevents; or when the limit is 0, this
/// process may not raise it, and the machine has a program for crashes.
pub fn refuse_core_handlers() -> io::Result<()> {
    if core_pattern().is_some_and(|pattern| goes_to_a_socket(&pattern)) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the kernel sends the memory of every crashed program to a socket of this machine \
             (`kernel.core_pattern` begins with `@`), and no limit keeps a sandbox from it: as root, choose a file \
             (`sysctl -w kernel.core_pattern=core`) or a program",
        ));
    }
    let wanted = Rlimit {
        current: Some(CORE_BYTES),
        maximum: Some(CORE_BYTES),
    };
    match rustix::process::setrlimit(Resource::Core, wanted) {
        Ok(()) => Ok(()),
        Err(_) if !crashes_start_a_program() => Ok(()),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the hard limit of core files is 0, with which the kernel starts this machine's program for crashes \
             (`kernel.core_pattern`) outside for every crash inside: give this process a limit of 1 or more \
             (`LimitCORE=1` in a service, `--ulimit core=1` for a container)",
        )),
    }
}

/// Whether the machine hands crashes to a program; one that does not say might.
pub(crate) fn crashes_start_a_program() -> bool {
    core_pattern().is_none_or(|pattern| !goes_to_a_file(&pattern))
}

fn core_pattern() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/core_pattern").ok()
}

fn goes_to_a_file(pattern: &str) -> bool {
    !pattern.starts_with(['|', '@'])
}

/// From Linux 6.16 on. The kernel looks at no limit then.
fn goes_to_a_socket(pattern: &str) -> bool {
    pattern.starts_with('@')
}

fn set(limit: Limit, asked: Bounds) -> Result<LimitInForce, LimitError> {
    let in_force = at_most(asked, rustix::process::getrlimit(limit.resource()).maximum);
    let new = Rlimit {
        current: finite(in_force.soft),
        maximum: finite(in_force.hard),
    };
    rustix::process::setrlimit(limit.resource(), new).map_err(|error| LimitError::Set {
        limit,
        source: error.into(),
    })?;
    if rustix::process::getrlimit(limit.resource()) != new {
        return Err(LimitError::NotInForce { limit });
    }
    Ok(LimitInForce {
        limit,
        asked,
        in_force,
    })
}

/// The kernel's largest number means that there is no limit.
fn finite(value: u64) -> Option<u64> {
    (value != u64::MAX).then_some(value)
}

/// Never above what is there already, and never a soft limit above the hard one.
fn at_most(asked: Bounds, hard_now: Option<u64>) -> Bounds {
    let hard = hard_now.map_or(asked.hard, |now| asked.hard.min(now));
    Bounds {
        soft: asked.soft.min(hard),
        hard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_never_raised() {
        let asked = Bounds { soft: 10, hard: 20 };
        assert_eq!(at_most(asked, None), asked);
        assert_eq!(at_most(asked, Some(30)), asked);
        assert_eq!(at_most(asked, Some(20)), asked);
        assert_eq!(at_most(asked, Some(15)), Bounds { soft: 10, hard: 15 });
        assert_eq!(at_most(asked, Some(5)), Bounds { soft: 5, hard: 5 });
    }

    #[test]
    fn a_pattern_names_a_file_unless_it_names_a_program_or_a_socket() {
        let named = [
            "core\n",
            "/var/core.%p\n",
            "",
            "|/usr/share/apport/apport %p\n",
            "@/run/cores\n",
        ];
        assert_eq!(named.map(goes_to_a_file), [true, true, true, false, false]);
    }

    #[test]
    fn a_soft_limit_stays_below_its_hard_one() {
        let upside_down = Bounds { soft: 20, hard: 10 };
        assert_eq!(at_most(upside_down, None), Bounds { soft: 10, hard: 10 });
    }
}
