//! `zareba supervise`: how a runtime starts a sandbox. Not for people.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, ValueEnum};

/// Keep one sandbox with an executor in it
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct SuperviseArguments {
    /// The sandbox's name
    #[arg(long)]
    pub(crate) id: String,
    /// The sandbox's private directory outside
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Where the executor is reached
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: PathBuf,
    /// A directory to work in
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// How that directory appears
    #[arg(long, value_name = "MODE", default_value = "copy-on-write")]
    pub(crate) workspace_mode: ModeArgument,
    /// The image whose files it has
    #[arg(long, value_name = "NAME", requires = "image_store")]
    pub(crate) image: Option<String>,
    /// The store that the image is in
    #[arg(long, value_name = "DIR")]
    pub(crate) image_store: Option<PathBuf>,
    /// What may be done to the machine's programs and settings
    #[arg(long, value_name = "MODE", default_value = "copy-on-write")]
    pub(crate) system: SystemArgument,
    /// Names in that directory that can be neither made nor changed, with `/` between them
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = '/',
        allow_hyphen_values = true
    )]
    pub(crate) guarded: Vec<String>,
    /// The home whose programs are seen
    #[arg(long, value_name = "DIR")]
    pub(crate) home_tools: Option<PathBuf>,
    /// The order in which its directories are searched
    #[arg(long, value_name = "PATH", requires = "home_tools")]
    pub(crate) home_path: Option<OsString>,
    /// What can be reached
    #[arg(long, value_name = "NETWORK", default_value = "none")]
    pub(crate) network: NetworkArgument,
    /// The rules of a filtered network, as JSON
    #[arg(long, value_name = "JSON", required_if_eq("network", "filtered"))]
    pub(crate) egress: Option<String>,
    /// Bytes of memory
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory: u64,
    /// Processes and threads
    #[arg(long, value_name = "N")]
    pub(crate) pids: u32,
    /// Thousandths of a processor
    #[arg(long, value_name = "N")]
    pub(crate) cpu_millis: u32,
    /// Bytes that its changes to files may take
    #[arg(long, value_name = "BYTES")]
    pub(crate) disk: u64,
    /// Files and directories that it may add
    #[arg(long, value_name = "N")]
    pub(crate) inodes: u64,
    /// Go on without limits that cannot be held
    #[arg(long)]
    pub(crate) best_effort: bool,
    /// End the sandbox when standard input reaches its end
    #[arg(long)]
    pub(crate) lifeline: bool,
    /// More arguments for the executor
    #[arg(last = true)]
    pub(crate) executor: Vec<OsString>,
}

/// How a directory appears as the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArgument {
    // Not documentation, which clap would print as a list.
    CopyOnWrite,
    ReadWrite,
    ReadOnly,
}

/// What may be done to the machine's programs and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SystemArgument {
    // Not documentation, which clap would print as a list.
    CopyOnWrite,
    ReadOnly,
}

/// What can be reached over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkArgument {
    // Not documentation, which clap would print as a list.
    None,
    Filtered,
    Host,
}
