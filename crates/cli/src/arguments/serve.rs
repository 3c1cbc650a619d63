//! `zareba serve`, `zareba key` and `zareba log`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use zareba_protocol::amounts::parse_bytes;

/// Serve sessions to many clients over HTTP
#[derive(Args, Debug)]
#[command(after_help = "\
The first start makes a key that may do everything and keeps it in `admin.key` in the state
directory, which only its owner can read. A server that is killed leaves its sandboxes running, and
the next start finds them again.

Examples:
  zareba serve
  zareba serve --listen 127.0.0.1:8080 --detach
  zareba serve --stop")]
pub(crate) struct ServeArguments {
    /// Where to listen: an address with a port, or `unix:` and a path [default: server.listen]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Go to the background once the server answers
    #[arg(long, conflicts_with = "stop")]
    pub(crate) detach: bool,
    /// Stop the server of this state directory
    #[arg(long)]
    pub(crate) stop: bool,
    /// Leave the terminal
    #[arg(long, hide = true)]
    pub(crate) in_background: bool,
    /// Write a line to this descriptor when it answers
    #[arg(long, value_name = "FD", hide = true)]
    pub(crate) ready_fd: Option<u16>,
    /// End when this descriptor does
    #[arg(long, value_name = "FD", hide = true)]
    pub(crate) lifeline_fd: Option<u16>,
}

/// Keys of the server
#[derive(Args, Debug)]
pub(crate) struct KeyArguments {
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    Create(Box<CreateKeyArguments>),
    /// List keys, without their secrets
    Ls,
    Rm(RemoveKeyArguments),
}

/// Make a key, and print its secret once
#[derive(Args, Debug)]
#[command(after_help = "\
Works with and without a running server.

Example:
  zareba key create --owner alice --scope session")]
pub(crate) struct CreateKeyArguments {
    /// The owner of its sessions
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: String,
    /// What it allows
    #[arg(long, value_name = "SCOPE", default_value = "session")]
    pub(crate) scope: ScopeArgument,
    /// How many seconds it is valid [default: until it is removed]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) expires_in: Option<f64>,
    /// How many sessions its owner may have at once
    #[arg(long, value_name = "COUNT")]
    pub(crate) sessions: Option<usize>,
    /// How many actions it may ask for in a minute
    #[arg(long, value_name = "COUNT")]
    pub(crate) actions_per_minute: Option<u32>,
    /// The most memory that a session may ask for, such as 512MiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) memory_max: Option<u64>,
    /// The most processors that a session may ask for, such as 0.5
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cpus_max: Option<f64>,
    /// The most processes and threads that a session may ask for
    #[arg(long, value_name = "N")]
    pub(crate) pids_max: Option<u32>,
    /// The most that a session may ask for its changes to files
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) disk_max: Option<u64>,
    /// How many seconds a session may live
    #[arg(long, value_name = "SECONDS")]
    pub(crate) life_max: Option<f64>,
    /// A network that a session may have, with those that are stricter; may be repeated
    #[arg(long, value_name = "NETWORK")]
    pub(crate) networks: Vec<String>,
    /// A host that a session may reach, in a filtered network only; may be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) hosts: Vec<String>,
    /// A runtime that a session may have; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) runtimes: Vec<String>,
    /// An image that a session may name, such as 'debian:*'; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) images: Vec<String>,
    /// A directory of the server that a session may have, with those below it; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) workspaces: Vec<String>,
}

fn bytes(text: &str) -> Result<u64, String> {
    let refused = || format!("`{text}` is no size, such as 512MiB");
    parse_bytes(text).ok_or_else(refused)
}

/// What a key allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArgument {
    // Not documentation: clap would print a list of it in every help text.
    // Looking at the owner's sessions.
    Read,
    // Making and using the owner's sessions.
    Session,
    // Everyone's sessions, and keys.
    Admin,
}

/// Remove keys, at once
#[derive(Args, Debug)]
pub(crate) struct RemoveKeyArguments {
    /// The keys
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// The event log of the server
#[derive(Args, Debug)]
pub(crate) struct LogArguments {
    #[command(subcommand)]
    pub(crate) command: LogCommand,
}

/// What can be done with the log.
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// List sessions and what their logs take
    Ls,
    Verify(VerifyLogArguments),
    Export(ExportLogArguments),
    Import(ImportLogArguments),
}

/// Check numbers, digests and links of logs
#[derive(Args, Debug)]
#[command(after_help = "\
Ends with 1 when something is wrong, and says where. Works while a server runs.

Example:
  zareba log verify my-session")]
pub(crate) struct VerifyLogArguments {
    /// The sessions [default: all]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
}

/// Write a session's log to standard output or to a directory
#[derive(Args, Debug)]
#[command(after_help = "\
Without a directory it is one JSON object per line with everything that the log holds. With
`--openhands` it is an event stream of OpenHands: one file per event. Works while a server runs.

Examples:
  zareba log export my-session > run.jsonl
  zareba log export my-session --openhands ./events")]
pub(crate) struct ExportLogArguments {
    /// The session
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Write files of OpenHands' event stream into this directory
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) openhands: Option<PathBuf>,
}

/// Read an export into the log
#[derive(Args, Debug)]
#[command(after_help = "\
Numbers, digests and links are checked. No server may run in this state directory meanwhile.

Example:
  zareba log import run.jsonl")]
pub(crate) struct ImportLogArguments {
    /// The export
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
