//! `zareba exec`, and what keeps a detached program.

use clap::Args;

use crate::terminal_session::Attachment;

/// Run a program in an existing sandbox
#[derive(Args, Debug)]
#[command(after_help = "\
Standard output, standard error and the exit code are those of the program. Several words are passed
on as they are; a single one is shell text. Ends with 126 or 127 when the program cannot be run or
does not exist, and with 120 to 125 when Zareba itself fails.

Examples:
  zareba exec build make test
  zareba exec -it build bash
  tar c . | zareba exec -i -w /tmp build tar x
  zareba exec -d build python3 -m http.server")]
pub(crate) struct ExecArguments {
    /// Pass standard input on to the program
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Give the program a terminal, with the keys that are typed here
    #[arg(short, long, visible_alias = "tty")]
    pub(crate) terminal: bool,
    /// Start the program in the background, and end; `zareba logs` prints its output
    #[arg(short, long, conflicts_with_all = ["interactive", "terminal"])]
    pub(crate) detach: bool,
    // Docker's, typed by habit: refused, because a sandbox has one user.
    #[arg(short, long, value_name = "USER", hide = true)]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) program: ProgramArguments,
}

impl ExecArguments {
    /// How much of our own streams the program gets.
    pub(crate) fn attachment(&self) -> Attachment {
        match (self.terminal, self.interactive) {
            (true, _) => Attachment::Terminal,
            (false, true) => Attachment::Pipes,
            (false, false) => Attachment::OutputOnly,
        }
    }
}

/// A program, and where it runs.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProgramArguments {
    /// The directory inside that the program starts in [default: the workspace]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) workdir: Option<String>,
    /// Set a variable of the program; may be repeated
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE")]
    pub(crate) variables: Vec<String>,
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The program
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<String>,
}

/// Keep a detached program: what it writes is recorded beside its sandbox
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct KeepArguments {
    /// End the sandbox with the program
    #[arg(long)]
    pub(crate) rm: bool,
    #[command(flatten)]
    pub(crate) program: ProgramArguments,
}
