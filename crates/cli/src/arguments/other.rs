//! `zareba config`, `zareba doctor`, `zareba completions` and what its scripts ask.

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

/// Check what this machine can do, and say how to get the rest
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
#[command(after_help = "\
In bash, zsh and fish it completes commands, flags, their values, and names of sandboxes, images and
sessions; in the others commands and flags.

Examples:
  source <(zareba completions bash)
  zareba completions bash > ~/.local/share/bash-completion/completions/zareba
  zareba completions zsh > ~/.zfunc/_zareba
  zareba completions fish > ~/.config/fish/completions/zareba.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell that reads the script
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Print what fits at the end of a command line
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct CompleteArguments {
    /// The words after the program's name; the last one is being typed
    #[arg(value_name = "WORD", last = true)]
    pub(crate) words: Vec<String>,
}
