//! `zareba replay`.

use std::path::PathBuf;

use clap::Args;

use super::SandboxArguments;

/// Run a recorded trajectory again and compare
#[derive(Args, Debug)]
#[command(after_help = "\
The file is an export of `zareba log export`, or a trajectory of OpenHands: one JSON array of
events, or one event per line. Performs its actions again, in order, in a fresh sandbox, and skips
other events. Ends with 1 at the first observation that differs from the recorded one, and shows
both.

Examples:
  zareba log export my-session > run.jsonl
  zareba replay run.jsonl
  zareba replay --image debian --keep-going trajectory.json")]
pub(crate) struct ReplayArguments {
    /// The recording; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Continue after a difference
    #[arg(long)]
    pub(crate) keep_going: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}
