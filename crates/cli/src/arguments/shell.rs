//! `zareba shell`.

use std::path::PathBuf;

use clap::Args;

/// Open a shell in a fresh sandbox of the runtime `cli`
#[derive(Args, Debug)]
#[command(after_help = "\
At a terminal it is yours until you leave it. Otherwise each line of standard input is run as a
command, and the output is printed.

Examples:
  zareba shell --workspace ./project
  printf 'cd /tmp\\npwd\\n' | zareba shell")]
pub(crate) struct ShellArguments {
    /// The directory to work in [default: an empty one that goes with the shell]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Set a variable of the shell; may be repeated
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE")]
    pub(crate) variables: Vec<String>,
}
