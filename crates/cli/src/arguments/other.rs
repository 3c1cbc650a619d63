//! `zareba config`, `zareba doctor` and `zareba completions`.

use clap::{Args, Subcommand};

/// Show settings and where they come from
#[derive(Args, Debug)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// What can be done with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting with its value and its source
    #[command(after_help = "\
Secrets are shown as ***.

Example:
  zareba config show --set shell.timeout=30 | grep timeout")]
    Show,
}

/// Say what this machine can do, and how to get the rest
#[derive(Args, Debug)]
#[command(after_help = "\
Ends with 1 when something is missing that is needed now, or when no sandbox of the runtime in
`runtime.kind` can start here.

Examples:
  zareba doctor -o json
  zareba doctor --set runtime.kind=docker")]
pub(crate) struct DoctorArguments {}

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "Example:
  zareba completions bash > ~/.local/share/bash-completion/completions/zareba")]
pub(crate) struct CompletionsArguments {
    /// Whose script
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}
