//! `zareba shell`.

use clap::Args;

use super::SandboxArguments;

/// Open a shell in a fresh sandbox
#[derive(Args, Debug)]
#[command(after_help = "\
Opens an interactive shell at a terminal; `exit` leaves it. Otherwise runs each line of standard
input as a command and prints its output.

Examples:
  zareba shell --workspace ./project
  zareba shell --runtime native
  printf 'cd /tmp\\npwd\\n' | zareba shell")]
pub(crate) struct ShellArguments {
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}
