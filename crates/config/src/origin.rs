//! Where a value came from.

use std::fmt;
use std::path::PathBuf;

/// The source of a value, and the place that an error about it points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of the configuration file; line and column count from 1.
    File {
        /// The file as it was found, relative if the search was.
        path: PathBuf,
        /// The line of the key.
        line: usize,
        /// The column of the key, in characters.
        column: usize,
    },
    /// An environment variable.
    Variable {
        /// Its name, without a `$`.
        name: String,
    },
    /// A flag of the command line.
    Flag {
        /// The flag as it was typed, for instance `--set shell.timeout`.
        name: String,
    },
}

impl Origin {
    /// The line in a file.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::File { line, .. } => Some(*line),
            Self::Default | Self::Variable { .. } | Self::Flag { .. } => None,
        }
    }

    /// The file.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::File { path, .. } => Some(path.clone()),
            Self::Default | Self::Variable { .. } | Self::Flag { .. } => None,
        }
    }

    /// How strong the source is; a value replaces another of the same or a lower rank.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File { .. } => 1,
            Self::Variable { .. } => 2,
            Self::Flag { .. } => 3,
        }
    }
}

/// The form of `zareba config show`: `default`, `zareba.toml:7`, `$SANDBOX_TIMEOUT`, `--set`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, .. } => write!(f, "{}:{line}", path.display()),
            Self::Variable { name } => write!(f, "${name}"),
            Self::Flag { name } => f.write_str(name),
        }
    }
}
