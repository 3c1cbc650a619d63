//! The commands for sandboxes that are there.

use std::time::SystemTime;

use clap::Args;
use jiff::Timestamp;

use super::times::span;

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
    // Docker's, typed by habit: all are listed anyway.
    #[arg(short, long, hide = true)]
    pub(crate) all: bool,
}

/// Show isolation, limits and usage of a sandbox
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

/// Show what a sandbox has changed in its workspace
#[derive(Args, Debug)]
#[command(after_help = "\
Each line has a letter and a path in the workspace: A added, M modified, D deleted, R renamed. It
needs a workspace that is copied on write, or that began empty. Times are no changes, nor are
permissions other than the one to execute; directories count only when empty.

`--patch` prints a patch for `git apply`, and for `patch -p1` where no links are in it. What a patch
cannot hold, such as a binary file, is named on standard error; `zareba cp --changed` copies it.

Examples:
  zareba diff build
  zareba diff --patch build src | git apply")]
pub(crate) struct DiffArguments {
    /// Print a patch
    #[arg(short, long)]
    pub(crate) patch: bool,
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// A file or a directory of the workspace [default: all of it]
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<String>,
}

/// Copy files into a sandbox or out of it
#[derive(Args, Debug)]
#[command(after_help = "\
One side is `ID:PATH`, the other a path of this machine; one with a colon begins with `./`. A
directory goes into DST and keeps its name. So does a file when DST is a directory or ends with a
slash; otherwise DST is the file's new name.

With `--changed`, SRC is a sandbox, and what it has changed in its workspace (`zareba diff`) goes
into the directory DST under the same paths. Deleted files are named and stay; `--delete` removes
them.

Examples:
  zareba cp ./src build:/workspace
  zareba cp --changed build .
  zareba cp build:target/release/tool ./tool")]
pub(crate) struct CpArguments {
    /// Copy what the sandbox SRC has changed in its workspace into the directory DST
    #[arg(long)]
    pub(crate) changed: bool,
    /// Remove in DST what the sandbox has deleted
    #[arg(long, requires = "changed")]
    pub(crate) delete: bool,
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

/// Print the output of what runs in a sandbox in the background
#[derive(Args, Debug)]
#[command(after_help = "\
That is what programs of `zareba run -d` and `zareba exec -d` wrote to standard output and standard
error, of which the last 8 to 16 MiB are kept. `--executor` prints the log of the sandbox's executor
instead, which only sandboxes that live on have.

Example:
  zareba logs -f web
  zareba logs --executor --tail 20 build")]
pub(crate) struct LogsArguments {
    /// Print the log of the sandbox's executor
    #[arg(long)]
    pub(crate) executor: bool,
    /// Go on until the sandbox ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only so many of the last lines
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<u32>,
    /// Only what was written since then: 90s, 10m, 2h, 1d or 2026-01-31T12:00:00Z; with `--executor` and `docker` only
    #[arg(long, value_name = "TIME", value_parser = moment, requires = "executor")]
    pub(crate) since: Option<SystemTime>,
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

/// A moment, as so long ago or by the calendar.
fn moment(text: &str) -> Result<SystemTime, String> {
    let wrong = || "write 90s, 10m, 2h, 1d or a time such as 2026-01-31T12:00:00Z".to_owned();
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.into());
    }
    let then = span(text).and_then(|ago| SystemTime::now().checked_sub(ago));
    then.ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_read_both_ways() {
        let exact = moment("1970-01-01T00:01:00Z").unwrap();
        assert_eq!(exact, SystemTime::UNIX_EPOCH + Duration::from_secs(60));
        let then = moment("2h").unwrap();
        let ago = SystemTime::now().duration_since(then).unwrap().as_secs();
        assert!((7200..7260).contains(&ago), "{ago}");
        for wrong in ["", "h", "10", "-5m", "tomorrow", "99999999999999999999s"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
