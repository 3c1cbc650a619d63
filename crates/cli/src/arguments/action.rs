//! `zareba action`.

use std::path::PathBuf;

use clap::Args;

use super::SandboxArguments;

/// Perform the actions of a file, one JSON object to a line
#[derive(Args, Debug)]
#[command(
    after_help = r#"Prints each action with its observation and its time, or with `-o json` one observation to a line.
Blank lines are left out, lines that begin with `#` are shown. `{{workspace}}` stands for the
sandbox's directory. Ends with 1 when a line was no action; an action that fails is answered with
an observation, and that is no failure.

Example:
  echo '{"action": "run", "args": {"command": "uname"}}' | zareba action -"#
)]
pub(crate) struct ActionArguments {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Go on after a line that is no action
    #[arg(long)]
    pub(crate) keep_going: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}
