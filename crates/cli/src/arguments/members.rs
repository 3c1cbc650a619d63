//! The commands for sandboxes that are there.

use clap::Args;

/// List sandboxes
#[derive(Args, Debug)]
#[command(after_help = "\
Those of commands that still run are among them. One that is `lost` has ended without cleaning up:
`zareba rm` removes what is left of it, and so does the next sandbox that is made.

Example:
  zareba ps -o json")]
pub(crate) struct PsArguments {
    /// Print names only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Tell what stands around a sandbox and what it uses
#[derive(Args, Debug)]
#[command(after_help = "\
What is told of the walls was read back from the kernel after the start. With `-o json` all of it is
printed, otherwise a summary.

Example:
  zareba inspect build -o json")]
pub(crate) struct InspectArguments {
    /// The sandboxes
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// End sandboxes
#[derive(Args, Debug)]
#[command(after_help = "\
Everything in them ends, and their files go. A workspace of yours stays as it is.

Example:
  zareba stop build")]
pub(crate) struct StopArguments {
    /// The sandboxes
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// Remove what is left of sandboxes that have ended
#[derive(Args, Debug)]
#[command(after_help = "\
One that runs is refused, unless `--force` is given, which ends it as `zareba stop` does.

Example:
  zareba rm --force build")]
pub(crate) struct RmArguments {
    /// End those that run
    #[arg(short, long)]
    pub(crate) force: bool,
    /// The sandboxes
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// Freeze every process of sandboxes
#[derive(Args, Debug)]
#[command(after_help = "\
They keep their memory and use no processor time. `zareba resume` lets them go on.

Example:
  zareba pause build")]
pub(crate) struct PauseArguments {
    /// The sandboxes
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// Let frozen sandboxes go on
#[derive(Args, Debug)]
#[command(after_help = "Example:
  zareba resume build")]
pub(crate) struct ResumeArguments {
    /// The sandboxes
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// Copy files into a sandbox or out of it
#[derive(Args, Debug)]
#[command(after_help = "\
One side is `ID:PATH`, the other a path of this machine; one with a colon begins with `./`. A
directory goes into DST and keeps its name. So does a file when DST is a directory or ends with a
slash; otherwise DST is the file's new name.

Examples:
  zareba cp ./src build:/workspace
  zareba cp build:target/release/tool ./tool")]
pub(crate) struct CpArguments {
    /// What is copied
    #[arg(value_name = "SRC")]
    pub(crate) source: String,
    /// Where to
    #[arg(value_name = "DST")]
    pub(crate) destination: String,
}

/// Reach a port inside a sandbox
#[derive(Args, Debug)]
#[command(after_help = "\
Forwards connections from a port of 127.0.0.1 until a signal ends it. Nothing else of the sandbox's
network is opened by that. Without PORT, tells what listens inside.

Examples:
  zareba port build
  zareba port build 8000 --on 8080")]
pub(crate) struct PortArguments {
    /// The port here [default: a free one]
    #[arg(long, value_name = "PORT", requires = "port")]
    pub(crate) on: Option<u16>,
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The port inside
    #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
}

/// Print what a sandbox's executor has to say
#[derive(Args, Debug)]
#[command(after_help = "\
That is its log, not the output of commands. Only sandboxes of `zareba create` have one.

Example:
  zareba logs -f build")]
pub(crate) struct LogsArguments {
    /// Go on until the sandbox ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

/// Remove what killed sandboxes and imports have left
#[derive(Args, Debug)]
#[command(after_help = "\
Each start does the same for its own kind, so this is needed only to get the room back now.

Example:
  zareba gc")]
pub(crate) struct GcArguments {}
