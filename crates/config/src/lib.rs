//! The one place that reads files, environment variables and flags into typed settings.
//!
//! [`Configuration::load`] layers four sources, each stronger than the one before: built-in
//! defaults, files, the environment, and the flags of the command line. What comes out is a
//! [`Settings`] value that the rest of the program receives by reference, together with where
//! each value came from. Every mistake in every source is reported at once, with its place and
//! the nearest valid name, because a setting that was misspelt and silently ignored is how a
//! sandbox ends up weaker than its operator believes.
//!
//! The file of a project may come with a repository, and so from a stranger. What it may say
//! without the user's trust is judged in `admission`, and `trust` keeps what the user has trusted.
//!
//! The keys themselves are declared in one table: `settings.rs` holds Zareba's own sections and
//! `settings/openhands.rs` those of OpenHands' `config.toml`. Adding a key is one entry there; the
//! struct field, the file key, the variable names, the error hints and the reference in
//! `docs/configuration.md` follow from it.
//!
//! No other crate reads the process environment: they take an [`Environment`].
//!
//! ```
//! use zareba_config::{
//!     ConfigFile, Configuration, Environment, LoadRequest, Override, UntrustedSettings,
//! };
//!
//! let environment = Environment::from_pairs([("SANDBOX_TIMEOUT", "30")]);
//! let overrides = [Override::parse("files.auto_lint=true")?];
//! let configuration = Configuration::load(&LoadRequest {
//!     file: ConfigFile::Nothing,
//!     environment: &environment,
//!     overrides: &overrides,
//!     untrusted: UntrustedSettings::Refuse,
//! })?;
//! assert_eq!(configuration.settings.shell.timeout.as_secs(), 30);
//! assert!(configuration.settings.files.auto_lint);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admission;
mod configuration;
mod environment;
mod file;
mod flags;
mod hint;
mod key;
mod kubernetes;
mod layer;
mod literal;
mod nearest;
mod origin;
mod problem;
mod reference;
mod secret;
mod setting;
mod settings;
mod show;
mod trust;
mod value;
mod volumes;
#[cfg(target_os = "linux")]
mod wipe;

pub use admission::{LeftOut, LeftOutReason, UntrustedSettings};
pub use configuration::{
    ConfigFile, Configuration, LoadError, LoadRequest, SearchPlaces, UsedFile,
};
pub use environment::{Environment, RESERVED_VARIABLES};
pub use file::{FilePlace, ProjectFile};
pub use flags::{Override, ParseOverride};
pub use nearest::nearest;
pub use origin::Origin;
pub use problem::{Hint, Problem, ProblemKind, Problems};
pub use reference::{KeyReference, keys, reference_markdown};
pub use secret::Secret;
pub use setting::{Processors, Size};
pub use settings::{
    DockerPoolSettings, DockerSettings, ExecutorSettings, FileScope, FileSettings, HomeTools,
    ImagePull, LocalSettings, LogDurability, LogSettings, McpProgram, McpRemote, McpSettings,
    NativePoolSettings, NativeSettings, NetworkReach, NetworkRules, PoolSettings, RuntimeKind,
    RuntimeSettings, SandboxVariables, ServerSettings, SessionSettings, Settings, ShellSettings,
    StateSettings, SystemMode, TelemetrySettings, UnknownImages, WhenIdle, WorkspaceMode,
    openhands,
};
pub use show::Row;
pub use trust::{TrustError, TrustedFile, TrustedFiles};
pub use value::Value;
#[cfg(target_os = "linux")]
pub use wipe::wipe_keys;

/// Puts together ahead what every reading of the environment needs, for copies of this process.
pub fn prepare() {
    key::all_variables();
    key::own_variables();
}
