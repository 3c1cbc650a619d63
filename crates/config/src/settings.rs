//! Every setting there is, typed.
//!
//! `zareba` declares our own sections, `native` and `docker` those of sandboxes, `server`
//! and `telemetry` those of the server, `openhands` those of OpenHands' `config.toml` that have no counterpart
//! here yet. To add a key, add one entry to a section; to add a section, declare it,
//! give it a field in [`Settings`] and name it in `SECTIONS`.

mod docker;
mod mcp;
mod native;
pub mod openhands;
mod rules;
mod server;
mod telemetry;
mod variables;
mod zareba;

pub use docker::{DockerPoolSettings, DockerSettings, ImagePull};
pub use mcp::{McpProgram, McpRemote, McpSettings};
pub use native::{
    HomeTools, NativePoolSettings, NativeSettings, NetworkReach, PoolSettings, SystemMode,
    WorkspaceMode,
};
pub use server::{
    LogDurability, LogSettings, NetworkRules, ServerSettings, SessionSettings, UnknownImages,
    WhenIdle,
};
pub use telemetry::TelemetrySettings;
pub use variables::SandboxVariables;
pub(crate) use zareba::SECTIONS;
pub use zareba::{
    ExecutorSettings, FileScope, FileSettings, LocalSettings, RuntimeKind, RuntimeSettings,
    Settings, ShellSettings, StateSettings,
};
