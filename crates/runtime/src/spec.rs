//! What is asked of a runtime, and what it can promise.

use std::{
    fmt,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use crate::{SandboxRequest, StatusCallback};

/// The name of a sandbox: unique among all that there ever are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SandboxId(String);

impl SandboxId {
    /// Takes a name that a backend made or was given: 1 to 64 letters, digits, `-` and `_`.
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        let valid = !name.is_empty()
            && name.len() <= 64
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        valid.then_some(Self(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What a sandbox shall be like.
#[derive(Clone)]
pub struct SandboxSpec {
    /// Its name; `None` lets the backend choose one.
    pub id: Option<SandboxId>,
    /// The image whose files it has; `None` is whatever the backend offers without one.
    pub image: Option<String>,
    /// The directory to work in, on this machine; `None` is an empty one that goes with the
    /// sandbox.
    pub workspace: Option<PathBuf>,
    /// Variables of its shells, beside what the backend sets.
    pub environment: Vec<(String, String)>,
    /// How long a command may be silent before the agent is told.
    pub no_change_timeout: Duration,
    /// How long an action may take that does not say so itself.
    pub timeout: Duration,
    /// What else is asked of it.
    pub request: SandboxRequest,
    /// Told of every change of status.
    pub on_status: Option<StatusCallback>,
}

impl fmt::Debug for SandboxSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of variables may be secrets.
        let names: Vec<&String> = self.environment.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("SandboxSpec")
            .field("id", &self.id)
            .field("image", &self.image)
            .field("workspace", &self.workspace)
            .field("environment", &names)
            .field("no_change_timeout", &self.no_change_timeout)
            .field("timeout", &self.timeout)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// A sandbox that can be found again, in a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSummary {
    /// Its name.
    pub id: SandboxId,
    /// The backend's name.
    pub runtime: &'static str,
    /// How it is.
    pub state: SandboxState,
    /// The image whose files it has.
    pub image: Option<String>,
    /// When it was made.
    pub created: SystemTime,
}

/// How a sandbox in a list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxState {
    /// It can run actions.
    Running,
    /// Its processes are frozen.
    Paused,
    /// It has ended, and something of it is left.
    Lost,
}

/// What sandboxes that are started before anybody asks for one were good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Started and waiting.
    pub ready: usize,
    /// Sandboxes that were handed out from there.
    pub handed_out: u64,
    /// Sandboxes that had to be started when they were asked for.
    pub cold: u64,
    /// Those that ended while they waited.
    pub lost: u64,
}

/// Whether a backend can do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It can.
    Yes,
    /// It cannot, and says so when asked.
    No,
}

/// What stands between the workload and the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Nothing: commands can do whatever the user can.
    None,
    /// Kernel namespaces and filters on this machine.
    Namespaces,
    /// A container of an engine.
    Container,
    /// Another machine's business.
    Remote,
}

/// What a backend can promise on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What stands around a sandbox.
    pub isolation: Isolation,
    /// A sandbox can be frozen and thawed.
    pub pause: Support,
    /// Its files can be sealed, rolled back to and forked from.
    pub checkpoint: Support,
    /// A sandbox can be found again by name.
    pub attach: Support,
    /// What a sandbox has changed in its workspace can be told, where the workspace is kept apart.
    pub changes: Support,
}
