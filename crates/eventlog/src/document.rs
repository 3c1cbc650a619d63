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

/// Which documents of a kind, in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The kind.
    pub kind: &'static str,
    /// Only objects with a text of this name.
    pub field: &'static str,
    /// Only those in which it is this one.
    pub text: Option<String>,
    /// Only names behind this one.
    pub after: Option<String>,
    /// How many at most.
    pub limit: usize,
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
