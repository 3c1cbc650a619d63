//! Small named values that must survive a server: sessions, keys.

use serde_json::Value;

/// Which document: a kind and a name within it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentName {
    /// The kind, for instance `session`.
    pub kind: &'static str,
    /// The name among those of the kind.
    pub name: String,
}

/// A named value.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Which one.
    pub name: DocumentName,
    /// How often it was written.
    pub version: u64,
    /// What it says.
    pub value: Value,
}

/// What a writer believes about a document that it writes; when that is wrong, nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// There is none.
    Absent,
    /// It has this version.
    Version(u64),
    /// Whatever there is may go.
    Anything,
}

impl Expected {
    /// Whether it is true of a document with this version, or of none.
    pub(crate) fn is_met(self, version: Option<u64>) -> bool {
        match self {
            Self::Absent => version.is_none(),
            Self::Version(expected) => version == Some(expected),
            Self::Anything => true,
        }
    }
}
