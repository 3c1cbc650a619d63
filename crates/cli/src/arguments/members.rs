//! The commands for existing sandboxes.

use std::time::SystemTime;

use clap::Args;
use jiff::Timestamp;

use super::times::span;

/// List sandboxes
#[derive(Args, Debug)]
#[command(after_help = "\
Lists sandboxes of running commands as well. A `lost` sandbox has ended without cleaning up;
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
Prints a summary, or everything with `-o json`. Isolation and limits were read back from the kernel
after the start.

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
Kills everything in them and removes their files. The directory of `--workspace` stays.

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
Refuses a sandbox that runs; `--force` stops it first.

Example:
  zareba rm --force build")]
pub(crate) struct RmArguments {
    /// Stop sandboxes that run
    #[arg(short, long)]
    pub(crate) force: bool,
    /// The sandboxes
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// Pause every process of sandboxes
#[derive(Args, Debug)]
#[command(after_help = "\
They keep their memory and use no processor time, until `zareba resume`.

Example:
  zareba pause build")]
pub(crate) struct PauseArguments {
    /// The sandboxes
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// Resume paused sandboxes
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
Prints a letter and a path for each change: A added, M modified, D deleted, R renamed. Works with a
copy-on-write workspace and with one that began empty. Ignores times, and permissions other than the
one to execute; names directories only when they are empty.

`--patch` prints a patch for `git apply`, or for `patch -p1` if it has no links. Names on standard
error what a patch cannot hold, such as a binary file; `zareba cp --changed` copies it.

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
One side is `ID:PATH`, the other a path of this machine; put `./` before a path with a colon. A
directory is copied into DST under its own name. So is a file when DST is a directory or ends with a
slash; otherwise DST is the file's new name.

`--changed` copies what the sandbox SRC has changed in its workspace (`zareba diff`) into the
directory DST, under the same paths. It names deleted files; `--delete` removes them in DST.

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
    /// What to copy
    #[arg(value_name = "SRC")]
    pub(crate) source: String,
    /// Where to copy it
    #[arg(value_name = "DST")]
    pub(crate) destination: String,
}

/// Reach a port inside a sandbox
#[derive(Args, Debug)]
#[command(after_help = "\
Forwards connections from a port of 127.0.0.1 until it is interrupted, and opens nothing else of the
sandbox's network. Without PORT, lists what listens inside.

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

/// Print the output of what ran in a sandbox
#[derive(Args, Debug)]
#[command(after_help = "\
For a sandbox of this machine: what programs of `zareba run -d` and `zareba exec -d` wrote, of which
the last 8 to 16 MiB are kept; the output of other commands is not kept. For a session of a server
(`--server`): its commands with their outputs, from the event log. `--executor` prints the log of
the sandbox's executor, which sandboxes of `zareba create` and `zareba run -d` have.

Examples:
  zareba logs -f web
  zareba logs --server http://127.0.0.1:7070 my-session
  zareba logs --executor --tail 20 build")]
pub(crate) struct LogsArguments {
    /// Print the log of the sandbox's executor
    #[arg(long)]
    pub(crate) executor: bool,
    /// Print new output until the sandbox ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print only the last N lines
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<u32>,
    /// Print only what was written since: 90s, 10m, 2h, 1d ago, or 2026-01-31T12:00:00Z; with `--executor`, for docker
    #[arg(long, value_name = "TIME", value_parser = moment, requires = "executor")]
    pub(crate) since: Option<SystemTime>,
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

/// Clean up after killed sandboxes and imports
#[derive(Args, Debug)]
#[command(after_help = "\
Each start does the same for its own kind, so this only frees the space earlier.

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
