//! `zareba spawner`: where a server's supervisors come from. Not for people.

use std::path::PathBuf;

use clap::Args;

/// Become a supervisor for every order that comes on standard input
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct SpawnerArguments {
    /// The state directory of the server that it works for
    #[arg(long = "for", value_name = "DIR")]
    pub(crate) state_dir: PathBuf,
    /// Characters in whose place copies show their own arguments
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) room: String,
}
