//! Why the paths are not restricted.

use std::{io, path::PathBuf};

/// Why Landlock could not be enforced.
#[derive(Debug, thiserror::Error)]
pub enum LandlockError {
    /// The running kernel has none.
    #[error("the kernel offers no Landlock")]
    Unavailable {
        /// `ENOSYS`: not built in. `EOPNOTSUPP`: not started.
        source: io::Error,
    },
    /// The kernel has Landlock, but not what the policy insists on.
    #[error("the kernel's Landlock ABI {abi} cannot restrict what was asked for")]
    TooOld {
        /// What it has.
        abi: i32,
        /// What the policy needs and this kernel lacks.
        missing: super::MissingRight,
    },
    /// A path of the policy is not there.
    #[error("cannot open `{}` for a Landlock rule", path.display())]
    OpenPath {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The rules were refused.
    #[error("cannot make the Landlock rules")]
    Rules {
        /// Which part of them.
        source: Box<landlock::RulesetError>,
    },
    /// The rules could not be put into force.
    #[error("cannot enforce the Landlock rules")]
    Enforce {
        /// What the system said.
        source: Box<landlock::RulesetError>,
    },
    /// They were accepted, but not all of them are in force.
    #[error("the Landlock rules are not fully in force")]
    Incomplete,
}

impl LandlockError {
    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => {
                "use Linux 5.13 or later built with CONFIG_SECURITY_LANDLOCK, with `landlock` in the `lsm=` list of \
                 its command line, or choose a profile without this layer explicitly"
            }
            Self::TooOld { .. } => {
                "use a newer kernel, or leave out of the policy what this one cannot restrict"
            }
            Self::OpenPath { .. } => "correct the path in the policy, or make what it names",
            Self::Rules { .. } | Self::Enforce { .. } | Self::Incomplete => {
                "run `zareba doctor`, which tries each layer on its own and explains what is missing"
            }
        }
    }

    /// The error number of the system, when the system refused.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Unavailable { source } | Self::OpenPath { source, .. } => source.raw_os_error(),
            Self::TooOld { .. } | Self::Rules { .. } | Self::Enforce { .. } | Self::Incomplete => {
                None
            }
        }
    }
}
