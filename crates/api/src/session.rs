//! Sessions: what is asked for and what is told.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zareba_protocol::SessionId;

use crate::{Network, Resources, Seconds, SecretText, WorkspaceMode};

/// What a session shall be like. Anything left out is as the server's settings say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSession {
    /// Its name: 1 to 64 letters, digits, `-` and `_`. Left out, it gets a random one. A client
    /// that chooses the name can ask again after a lost answer without making a second session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    pub id: Option<SessionId>,
    /// The runtime to run in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The image whose files it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The directory of the server's machine to work in; the server must have allowed that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Variables of its shells.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Variables of its shells whose values are masked wherever they would be stored or shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretText>,
    /// What people call it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How long a command may be silent before the agent is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_change_timeout: Option<Seconds>,
    /// How long an action may take that does not say so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
    /// What it can reach over the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// How much it may use.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// How its workspace appears.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_mode: Option<WorkspaceMode>,
    /// Who its programs run as, as `UID` or `UID:GID` in numbers, where the runtime can choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Directories of the server's machine beside the workspace, as `HOST:INSIDE[:MODE]` with the mode `ro`
    /// or `rw`, where the operator has listed some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<String>,
    /// Plugins; none are in this version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<String>,
    /// Whether to go on without what the runtime cannot hold; the answer names it in `not_held`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub best_effort: bool,
    /// When it goes to sleep and when it ends.
    #[serde(default)]
    pub limits: SessionLimits,
    /// What is run before it is ready.
    #[serde(default)]
    pub setup: Setup,
}

/// When a session goes to sleep and when it ends; what is left out is as the server's settings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionLimits {
    /// How long nothing may be asked of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Seconds>,
    /// What happens then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_idle: Option<Idle>,
    /// How long it may live, used or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life_max: Option<Seconds>,
}

/// What shall be different about a session. Anything left out stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateSession {
    /// When it goes to sleep and when it ends, counted from its start.
    #[serde(default)]
    pub limits: SessionLimits,
    /// How long it may live from now on, in place of `limits.life_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_in: Option<Seconds>,
    /// What people call it, in place of the labels that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

/// What happens to an idle session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// It is paused, and wakes when something is asked of it.
    Pause,
    /// It is closed.
    Close,
    /// Nothing.
    Stay,
}

/// What is run before a session is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Setup {
    /// What the workspace brings: `.openhands/setup.sh` and `.openhands/pre-commit.sh`.
    #[default]
    Workspace,
    /// Nothing.
    Nothing,
}

/// How a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
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

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its name.
    #[schema(value_type = String)]
    pub id: SessionId,
    /// What its owner calls it, for administrators, who see its unique id as `id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub name: Option<SessionId>,
    /// Whose it is.
    pub owner: String,
    /// The runtime that it runs in.
    pub runtime: String,
    /// The image whose files it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// How it is.
    pub state: SessionState,
    /// The last status of its sandbox.
    pub status: String,
    /// What was said with that status.
    pub message: String,
    /// What people call it.
    pub labels: BTreeMap<String, String>,
    /// The directory to work in, as programs inside see it.
    pub workspace: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created: Timestamp,
    /// When something was last asked of it.
    #[schema(value_type = String, format = DateTime)]
    pub last_active: Timestamp,
    /// When it goes to sleep and when it ends.
    pub limits: SessionLimits,
    /// What it can reach over the network, where the runtime can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// How much it may use; what is left out has no bound, or none that the runtime can tell.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// How its workspace appears.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_mode: Option<WorkspaceMode>,
    /// Who its programs run as, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What was asked for and does not hold, by name; empty unless `best_effort` was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_held: Vec<String>,
    /// The number that the next event gets.
    pub next_event: u64,
}

/// Some sessions, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<Session>,
    /// What to give as `after` for the next page; absent when this was the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub next: Option<SessionId>,
}

/// Parameters of making a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateQuery {
    /// Whether the answer comes when the session is ready, or at once.
    #[serde(default = "yes")]
    pub wait: bool,
}

/// Parameters of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// The last name of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<SessionId>,
    /// How many at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Parameters of ending a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteQuery {
    /// Whether the log goes as well.
    #[serde(default)]
    pub purge: bool,
}

pub(crate) const fn yes() -> bool {
    true
}
