//! `zareba dial`: how a runtime reaches into a container through its Engine. Not for people.

use std::path::PathBuf;

use clap::Args;

/// Connect standard input and output to something that listens here
#[derive(Args, Debug)]
#[command(hide = true)]
#[group(required = true, multiple = false)]
pub(crate) struct DialArguments {
    /// A Unix socket
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: Option<PathBuf>,
    /// A TCP port of this machine alone
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
}
