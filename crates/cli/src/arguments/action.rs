//! `zareba action`.

use std::path::PathBuf;

use clap::Args;

use super::SandboxArguments;

/// Perform the actions of a file, one JSON object to a line
#[derive(Args, Debug)]
#[command(
    after_help = r#"Prints each action with its observation and its time, or with `-o json` one observation to a line.
Skips blank lines and shows lines that begin with `#`. `{{workspace}}` stands for the sandbox's
directory. Ends with 1 when a line is no action. An action that fails is an observation, and no
failure of the command.

Example:
  echo '{"action": "run", "args": {"command": "uname"}}' | zareba action -"#
)]
pub(crate) struct ActionArguments {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Continue after a line that is no action
    #[arg(long)]
    pub(crate) keep_going: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}
