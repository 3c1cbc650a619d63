//! `zareba egress`: how a supervisor starts a sandbox's proxy. Not for people.

use std::path::PathBuf;

use clap::Args;

/// Pass a sandbox's traffic on, as far as rules allow it
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct EgressArguments {
    /// What may be reached, as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) policy: String,
    /// Where every decision is written
    #[arg(long, value_name = "FILE")]
    pub(crate) decisions: PathBuf,
    /// Where their numbers are written
    #[arg(long, value_name = "FILE")]
    pub(crate) counters: PathBuf,
    /// A socket that listens in the sandbox
    #[arg(long = "tcp-fd", value_name = "N")]
    pub(crate) tcp: Vec<i32>,
    /// A socket that gets questions for addresses there
    #[arg(long = "udp-fd", value_name = "N")]
    pub(crate) udp: Vec<i32>,
}
