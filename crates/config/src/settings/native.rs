//! The sections of the `native` runtime.

use super::docker::DockerPoolSettings;
use super::rules;
use crate::key::section;
use crate::setting::{Processors, Size, choice};

choice! {
    /// How the workspace appears in a sandbox.
    WorkspaceMode {
        /// Changes go to a layer of the sandbox's own, and with it.
        CopyOnWrite = "copy-on-write",
        /// Changes go to the directory itself.
        ReadWrite = "read-write",
        /// There are no changes.
        ReadOnly = "read-only",
    }
}

choice! {
    /// How everything but the workspace appears in a sandbox.
    SystemMode {
        /// Changes go to a layer of the sandbox's own, and with it.
        CopyOnWrite = "copy-on-write",
        /// There are no changes.
        ReadOnly = "read-only",
    }
}

choice! {
    /// What a sandbox can reach over the network.
    NetworkReach {
        /// Nothing but itself.
        None = "none",
        /// What `native.allow` lists, less what `native.deny` does.
        Filtered = "filtered",
        /// Whatever this machine can; its local services as well.
        Host = "host",
    }
}

choice! {
    /// What a sandbox sees of programs in the home of the user who starts it.
    HomeTools {
        /// Nothing.
        Off = "off",
        /// Those of well-known installers, unchangeable.
        ReadOnly = "read-only",
    }
}

/// Names whose content editors, agents, shells and git of this machine run when a user opens or enters the
/// directory, or commits in it. Not what its user starts knowingly: builds, tests, scripts.
const USUAL_GUARDED_NAMES: [&str; 14] = [
    ".claude",
    ".codex",
    ".cursor",
    ".devcontainer",
    ".devcontainer.json",
    ".envrc",
    ".gemini",
    ".githooks",
    ".husky",
    ".idea",
    ".mcp.json",
    ".openhands",
    ".vscode",
    ".zareba",
];

pub(super) fn usual_guarded_names() -> Vec<String> {
    USUAL_GUARDED_NAMES.map(str::to_owned).to_vec()
}

/// Sandboxes that are kept ready, by runtime.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PoolSettings {
    /// Those of the `native` runtime.
    pub native: NativePoolSettings,
    /// Those of the `docker` runtime.
    pub docker: DockerPoolSettings,
}

section! {
    /// The `native` runtime.
    NativeSettings at native named "native" {
        /// How the workspace appears: changes are removed with the sandbox (`copy-on-write`), go to
        /// the directory itself (`read-write`) or are refused (`read-only`).
        workspace_mode: WorkspaceMode = WorkspaceMode::CopyOnWrite;
        /// How other files appear: changes are removed with the sandbox (`copy-on-write`) or refused
        /// (`read-only`).
        system: SystemMode = SystemMode::CopyOnWrite;
        /// Names in a read-write workspace that a sandbox can neither make nor change, because programs of
        /// this machine act on them. A missing one is an empty directory while the sandbox runs.
        guarded_names: Vec<String> = usual_guarded_names(), check rules::guarded_names;
        /// Programs in your home that sandboxes see: none (`off`), or those of well-known installers (cargo,
        /// uv, pyenv, nvm and others), read-only and without their credentials (`read-only`).
        home_tools: HomeTools = HomeTools::Off;
        /// What programs can reach: nothing (`none`), what `native.allow` lists (`filtered`), or all
        /// that this machine can reach (`host`).
        network: NetworkReach = NetworkReach::None;
        /// Hosts that a filtered network allows, such as `example.com`, `*.example.com:8443` or
        /// `10.0.0.0/8:5432`; without a port 80 and 443 are allowed.
        allow: Vec<String> = Vec::new();
        /// Hosts that it denies, whatever `native.allow` says; without a port all are denied.
        deny: Vec<String> = Vec::new();
        /// The memory that a sandbox may use.
        memory: Size = Size::gibibytes(2), check rules::memory;
        /// The number of processes and threads that a sandbox may have.
        pids: u32 = 512, check rules::pids;
        /// The number of processors that a sandbox may keep busy; fractions are allowed.
        cpus: Processors = Processors::whole(2), check rules::processors;
        /// The size of its changes to files.
        disk: Size = Size::gibibytes(4), check rules::disk;
        /// The number of files and directories that it may add.
        inodes: u32 = 200_000, check rules::inodes;
    }
}

section! {
    /// Sandboxes of the `native` runtime that are kept ready.
    NativePoolSettings at pool.native named "pool.native" {
        /// The number of sandboxes that are started ahead for new sessions.
        size: u16 = 0, check rules::pool;
    }
}
