//! `zareba run`.

use std::time::Duration;

use clap::Args;

use super::SandboxArguments;

/// Run one command in a fresh sandbox
#[derive(Args, Debug)]
#[command(after_help = "\
The output goes to standard output, a one-line summary to standard error, and the exit code of the
command becomes ours. Several words are passed on as they are; a single one is shell text. Ends
with 124 when the command takes too long, and with 120 to 125 when Zareba itself fails.

Examples:
  zareba run -- python3 -c 'print(6 * 7)'
  zareba run --workspace . --timeout 60 -- 'make test 2>&1 | tail -n 20'")]
pub(crate) struct RunArguments {
    /// How long the command may take [default: shell.timeout if that is set, otherwise no limit]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// The command
    #[arg(value_name = "CMD", required = true, last = true)]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let refused = || format!("`{text}` is not a number of seconds above 0");
    let seconds: f64 = text.parse().map_err(|_| refused())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(refused)
}
