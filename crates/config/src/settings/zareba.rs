//! Zareba's own sections.

use std::path::PathBuf;
use std::time::Duration;

use super::docker::{DockerPoolSettings, DockerSettings};
use super::mcp::McpSettings;
use super::native::{NativePoolSettings, NativeSettings, PoolSettings};
use super::openhands::{self, OpenHandsSettings};
use super::rules;
use super::server::{LogSettings, ServerSettings, SessionSettings};
use super::telemetry::TelemetrySettings;
use super::variables::SandboxVariables;
use crate::key::{Key, section};
use crate::secret::Secret;
use crate::setting::choice;

/// The whole configuration, one field per section.
///
/// The fields are public and without invariants between them; a caller that needs one section
/// takes that section by reference.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Where sessions run.
    pub runtime: RuntimeSettings,
    /// Shells and their commands.
    pub shell: ShellSettings,
    /// Reading, writing and editing files.
    pub files: FileSettings,
    /// The executor process.
    pub executor: ExecutorSettings,
    /// The `local` runtime.
    pub local: LocalSettings,
    /// The `native` runtime.
    pub native: NativeSettings,
    /// Sandboxes that are kept ready.
    pub pool: PoolSettings,
    /// The `docker` runtime.
    pub docker: DockerSettings,
    /// The server that many agents share.
    pub server: ServerSettings,
    /// Sessions of the server.
    pub sessions: SessionSettings,
    /// The event log of the server.
    pub log: LogSettings,
    /// Traces of the server.
    pub telemetry: TelemetrySettings,
    /// Servers of tools.
    pub mcp: McpSettings,
    /// Where everything is kept.
    pub state: StateSettings,
    /// Variables that every sandbox starts with: `[env]`, and OpenHands'
    /// `sandbox.runtime_startup_env_vars` and `SANDBOX_ENV_*`.
    pub env: SandboxVariables,
    /// What OpenHands' `config.toml` says beyond the sections above.
    pub openhands: OpenHandsSettings,
}

/// The keys of each section, in the order in which they are shown.
pub(crate) static SECTIONS: [&[Key]; 19] = [
    RuntimeSettings::KEYS,
    ShellSettings::KEYS,
    FileSettings::KEYS,
    ExecutorSettings::KEYS,
    LocalSettings::KEYS,
    NativeSettings::KEYS,
    NativePoolSettings::KEYS,
    DockerSettings::KEYS,
    DockerPoolSettings::KEYS,
    ServerSettings::KEYS,
    SessionSettings::KEYS,
    LogSettings::KEYS,
    TelemetrySettings::KEYS,
    McpSettings::KEYS,
    StateSettings::KEYS,
    openhands::Core::KEYS,
    openhands::Sandbox::KEYS,
    openhands::Security::KEYS,
    openhands::Kubernetes::KEYS,
];

choice! {
    /// The backends that a session can name.
    ///
    /// All names of the design are accepted, so that a file written for another machine or for
    /// OpenHands can be read; whoever starts a session says which of them this build has.
    RuntimeKind {
        /// The executor in this process, without walls.
        Cli = "cli",
        /// An executor process on this machine, without walls.
        Local = "local",
        /// A sandbox made of the kernel's own means.
        Native = "native",
        /// A container of a Docker Engine.
        Docker = "docker",
        ;
        /// A pod.
        Kubernetes = "kubernetes",
        /// A sandbox of another server.
        Remote = "remote",
        /// A sandbox rented from Daytona.
        Daytona = "daytona",
        /// A sandbox rented from Modal.
        Modal = "modal",
        /// A sandbox rented from Runloop.
        Runloop = "runloop",
        /// A sandbox rented from E2B.
        E2b = "e2b",
    }
}

choice! {
    /// Which paths file actions may name.
    FileScope {
        /// Whatever the executor's user may open.
        Anywhere = "anywhere",
        /// Only paths that stay inside the workspace after links are resolved.
        Workspace = "workspace",
    }
}

section! {
    /// Where sessions run.
    RuntimeSettings at runtime named "runtime" {
        /// The runtime of sandboxes and sessions that name none.
        kind: RuntimeKind = RuntimeKind::Native, openhands "core.runtime";
        /// The image whose files a sandbox sees, by name or id. Unset means the system of this
        /// machine.
        image: Option<String> = None, project "it names files that are seen inside only";
        /// The directory that agents work in. Relative paths start where the program was started;
        /// unset means a fresh temporary directory.
        workspace: Option<PathBuf> = None, openhands "core.workspace_base";
        /// The path of the workspace inside a sandbox.
        workspace_in_sandbox: PathBuf = PathBuf::from("/workspace"),
            openhands "core.workspace_mount_path_in_sandbox",
            project "it is a path inside the sandbox";
        /// Start a sandbox also when the runtime cannot hold a limit that was asked for, and name the
        /// limit.
        best_effort: bool = false;
        /// Leave the sandbox running when its session is closed.
        keep_alive: bool = false, openhands "sandbox.keep_runtime_alive",
            absent "`zareba create` makes a sandbox that stays";
    }
}

section! {
    /// Shells and their commands.
    ShellSettings at shell named "shell" {
        /// How long a command may run before its observation is returned with the output so far;
        /// the command itself goes on.
        timeout: Duration = Duration::from_secs(120),
            openhands "sandbox.timeout", check rules::positive,
            project "the command goes on either way";
        /// How long a command may be silent before its observation is returned.
        no_change_timeout: Duration = Duration::from_secs(10),
            env "NO_CHANGE_TIMEOUT_SECONDS", check rules::positive,
            project "the command goes on either way";
        /// The shell program. Unset means bash where it is found, otherwise sh.
        program: Option<PathBuf> = None;
    }
}

section! {
    /// Reading, writing and editing files.
    FileSettings at files named "files" {
        /// Which paths file actions may name.
        scope: FileScope = FileScope::Anywhere;
        /// Check a file with a linter after each edit.
        auto_lint: bool = false, openhands "sandbox.enable_auto_lint", env "ENABLE_AUTO_LINT",
            project "it only reads what was edited";
    }
}

section! {
    /// The executor process.
    ExecutorSettings at executor named "executor" {
        /// The key that clients of the executor must send. Without a key it listens only on loopback
        /// or a Unix socket.
        session_api_key: Option<Secret> = None, env "SESSION_API_KEY";
        /// Whether shells change to the user that the executor was told to serve.
        su_to_user: bool = true, words "SU_TO_USER";
        /// One more user name, beside `root` and `openhands`, that shells change to.
        username: Option<String> = None, env "RUNTIME_USERNAME";
        /// The group that owns the working directory.
        group: String = "root".to_owned(), env "SANDBOX_GROUP_ID";
    }
}

section! {
    /// The `local` runtime.
    LocalSettings at local named "local" {
        /// The number of executors that are started ahead for new sessions.
        warm_servers: u16 = 0,
            env "INITIAL_NUM_WARM_SERVERS", env "DESIRED_NUM_WARM_SERVERS",
            check rules::warm_servers,
            absent "`pool.native.size` keeps sandboxes of the runtime `native` started";
        /// The scheme and host at which executors on this machine are reached.
        url: String = "http://localhost".to_owned(), openhands "sandbox.local_runtime_url",
            absent "executors of the runtime `local` listen on Unix sockets";
    }
}

section! {
    /// Where everything is kept.
    StateSettings at state named "state" {
        /// The directory for sandboxes, images and their records; only its owner may enter it. Unset
        /// means `/var/lib/zareba` for root, and for others `zareba` in `$XDG_STATE_HOME` or
        /// `~/.local/state`.
        directory: Option<PathBuf> = None;
    }
}
