//! The runtime `native`: an executor behind walls that the kernel holds.
//!
//! It is `local` with another way to start: a supervisor (`supervise`) makes the sandbox and runs
//! the executor in it, and everything else, from the socket to the warm servers, is the same.
//! `view` says what exists inside.

mod asked;
mod described;
mod disk;
mod doorman;
mod enclosure;
mod groups;
mod holds;
mod lot;
mod memory;
mod program;
mod proxy;
mod room;
mod start;
mod supervise;
mod view;
mod watch;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use zareba_runtime::{
    Capabilities, Grant, Isolation, PoolCounts, Runtime, RuntimeError, Sandbox, SandboxId,
    SandboxRequest, SandboxSpec, SandboxSummary, Strictness, Support, WorkspaceMode,
};
use zareba_wire::BoxFuture;

use crate::{HomeAccess, LocalOptions, LocalRuntime, NativeOptions};

pub(crate) use asked::{answer, covers_rule};
pub use disk::DiskLimit;
pub(crate) use doorman::VisitError;
pub(crate) use enclosure::{Enclosure, PauseError, end_unrecorded, ended_for_limit, reap_orphan};
pub(crate) use groups::forget_group;
pub use holds::{Hold, Holds, can_hold};
pub(crate) use room::{Room, Spooled, inodes_of};
pub(crate) use supervise::KEPT_LINE;
pub use supervise::{SuperviseError, Supervision, Usage, UserHome, supervise};
pub use view::SystemMode;
use view::View;
pub(crate) use view::WORKSPACE;
pub(crate) use view::remove_stand_ins;

pub(crate) const NAME: &str = "native";

/// Directories that hold the machine's own workings, sockets among them.
const NO_WORKSPACES: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/var/run", "/boot"];

/// Refuses a directory that would bring in what the walls keep out: the root, the machine's own
/// workings, a whole home with its keys and sockets, or our own state.
///
/// A link on the way to it is refused, too: a caller that checked the path has followed every link, so one that
/// is there now was put there since, and may lead to what that caller would not have given.
pub(crate) fn check_workspace(path: &Path, options: &NativeOptions) -> Result<(), RuntimeError> {
    let shown = path.display();
    let real = std::fs::canonicalize(path).map_err(|error| RuntimeError::Invalid {
        message: format!("cannot use the workspace `{shown}`: {error}"),
    })?;
    if real != path {
        let real = real.display();
        return Err(RuntimeError::Invalid {
            message: format!(
                "the workspace `{shown}` leads over a link to `{real}`; name that directory itself"
            ),
        });
    }
    let home = options.environment.iter().find(|(name, _)| name == "HOME");
    let is_home = home.is_some_and(|(_, home)| canonical(Path::new(home)) == path);
    let holds_state = canonical(&options.state_dir).starts_with(path);
    let is_system = NO_WORKSPACES.iter().any(|system| path.starts_with(system));
    if path == Path::new("/") || is_home || holds_state || is_system {
        let path = path.display();
        return Err(RuntimeError::Invalid {
            message: format!(
                "`{path}` cannot be a sandbox's workspace: it holds more than a project, such as keys, \
                 sockets or our own state; choose a directory below it"
            ),
        });
    }
    Ok(())
}

fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Finds out what is the same for all supervisors of this machine, ahead of them. What fails now
/// fails there again, where somebody is told.
pub(crate) fn find_out_for_all() {
    groups::look_ahead();
    view::look_ahead();
    zareba_confine::look_ahead();
    // To ask a virtual processor what it can do takes as long as a dozen system calls.
    #[cfg(target_arch = "x86_64")]
    let _ = std::arch::is_x86_feature_detected!("avx2");
    zareba_wire::prepare_keys();
    zareba_wire::server::prepare_routes();
    for set_id_files in [false, true] {
        let _ = start::filter(set_id_files);
    }
}

/// Makes what sandboxes of a state directory share, ahead of the first of them. What fails now fails there
/// again, where somebody is told. Blocks for some hundredths of a second, the first time.
pub(crate) fn lay_ground(state: &Path) {
    let system = SystemMode::CopyOnWrite;
    if let Ok(identity) = supervise::choose_identity(&View::Machine { system }) {
        let _ = view::lay_ground(state, identity);
    }
}

/// What stands around a sandbox, as far as an operator may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walls {
    /// How the workspace appears.
    pub workspace: WorkspaceMode,
    /// What may be done to the machine's programs and settings, as seen inside.
    pub system: SystemMode,
    /// Names in a workspace that cannot be made or changed if changes reach the machine.
    pub guarded: Vec<String>,
    /// What is seen of programs in the home of the user who starts the sandbox.
    pub home_tools: HomeAccess,
    /// What can be reached over the network.
    pub network: Reachable,
    /// What the sandbox may use.
    pub usage: Usage,
    /// What becomes of limits that cannot be held.
    pub strictness: Strictness,
}

/// What can be reached over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reachable {
    /// Nothing but the sandbox itself.
    Nothing,
    /// What rules allow, through a proxy.
    Listed(zareba_egress::Policy),
    /// Whatever this machine can reach: an operator's explicit choice.
    Everything,
}

/// Runs executors in sandboxes of this machine, with or without root.
#[derive(Debug)]
pub struct NativeRuntime(LocalRuntime);

impl NativeRuntime {
    /// Takes the options; nothing is started yet.
    pub fn new(options: NativeOptions, local: LocalOptions, walls: Walls) -> Self {
        Self(LocalRuntime::behind(options, local, Some(walls)))
    }

    /// The same with an operator's rules for sandboxes that ask for a filtered network, where the
    /// walls filter none by themselves.
    #[must_use]
    pub fn ruled_by(self, rules: zareba_egress::Policy) -> Self {
        Self(self.0.ruled_by(rules))
    }

    /// Starts sandboxes until as many wait as were asked for, and what makes others start fast.
    ///
    /// # Errors
    /// When one does not start.
    pub async fn warm_up(&self) -> Result<(), RuntimeError> {
        self.0.warm_up().await
    }

    /// Ends the sandboxes that wait, and returns when they are gone; no more are started.
    pub async fn cool_down(&self) {
        self.0.cool_down().await;
    }

    /// Ends kept sandboxes that were idle for too long, and removes what ended or killed ones
    /// have left behind. Returns how many were removed.
    ///
    /// # Errors
    /// When the state directory cannot be used.
    pub async fn reap(&self) -> Result<usize, RuntimeError> {
        self.0.reap().await
    }
}

impl Runtime for NativeRuntime {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            isolation: Isolation::Namespaces,
            pause: Support::Yes,
            changes: Support::Yes,
            ..self.0.capabilities()
        }
    }

    fn create(&self, spec: SandboxSpec) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        Box::pin(async move {
            self.0.create(spec).await.map_err(|error| match error {
                RuntimeError::Start { source, .. } => RuntimeError::Start {
                    runtime: NAME,
                    source,
                },
                other => other,
            })
        })
    }

    fn reserve(&self, spec: &SandboxSpec) -> Option<SandboxId> {
        self.0.reserve(spec)
    }

    fn grant(&self, request: &SandboxRequest) -> Result<Grant, RuntimeError> {
        self.0.grant(request)
    }

    fn covers_rule(&self, rule: &str) -> bool {
        self.0.covers_rule(rule)
    }

    fn rules_cover(&self, rules: &[String], rule: &str) -> bool {
        self.0.rules_cover(rules, rule)
    }

    fn pool(&self) -> Option<PoolCounts> {
        self.0.pool()
    }

    fn destroy(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        self.0.destroy(sandbox)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<SandboxSummary>, RuntimeError>> {
        self.0.list()
    }

    fn attach(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        self.0.attach(sandbox)
    }
}
