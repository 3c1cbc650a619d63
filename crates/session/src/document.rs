//! What is written down about a session, so that a server after this one can take it up.

use std::{collections::BTreeMap, path::PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zareba_eventlog::{DocumentName, LogError};
use zareba_protocol::{RuntimeStatus, SessionId};
use zareba_runtime::{Grant, SandboxRequest};

use crate::{Owner, SessionLimits, SessionState, tools::KeptTools};

/// The kind of documents that sessions are.
pub(crate) const KIND: &str = "session";

/// A session as it is written down. It holds no variable and no secret: those are in the shells
/// of the sandbox, which go on without us.
///
/// Fields may be added; one that is missing in an older document needs a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionDocument {
    pub(crate) owner: Owner,
    /// What its owner calls it, where that is not its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<SessionId>,
    pub(crate) runtime: String,
    pub(crate) image: Option<String>,
    /// The directory of this machine that was asked for.
    pub(crate) workspace: Option<PathBuf>,
    /// The directory to work in, as programs inside see it.
    pub(crate) directory: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) created: Timestamp,
    pub(crate) last_active: Timestamp,
    pub(crate) limits: SessionLimits,
    pub(crate) state: SessionState,
    pub(crate) status: RuntimeStatus,
    pub(crate) message: String,
    /// What else was asked of its sandbox.
    #[serde(default)]
    pub(crate) request: SandboxRequest,
    /// What of that is in force.
    #[serde(default)]
    pub(crate) grant: Grant,
    /// The variables whose values are masked.
    pub(crate) secret_names: Vec<String>,
    /// The server that has it, until it ends.
    #[serde(default)]
    pub(crate) holder: Option<String>,
    /// The tools that were added to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<KeptTools>,
}

/// In every document of a session, and in no tombstone.
pub(crate) const OWNER: &str = "owner";

/// In the documents of sessions that their owners have named.
pub(crate) const NAME: &str = "name";

/// In every document of a session that a server has.
pub(crate) const HOLDER: &str = "holder";

/// What is left of a session that was removed. Its name is never given away again: rights that
/// somebody still has from before would open what another one does under it.
pub(crate) fn tombstone() -> Value {
    json!({ "removed": true })
}

pub(crate) fn is_tombstone(value: &Value) -> bool {
    *value == tombstone()
}

/// Which document a session is.
pub(crate) fn name(session: &SessionId) -> DocumentName {
    DocumentName {
        kind: KIND,
        name: session.to_string(),
    }
}

impl SessionDocument {
    pub(crate) fn to_value(&self) -> Result<Value, LogError> {
        serde_json::to_value(self).map_err(|error| LogError::Io {
            source: Box::new(error),
        })
    }

    pub(crate) fn from_value(value: Value) -> Result<Self, LogError> {
        serde_json::from_value(value).map_err(|error| LogError::Io {
            source: Box::new(error),
        })
    }
}
