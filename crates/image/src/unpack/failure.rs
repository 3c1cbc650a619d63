//! Why a layer was not unpacked.

use std::io;

use crate::limits::LimitExceeded;

/// Most characters of an entry's name that an error shows.
const SHOWN_CHARACTERS_MAX: usize = 200;

/// Why a layer was not unpacked. Nothing of it is kept then.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("refused the entry `{entry}`: {why}")]
    Refused { entry: String, why: Refusal },
    #[error("the image is too large")]
    Limit(#[source] LimitExceeded),
    #[error("the archive is damaged: {problem}; get the image again")]
    Damaged { problem: &'static str },
    #[error("cannot read the archive")]
    Read {
        #[source]
        source: io::Error,
    },
    #[error("cannot read `{entry}` in the directory; may you read all of it?")]
    Copy {
        entry: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot write the entry `{entry}`; is there room on the disk of the image store?")]
    Write {
        entry: String,
        #[source]
        source: io::Error,
    },
    #[error(
        "cannot note that `{entry}` hides the layers below; the file system of the image store \
         must keep extended attributes, so put the store on another one"
    )]
    Hide {
        entry: String,
        #[source]
        source: io::Error,
    },
}

/// What is wrong with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("its name is empty, too long or has a null byte")]
    BadName,
    #[error("its name climbs with `..`")]
    Climbs,
    #[error("it is nested too deeply")]
    TooDeep,
    #[error("its path leads through something that is not a directory")]
    ThroughLink,
    #[error("it links to nothing that was unpacked before")]
    NoTarget,
    #[error("it links to something that is neither a file nor a link")]
    BadTarget,
    #[error("it replaces the root by something that is not a directory")]
    ReplacesRoot,
    #[error("it is a sparse file; pack the image without them")]
    Sparse,
    #[error("its kind is unknown")]
    UnknownKind,
    #[error("its size is told twice, and differently")]
    TwoSizes,
}

impl UnpackError {
    pub(super) fn refused(entry: &[u8], why: Refusal) -> Self {
        let entry = shown(entry);
        Self::Refused { entry, why }
    }

    /// An error of a metered reader, told apart from its limits.
    pub(super) fn reading(source: io::Error) -> Self {
        match LimitExceeded::behind(&source) {
            Some(limit) => Self::Limit(limit),
            None => Self::Read { source },
        }
    }

    pub(super) fn writing(entry: &[u8], source: impl Into<io::Error>) -> Self {
        Self::Write {
            entry: shown(entry),
            source: source.into(),
        }
    }
}

impl From<LimitExceeded> for UnpackError {
    fn from(limit: LimitExceeded) -> Self {
        Self::Limit(limit)
    }
}

/// A name from outside, safe to print and short.
pub(super) fn shown(entry: &[u8]) -> String {
    let text = String::from_utf8_lossy(entry);
    let escaped = text.escape_debug().take(SHOWN_CHARACTERS_MAX);
    escaped.collect()
}
