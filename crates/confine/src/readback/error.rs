//! Why nothing can be said about a process.

use std::io;

/// Why a process could not be read back.
#[derive(Debug, thiserror::Error)]
pub enum ReadBackError {
    /// There is no such process, or it may not be looked at.
    #[error("cannot open the directory of process {pid}")]
    OpenProcess {
        /// Its number.
        pid: i32,
        /// What the system said.
        source: io::Error,
    },
    /// A file of it could not be read.
    #[error("cannot read `{file}` of the process")]
    ReadFile {
        /// Which one.
        file: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A file is longer than the kernel ever makes it.
    #[error("`{file}` of the process is longer than {limit_bytes} bytes")]
    TooLong {
        /// Which one.
        file: &'static str,
        /// How long it may be.
        limit_bytes: u64,
    },
    /// A field is not there.
    #[error("`{file}` of the process has no field `{field}`")]
    MissingField {
        /// In which file.
        file: &'static str,
        /// Which one.
        field: &'static str,
    },
    /// A field is there twice.
    #[error("`{file}` of the process has the field `{field}` twice")]
    RepeatedField {
        /// In which file.
        file: &'static str,
        /// Which one.
        field: &'static str,
    },
    /// A value is not written as the kernel writes it.
    #[error("`{field}` in `{file}` of the process cannot be understood: {text:?}")]
    BadValue {
        /// In which file.
        file: &'static str,
        /// Which one.
        field: &'static str,
        /// What is there, cut to a length that fits a line.
        text: String,
    },
    /// A mount is not what the policy says.
    #[error("the mount `{point}` of the process {fault}")]
    Mount {
        /// Where, inside.
        point: String,
        /// What is wrong with it.
        fault: MountFault,
    },
    /// A layer of confinement is not in force.
    #[error("the process is not confined as it should be: {what}")]
    NotInForce {
        /// Which.
        what: String,
    },
}

/// What is wrong with a mount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountFault {
    /// It should be there.
    #[error("is missing")]
    Missing,
    /// It should not.
    #[error("is not in the policy")]
    Unexpected,
    /// What is mounted on it appears outside, or the other way round.
    #[error("is shared with other mounts")]
    Shared,
    /// It is something else.
    #[error("is a `{found}`")]
    FileSystem {
        /// Of which type.
        found: String,
    },
    /// It allows more than it should.
    #[error("lacks `{missing}`")]
    Lax {
        /// The options that are not set, with commas between them.
        missing: String,
    },
}

impl ReadBackError {
    pub(super) fn bad_value(file: &'static str, field: &'static str, text: &str) -> Self {
        /// More would not help anybody who reads it.
        const TEXT_MAX_CHARS: usize = 80;
        Self::BadValue {
            file,
            field,
            text: text.chars().take(TEXT_MAX_CHARS).collect(),
        }
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::OpenProcess { .. } | Self::ReadFile { .. } => {
                "the process has ended, or belongs to somebody else: look at why it ended, and run the supervisor as \
                 the user who started it"
            }
            Self::MissingField { .. } => "use Linux 4.10 or later with CONFIG_SECCOMP",
            Self::Mount { .. } | Self::NotInForce { .. } => {
                "do not trust this kernel with confinement, and report this with its version: it has done something \
                 else than it was told"
            }
            Self::TooLong { .. } | Self::RepeatedField { .. } | Self::BadValue { .. } => {
                "report this with the version of the kernel: its `/proc` is written in a way that is not known"
            }
        }
    }

    /// The error number of the system, when the system refused.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::OpenProcess { source, .. } | Self::ReadFile { source, .. } => {
                source.raw_os_error()
            }
            Self::TooLong { .. }
            | Self::MissingField { .. }
            | Self::RepeatedField { .. }
            | Self::BadValue { .. }
            | Self::Mount { .. }
            | Self::NotInForce { .. } => None,
        }
    }
}
