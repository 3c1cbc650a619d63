//! `zareba exec`.

use clap::Args;

/// Run a program in a sandbox that is there
#[derive(Args, Debug)]
#[command(after_help = "\
Its streams are ours and so is its exit code. Several words are passed on as they are; a single one
is shell text. Ends with 126 or 127 when the program cannot be run or is not there, and with 120 to
125 when Zareba itself fails.

Examples:
  zareba exec build -- cargo test
  zareba exec -t build -- bash
  tar c . | zareba exec -i -w /tmp build -- tar x")]
pub(crate) struct ExecArguments {
    /// Pass our standard input on
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Give it a terminal, with the keys that are typed here
    #[arg(short, long)]
    pub(crate) terminal: bool,
    /// Where it starts [default: the workspace]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) workdir: Option<String>,
    /// Set a variable of the program; may be repeated
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE")]
    pub(crate) variables: Vec<String>,
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The program
    #[arg(value_name = "CMD", required = true, last = true)]
    pub(crate) command: Vec<String>,
}
