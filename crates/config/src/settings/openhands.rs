//! What OpenHands' `config.toml` says that has no place in our own sections yet.
//!
//! Keys with a counterpart (`sandbox.timeout`, `core.runtime`, …) are aliases in the table of our
//! own sections and are not repeated here. The rest keeps OpenHands' names, types and defaults, so
//! that a backend that needs one finds it typed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::rules;
use crate::key::section;
use crate::secret::Secret;
use crate::setting::choice;
use crate::value::Value;

/// The typed part of OpenHands' configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenHandsSettings {
    /// `[core]`.
    pub core: Core,
    /// `[sandbox]`.
    pub sandbox: Sandbox,
    /// `[security]`.
    pub security: Security,
    /// `[kubernetes]`.
    pub kubernetes: Kubernetes,
}

/// The key whose entries are variables of the sandbox, like those of `[env]`.
pub(crate) const STARTUP_VARIABLES: &str = "sandbox.runtime_startup_env_vars";

/// Sections about models, agents and user interfaces, which a runtime has no use for.
pub(crate) const FOREIGN_SECTIONS: [&str; 6] = [
    "agent",
    "cli",
    "condenser",
    "extended",
    "llm",
    "model_routing",
];

/// Keys of `[core]` about OpenHands' own application, accepted and not read.
pub(crate) const FOREIGN_CORE_KEYS: [&str; 25] = [
    "cache_dir",
    "cli_multiline_input",
    "client_wait_timeout",
    "conversation_max_age_seconds",
    "debug",
    "default_agent",
    "disable_color",
    "enable_default_condenser",
    "file_store",
    "file_store_path",
    "file_store_web_hook_batch",
    "file_store_web_hook_headers",
    "file_store_web_hook_url",
    "file_uploads_allowed_extensions",
    "file_uploads_max_file_size_mb",
    "file_uploads_restrict_file_types",
    "jwt_secret",
    "max_budget_per_task",
    "max_concurrent_conversations",
    "max_iterations",
    "mcp_host",
    "replay_trajectory_path",
    "save_screenshots_in_trajectory",
    "save_trajectory_path",
    "search_api_key",
];

/// Whether a section is one of OpenHands' that a runtime does not read. Models and agents have
/// one section per name.
pub(crate) fn is_foreign_section(name: &str) -> bool {
    FOREIGN_SECTIONS.contains(&name) || name.starts_with("llm") || name.starts_with("agent")
}

choice! {
    /// The kind of isolation asked of a remote runtime.
    RemoteRuntimeClass {
        /// A user-space kernel.
        Gvisor = "gvisor",
        /// A system container.
        Sysbox = "sysbox",
    }
}

section! {
    /// `[core]`: the keys that concern a runtime or a server of runtimes.
    Core at openhands.core named "core" {
        /// Whether a browser is offered.
        enable_browser: bool = true,
            absent "a sandbox offers no browser";
        /// The host directory to mount as the workspace; unset means `workspace_base`.
        workspace_mount_path: Option<PathBuf> = None,
            absent "name the directory in `runtime.workspace`";
        /// A `from:to` replacement in the path to mount.
        workspace_mount_rewrite: Option<String> = None,
            absent "name the directory in `runtime.workspace`";
        /// Work as the user `openhands` instead of `root` inside a container.
        run_as_openhands: bool = true,
            absent "`docker.user_id` chooses the user in a container";
        /// Make an empty workspace a git repository.
        init_git_in_empty_workspace: bool = false,
            absent "run `git init` in the sandbox";
        /// The name under which the agent commits.
        git_user_name: String = "openhands".to_owned(),
            absent "set `GIT_AUTHOR_NAME` and `GIT_COMMITTER_NAME` in `[env]`";
        /// The address under which the agent commits.
        git_user_email: String = "openhands@all-hands.dev".to_owned(),
            absent "set `GIT_AUTHOR_EMAIL` and `GIT_COMMITTER_EMAIL` in `[env]`";
    }
}

section! {
    /// `[sandbox]`: images, containers, and the remote runtime API.
    Sandbox at openhands.sandbox named "sandbox" {
        /// The base address of the remote runtime API.
        remote_runtime_api_url: Option<String> = Some("http://localhost:8000".to_owned()),
            absent "`--server URL` uses the sandboxes of another server";
        /// Pause a remote runtime that is kept alive, instead of leaving it running.
        pause_closed_runtimes: bool = true,
            absent "`sessions.when_idle` says what becomes of idle sessions";
        /// Stop every runtime container on close, not only the session's.
        rm_all_containers: bool = false,
            absent "`zareba rm` ends single sandboxes";
        /// The key of the remote runtime API.
        api_key: Option<Secret> = None,
            absent "`--server URL` uses the sandboxes of another server";
        /// The image that a runtime image is built from.
        base_container_image: Option<String> =
            Some("nikolaik/python-nodejs:python3.12-nodejs22".to_owned()),
            project "it names files that are seen inside only";
        /// A ready-made runtime image; nothing is built then.
        runtime_container_image: Option<String> = None,
            project "it names files that are seen inside only";
        /// The user id inside; unset means the current user's.
        user_id: Option<u32> = None;
        /// How long a remote runtime may take to start.
        remote_runtime_init_timeout: Duration = Duration::from_secs(180),
            absent "`--server URL` uses the sandboxes of another server";
        /// How long one request to the remote runtime API may take.
        remote_runtime_api_timeout: Duration = Duration::from_secs(180),
            absent "`--server URL` uses the sandboxes of another server";
        /// Retry requests that failed in the network.
        remote_runtime_enable_retries: bool = true,
            absent "`--server URL` uses the sandboxes of another server";
        /// The kind of isolation asked of a remote runtime.
        remote_runtime_class: Option<RemoteRuntimeClass> = None,
            absent "`--server URL` uses the sandboxes of another server";
        /// Give containers the host's network.
        use_host_network: bool = false;
        /// Networks that a container joins after its start.
        additional_networks: Vec<String> = Vec::new();
        /// The host interface for published ports.
        runtime_binding_address: String = "0.0.0.0".to_owned(),
            absent "`docker.bind_address` does it";
        /// More arguments for an image build.
        runtime_extra_build_args: Option<Vec<String>> = None,
            absent "build the image first, by `zareba image build` or docker";
        /// Prepare plugins at start.
        initialize_plugins: bool = true,
            absent "plugins start when an executor is asked for them";
        /// Build the runtime image even if it exists.
        force_rebuild_runtime: bool = false,
            absent "build the image first, by `zareba image build` or docker";
        /// Shell commands to run during an image build.
        runtime_extra_deps: Option<String> = None,
            absent "build the image first, by `zareba image build` or docker";
        /// The BrowserGym task of an evaluation.
        browsergym_eval_env: Option<String> = None,
            absent "a sandbox offers no browser";
        /// The platform to build for.
        platform: Option<String> = None;
        /// How long an idle session is kept; 0 means for ever.
        close_delay: Duration = Duration::from_secs(3600),
            absent "`sessions.idle_timeout` does it";
        /// The size of a remote runtime: 1, 2, 4 or 8.
        remote_runtime_resource_factor: u32 = 1, check rules::resource_factor,
            absent "`--server URL` uses the sandboxes of another server";
        /// Give containers all GPUs.
        enable_gpu: bool = false;
        /// Which GPUs instead, as a comma-separated list of ids.
        cuda_visible_devices: Option<String> = None;
        /// More options for creating a container.
        docker_runtime_kwargs: Option<BTreeMap<String, Value>> = None;
        /// The repository to clone at start.
        selected_repo: Option<String> = None,
            absent "clone it in the sandbox";
        /// Directories that need no confirmation of trust.
        trusted_dirs: Vec<String> = Vec::new(),
            absent "`zareba trust` trusts the file of a project";
        /// The port of the editor in the browser; unset means any free one.
        vscode_port: Option<u16> = None,
            absent "a sandbox offers no editor";
        /// Mounts, as a comma-separated list of `host:container[:mode]`. A mount onto `/workspace`
        /// is also `runtime.workspace`.
        volumes: Option<String> = None, check rules::mounts;
    }
}

section! {
    /// `[security]`: what is asked before an action runs.
    Security at openhands.security named "security" {
        /// Ask a person before risky actions.
        confirmation_mode: bool = false,
            protection "actions run without being confirmed here; the client has to ask";
        /// The analyser that rates actions.
        security_analyzer: Option<String> = None,
            protection "actions are not analysed here; the client has to do it";
    }
}

section! {
    /// `[kubernetes]`: the pods of the Kubernetes runtime.
    Kubernetes at openhands.kubernetes named "kubernetes" {
        /// The namespace of all objects.
        namespace: String = "default".to_owned(),
            absent "the runtime `kubernetes` is not part of this version";
        /// The domain of ingresses.
        ingress_domain: String = "localhost".to_owned(),
            absent "the runtime `kubernetes` is not part of this version";
        /// The size of the workspace volume.
        pvc_storage_size: String = "2Gi".to_owned(),
            absent "the runtime `kubernetes` is not part of this version";
        /// The storage class of the workspace volume; unset means the cluster's default.
        pvc_storage_class: Option<String> = None,
            absent "the runtime `kubernetes` is not part of this version";
        /// The CPU that a pod asks for.
        resource_cpu_request: String = "1".to_owned(),
            absent "the runtime `kubernetes` is not part of this version";
        /// The memory that a pod asks for.
        resource_memory_request: String = "1Gi".to_owned(),
            absent "the runtime `kubernetes` is not part of this version";
        /// The memory that a pod may use.
        resource_memory_limit: String = "2Gi".to_owned(),
            absent "the runtime `kubernetes` is not part of this version";
        /// The name of the secret for pulling images.
        image_pull_secret: Option<String> = None,
            absent "the runtime `kubernetes` is not part of this version";
        /// The name of the secret with the ingress certificate.
        ingress_tls_secret: Option<String> = None,
            absent "the runtime `kubernetes` is not part of this version";
        /// The label that a node must have.
        node_selector_key: Option<String> = None,
            absent "the runtime `kubernetes` is not part of this version";
        /// The value of that label.
        node_selector_val: Option<String> = None,
            absent "the runtime `kubernetes` is not part of this version";
        /// Tolerations of the pod, as a YAML list.
        tolerations_yaml: Option<String> = None,
            absent "the runtime `kubernetes` is not part of this version";
        /// Run the container privileged.
        privileged: bool = false,
            absent "the runtime `kubernetes` is not part of this version";
    }
}
