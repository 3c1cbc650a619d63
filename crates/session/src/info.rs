//! What is told about a session.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zareba_protocol::{RuntimeStatus, SessionId};
use zareba_runtime::Grant;

use crate::{Owner, SessionLimits};

/// How a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Its sandbox is being started.
    Starting,
    /// Actions can run.
    Ready,
    /// Its processes are frozen; the next action wakes them.
    Paused,
    /// It could not be started.
    Failed,
    /// Its sandbox ended without being asked to.
    Lost,
    /// It was closed; its log can be read.
    Closed,
}

/// A session as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its name.
    pub id: SessionId,
    /// What its owner calls it, where that is not its id.
    pub name: Option<SessionId>,
    /// Whose it is.
    pub owner: Owner,
    /// The runtime that it runs in.
    pub runtime: String,
    /// The image whose files it has.
    pub image: Option<String>,
    /// How it is.
    pub state: SessionState,
    /// The last status of its sandbox.
    pub status: RuntimeStatus,
    /// What was said with that status.
    pub message: String,
    /// What people call it.
    pub labels: BTreeMap<String, String>,
    /// The directory to work in, as programs inside see it.
    pub workspace: String,
    /// When it was made.
    pub created: Timestamp,
    /// When something was last asked of it.
    pub last_active: Timestamp,
    /// When it goes to sleep and when it ends.
    pub limits: SessionLimits,
    /// What is in force in its sandbox.
    pub grant: Grant,
    /// The number that the next event gets.
    pub next_event: u64,
}
