//! Why something could not be remembered or recalled.

use zareba_protocol::{ErrorClass, SessionId};

use crate::DocumentName;

/// Why something could not be remembered or recalled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The log cannot be opened.
    #[error("cannot open the event log {place}")]
    Open {
        /// Which log: a path, or a database without its password.
        place: String,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another server writes to it.
    #[error(
        "the event log {place} is in use by another server; stop that one, or use another state directory"
    )]
    InUse {
        /// Which log.
        place: String,
    },
    /// There is no space. What was to be kept waits in memory, as far as there is room.
    #[error(
        "the event log cannot be written: no space is left; free some, and it goes on by itself"
    )]
    Full,
    /// There was no space even to open the log for writing. What is there can be read.
    #[error(
        "the event log can only be read: no space is left to open it for writing; free some, and it goes on by itself"
    )]
    NoSpace,
    /// The database cannot be reached now. What was to be kept waits in memory, as far as there
    /// is room.
    #[error("the event log cannot be written now, and goes on by itself once it can: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
    /// The disk or the database failed. The log accepts nothing until it is opened again.
    #[error("the event log cannot be written")]
    Io {
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database does not answer a question.
    #[error("the event log cannot be read")]
    Read {
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Stored data cannot be read back.
    #[error("the event log of `{session}` is damaged at number {sequence}: {reason}")]
    Damaged {
        /// Whose log.
        session: SessionId,
        /// The first record that is wrong.
        sequence: u64,
        /// What is wrong.
        reason: String,
    },
    /// The entry or document is larger than may be.
    #[error("{what} of {bytes} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// How large.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The payload is nested too deeply to be read back.
    #[error("a payload has more than {limit} levels of objects and lists")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The session has used up what it may remember.
    #[error("the event log of `{session}` has reached its limit of {limit} bytes")]
    Quota {
        /// Whose log.
        session: SessionId,
        /// The limit.
        limit: u64,
    },
    /// Somebody else wrote the document meanwhile.
    #[error("the document `{}` of kind `{}` was changed by somebody else", name.name, name.kind)]
    Conflict {
        /// Which document.
        name: DocumentName,
    },
    /// What is exported cannot be put where it belongs.
    #[error("the event log cannot be exported")]
    Export {
        /// What went wrong.
        source: std::io::Error,
    },
    /// What is to be imported is no log.
    #[error("line {line} cannot be imported: {reason}")]
    Import {
        /// Which line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The log was opened to be read.
    #[error("the event log was opened to be read, and nothing can be written to it")]
    ReadOnly,
    /// The log was closed before everything could be written.
    #[error("{count} records could not be written before the event log was closed: {reason}")]
    Unwritten {
        /// How many.
        count: usize,
        /// Why.
        reason: String,
    },
    /// The log was closed.
    #[error("the event log is closed")]
    Closed,
}

impl LogError {
    /// The class that callers act on.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Open { .. }
            | Self::Io { .. }
            | Self::Read { .. }
            | Self::Export { .. }
            | Self::Unwritten { .. }
            | Self::Damaged { .. } => ErrorClass::Internal,
            Self::InUse { .. }
            | Self::Full
            | Self::Unavailable { .. }
            | Self::Conflict { .. }
            | Self::Quota { .. } => ErrorClass::Busy,
            Self::TooLarge { .. } | Self::TooDeep { .. } | Self::ReadOnly | Self::Import { .. } => {
                ErrorClass::Invalid
            }
            Self::NoSpace | Self::Closed => ErrorClass::Disconnected,
        }
    }
}
