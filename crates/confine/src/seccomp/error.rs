//! Why there is no filter.

/// Why a profile could not be compiled or its filter not be installed.
#[derive(Debug, thiserror::Error)]
pub enum SeccompError {
    /// The profile is not of the form that profiles have.
    #[error("cannot read the system call profile")]
    Parse {
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// An entry without a reason, or without calls.
    #[error("an entry of the system call profile has no {lacks} (calls: {calls:?})")]
    IncompleteEntry {
        /// What is missing.
        lacks: &'static str,
        /// What tells the entry from others.
        calls: Vec<String>,
    },
    /// A name that no architecture has.
    #[error("the profile names `{name}`, which is no system call")]
    UnknownCall {
        /// The name.
        name: String,
    },
    /// A call that is allowed and denied, or decided twice, under the same circumstances.
    #[error("the profile decides twice about `{name}`")]
    Contradiction {
        /// The call.
        name: String,
    },
    /// A condition that can never hold, or about an argument that no call has.
    #[error("the condition on argument {argument} of `{name}` makes no sense")]
    BadCondition {
        /// The call.
        name: String,
        /// Which argument.
        argument: u8,
    },
    /// More than the kernel takes.
    #[error("the filter has {instructions} instructions, more than the kernel takes")]
    TooLong {
        /// How many there are.
        instructions: usize,
    },
    /// What another process handed over is no filter.
    #[error("{bytes} bytes are no system call filter")]
    NotAFilter {
        /// How many there are.
        bytes: usize,
    },
    /// Filters are written for two architectures only.
    #[error("there is no system call profile for `{architecture}`")]
    Architecture {
        /// The one this is built for.
        architecture: &'static str,
    },
    /// The kernel refused it.
    #[error("cannot install the system call filter")]
    Install {
        /// What the system said.
        source: Box<seccompiler::Error>,
    },
    /// The kernel took it and does not report it.
    #[error("the system call filter is not in force after it was installed")]
    NotInForce,
}

impl SeccompError {
    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Parse { .. }
            | Self::IncompleteEntry { .. }
            | Self::UnknownCall { .. }
            | Self::Contradiction { .. }
            | Self::BadCondition { .. }
            | Self::TooLong { .. } => {
                "correct the profile: its first lines say how an entry is written"
            }
            Self::NotAFilter { .. } => {
                "start the server and its helpers from the same version of the program"
            }
            Self::Architecture { .. } => "use an x86-64 or arm64 machine, or another runtime",
            Self::Install { .. } | Self::NotInForce => {
                "use a kernel with CONFIG_SECCOMP_FILTER; in a container, its own profile must allow `seccomp`"
            }
        }
    }

    /// The error number of the system, when the system refused.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Install { source } => match source.as_ref() {
                seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => {
                    error.raw_os_error()
                }
                _ => None,
            },
            _ => None,
        }
    }
}
