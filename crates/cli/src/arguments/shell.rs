//! `zareba shell`.

use clap::Args;

use super::SandboxArguments;

/// Open a shell in a fresh sandbox
#[derive(Args, Debug)]
#[command(after_help = "\
At a terminal it is yours until you leave it. Otherwise each line of standard input is run as a
command, and the output is printed.

Examples:
  zareba shell --workspace ./project
  zareba shell --runtime native
  printf 'cd /tmp\\npwd\\n' | zareba shell")]
pub(crate) struct ShellArguments {
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}
