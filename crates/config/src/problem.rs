//! Mistakes in a configuration: what is wrong, where, and what was probably meant.

use std::fmt;
use std::path::PathBuf;

use crate::origin::Origin;

/// How many mistakes are printed; a file with more of them is probably not a configuration.
const SHOWN_MAX: usize = 50;

/// One mistake with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where the mistake stands.
    pub origin: Origin,
    /// What is wrong.
    pub kind: ProblemKind,
    /// What was probably meant.
    pub hint: Option<Hint>,
}

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemKind {
    /// The file is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// The file has a section that neither Zareba nor OpenHands knows.
    #[error("unknown section `[{0}]`")]
    UnknownSection(String),
    /// A name of a section stands for a plain value.
    #[error("`{0}` must be a table")]
    NotATable(String),
    /// A section, or the command line, has a key that nobody reads.
    #[error("unknown key `{0}`")]
    UnknownKey(String),
    /// The environment has a variable with our prefix that is no setting.
    #[error("no setting has this name")]
    UnknownVariable,
    /// The file of a project sets what only a trusted one may set.
    #[error("`{0}` may be set by a project file only when you have trusted it")]
    Untrusted(String),
    /// The file of a project sets a variable for a runtime without walls.
    #[error(
        "`{key}` may be set by a project file only when you have trusted it, because the runtime \
         `{runtime}` does not isolate"
    )]
    UntrustedVariable {
        /// The key at this place.
        key: String,
        /// The runtime that is in force.
        runtime: &'static str,
    },
    /// Nothing of this version reads the setting.
    #[error("`{key}` is not in this version: {instead}")]
    NotInThisVersion {
        /// The key at this place.
        key: String,
        /// What does the same, or why nothing does.
        instead: &'static str,
    },
    /// A key of OpenHands' own application in a file of ours.
    #[error("`{0}` is for OpenHands' own application, and for its `config.toml`")]
    ForOpenHands(String),
    /// The file gives the same setting a second time under its other name.
    #[error("`{key}` sets `{setting}`, which line {first_line} has set already")]
    SetTwice {
        /// The key at this place.
        key: String,
        /// The setting that both keys stand for.
        setting: String,
        /// Where it was set first.
        first_line: usize,
    },
    /// A value has the wrong type.
    #[error("`{key}` must be {expected}, not {found}")]
    WrongType {
        /// The key at this place.
        key: String,
        /// What the setting takes.
        expected: String,
        /// What was given.
        found: String,
    },
    /// A value has the right type and is still not acceptable.
    #[error("`{key}` {reason}")]
    BadValue {
        /// The key at this place.
        key: String,
        /// Why the value cannot be used, as the rest of a sentence about the key.
        reason: String,
    },
}

/// A proposal that goes with a [`Problem`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// The nearest valid name.
    DidYouMean(String),
    /// No name is near; these are the valid ones.
    Valid(Vec<String>),
    /// The command that lets this file say everything.
    Trust(PathBuf),
}

/// Every mistake of a configuration, in the order of the sources and of their lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

/// One line: the place in the form that editors and terminals can jump to, the mistake, the hint.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Default => f.write_str("default")?,
            Origin::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display())?,
            Origin::Variable { name } => write!(f, "environment variable `{name}`")?,
            Origin::Flag { name } => write!(f, "flag `{name}`")?,
        }
        write!(f, ": {}", self.kind)?;
        match &self.hint {
            None => Ok(()),
            Some(hint) => write!(f, "; {hint}"),
        }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DidYouMean(name) => write!(f, "did you mean `{name}`?"),
            Self::Trust(file) => write!(f, "run `zareba trust {}`", file.display()),
            Self::Valid(names) => {
                f.write_str("valid here: ")?;
                for (index, name) in names.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}`{name}`")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().take(SHOWN_MAX).enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        match self.0.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}
