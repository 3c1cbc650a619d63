//! Runs the executor on this machine: in this process, in a local server, or in a sandbox.
//!
//! [`CliRuntime`] holds the executor itself. [`LocalRuntime`] starts `zareba executor`, talks
//! HTTP to it, keeps some started ahead, and finds those again that were left running. Neither
//! isolates anything, which both say once per process ([`NOT_ISOLATED`]). [`NativeRuntime`] is
//! `local` behind walls; its supervisors come from a spawner.
//!
//! A sandbox is a handle ([`Sandbox`](zareba_runtime::Sandbox)) and a task that owns what must
//! be ended and removed. They share a [`watch`](tokio::sync::watch) channel: the handle wishes,
//! or is dropped, and the task ends everything and says so. Reading order: `options`, `cli`,
//! `local`, then `sandbox`, which both have in common. How a sandbox lives and ends is in
//! `zareba_runtime::life`.
#![deny(missing_docs)]

mod options;

mod cli;
mod local;
mod native;

mod changes;
mod copy;
mod link;
mod notice;
mod sandbox;

mod directory;
mod home_tools;
mod members;
mod process;
mod record;
mod server;
mod spawner;
mod trees;

pub use cli::CliRuntime;
pub use home_tools::{HomeAccess, HomeTools};
pub use local::LocalRuntime;
pub use native::{
    DiskLimit, Hold, Holds, NativeRuntime, Reachable, SuperviseError, Supervision, SystemMode,
    Usage, UserHome, Walls, can_hold, supervise,
};
pub use notice::NOT_ISOLATED;
pub use options::{LocalOptions, NativeOptions, ServerLifetime};
pub use spawner::serve_spawner;
pub use zareba_runtime::WorkspaceMode;

/// How a command of our program is run in a process that is a copy of another: with its arguments,
/// the program's name first, and its whole environment. Returns the exit status.
pub type RunCommand =
    fn(Vec<std::ffi::OsString>, Vec<(std::ffi::OsString, std::ffi::OsString)>) -> i32;
