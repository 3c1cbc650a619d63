//! `zareba run`.

use std::time::Duration;

use clap::Args;

use super::{LifeArguments, SandboxArguments};
use crate::terminal_session::Attachment;

/// Run one command in a fresh sandbox
#[derive(Args, Debug)]
#[command(after_help = "\
Output comes as the command writes it: standard output and standard error apart, bytes unchanged.
The exit code is that of the command. Several words are passed on as they are; a single one is shell
text. Without `-i` or `-t` the command reads an empty standard input. Ends with 124 when the command
takes too long, with 126 or 127 when it cannot be run or does not exist, and with 120 to 125 when
Zareba itself fails.

Examples:
  zareba run python3 -c 'print(6 * 7)'
  zareba run --workspace . --timeout 60 'make test 2>&1 | tail -n 20'
  tar c . | zareba run -i tar t
  zareba run -it --image debian:12 bash
  zareba run -d --name web --workspace . python3 -m http.server")]
pub(crate) struct RunArguments {
    /// Pass standard input on to the command
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Give the command a terminal, with the keys that are typed here
    #[arg(short, long, visible_alias = "tty")]
    pub(crate) terminal: bool,
    /// Start the command in the background, print the sandbox's name, and end
    #[arg(short, long, conflicts_with_all = ["interactive", "terminal", "timeout"])]
    pub(crate) detach: bool,
    /// Remove the sandbox when the command ends; without `-d` that is always so
    #[arg(long)]
    pub(crate) rm: bool,
    /// The sandbox's name: letters, digits, `-` and `_` [default: a new one]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The directory inside that the command starts in [default: the workspace]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) workdir: Option<String>,
    /// Print no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// How long the command may take [default: shell.timeout if that is set, otherwise no limit]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    // Docker's, typed by habit: refused with what to type instead.
    #[arg(short, long, value_name = "VOLUME", hide = true)]
    pub(crate) volume: Vec<String>,
    /// The command
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
    #[command(flatten)]
    pub(crate) life: LifeArguments,
}

impl RunArguments {
    /// How much of our own streams the program gets.
    pub(crate) fn attachment(&self) -> Attachment {
        match (self.terminal, self.interactive) {
            (true, _) => Attachment::Terminal,
            (false, true) => Attachment::Pipes,
            (false, false) => Attachment::OutputOnly,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let refused = || format!("`{text}` is not a number of seconds above 0");
    let seconds: f64 = text.parse().map_err(|_| refused())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(refused)
}
