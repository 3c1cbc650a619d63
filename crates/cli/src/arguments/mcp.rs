//! `zareba mcp`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

use super::{LifeArguments, SandboxArguments};

/// Give a sandbox to a client of the Model Context Protocol
#[derive(Args, Debug)]
#[command(after_help = "\
Speaks on standard input and output, or with `--http` over HTTP, and ends with its client. Offers
the tools of every sandbox (run_command, read_file, edit_file, search_files and others), and those
of MCP servers in the `[mcp]` section of the configuration, whose programs run inside the sandbox.

With `--http` every request needs the token: that of `--token-file` or ZAREBA_MCP_TOKEN, or one
that is made and kept in a file that only you can read, as long as the server runs.

Examples:
  claude mcp add sandbox -- zareba mcp --workspace .
  zareba mcp --session build
  zareba mcp --http --network filtered --allow pypi.org")]
pub(crate) struct McpArguments {
    /// Use this existing sandbox instead of a fresh one
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Serve streamable HTTP on this loopback address instead of standard input and output
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:8017")]
    pub(crate) http: Option<SocketAddr>,
    /// A file with the token that clients must show, of 32 characters or more
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Accept requests of web pages of this origin; may be repeated
    #[arg(long, value_name = "URL", requires = "http")]
    pub(crate) origin: Vec<String>,
    /// Accept the tools of this configured server as they are now; may be repeated
    #[arg(long, value_name = "SERVER")]
    pub(crate) approve: Vec<String>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
    #[command(flatten)]
    pub(crate) life: LifeArguments,
}
