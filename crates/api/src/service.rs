//! What the server tells of itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Seconds;

/// The server answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    pub status: String,
}

/// Whether sessions can be made and used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// Whether they can.
    pub ready: bool,
    /// What is in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// How the server is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerStatus {
    /// The program's version.
    pub version: String,
    /// How long it has been running.
    pub uptime: Seconds,
    /// How many sessions there are.
    pub sessions: SessionCounts,
    /// How the event log is.
    pub log: LogStatus,
    /// The runtime that is meant when none is named.
    pub default_runtime: String,
    /// Sandboxes that are started before anybody asks for one, by runtime.
    pub pools: BTreeMap<String, PoolStatus>,
    /// The extensions that are mounted.
    pub extensions: Vec<String>,
}

/// What sandboxes that are started ahead were good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolStatus {
    /// Started and waiting.
    pub ready: u64,
    /// Sessions that got one.
    pub hits: u64,
    /// Sessions whose sandbox had to be started.
    pub misses: u64,
    /// Those that ended while they waited.
    pub lost: u64,
}

/// How many sessions are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionCounts {
    /// Being started.
    pub starting: u64,
    /// Ready.
    pub ready: u64,
    /// Paused.
    pub paused: u64,
    /// Could not be started.
    pub failed: u64,
    /// Without their sandbox.
    pub lost: u64,
    /// Closed, with their log kept.
    pub closed: u64,
}

/// How the event log is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogStatus {
    /// Whether what is acknowledged is stored.
    pub durable: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many events wait in memory.
    pub waiting: u64,
}

/// All runtimes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuntimePage {
    /// The runtimes, by name.
    pub runtimes: Vec<RuntimeDescription>,
}

/// What a runtime can promise on the server's machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuntimeDescription {
    /// Its name.
    pub name: String,
    /// It is meant when none is named.
    pub is_default: bool,
    /// What stands between the workload and the machine.
    pub isolation: Isolation,
    /// A sandbox can be frozen and thawed.
    pub pause: bool,
    /// Its files can be sealed, rolled back to and forked from.
    pub checkpoint: bool,
    /// A sandbox can be found again after the server has ended.
    pub attach: bool,
    /// What a sandbox has changed in its workspace can be told, where the workspace is kept apart
    /// from the directory that it shows.
    #[serde(default)]
    pub changes: bool,
}

/// What stands between the workload and the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Nothing: commands can do whatever the server's user can.
    None,
    /// Kernel namespaces and filters.
    Namespaces,
    /// A container of an engine.
    Container,
    /// Another machine's business.
    Remote,
}

/// What may be asked for at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Limits {
    /// Bytes of a JSON body.
    pub json_bytes: usize,
    /// Bytes of an action's body.
    pub action_bytes: usize,
    /// Levels of a JSON body.
    pub json_depth: usize,
    /// Bytes of a request's target.
    pub uri_bytes: usize,
    /// Items of a page.
    pub page_items: usize,
    /// How long a request may wait for an observation.
    pub wait: Seconds,
    /// Connections at once.
    pub connections: usize,
    /// Connections at once from one address.
    pub peer_connections: usize,
    /// Sessions that are not closed, of everyone.
    pub sessions: usize,
    /// Sessions that are not closed, of one owner.
    pub owner_sessions: usize,
    /// How long nothing may be asked of a session, when it does not say so itself.
    pub idle_timeout: Seconds,
    /// How long an action may take that does not say so itself.
    pub timeout: Seconds,
    /// How long a command may be silent before the agent is told.
    pub no_change_timeout: Seconds,
    /// How long a ticket is valid.
    pub ticket_life: Seconds,
}
