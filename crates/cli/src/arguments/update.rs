//! `zareba update`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use zareba_client::Idle;

use super::{split_variable, times::span};

/// Change how long sandboxes of a server live
#[derive(Args, Debug)]
#[command(after_help = "\
Needs `--server`: sandboxes of this machine live until they are stopped. Changes only what is named,
within the limits of the server's settings and of the key.

Examples:
  zareba --server http://127.0.0.1:7070 update build --ends-in 2h
  zareba update build --idle-timeout 10m --when-idle close --label task=17")]
pub(crate) struct UpdateArguments {
    /// End them after this time from now, such as 90s, 10m, 2h or 1d
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) ends_in: Option<Duration>,
    /// End them when they are this old
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "ends_in")]
    pub(crate) life_max: Option<Duration>,
    /// Count them as idle after this time without use
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) idle_timeout: Option<Duration>,
    /// What to do with them when they are idle
    #[arg(long, value_name = "ACTION")]
    pub(crate) when_idle: Option<IdleArgument>,
    /// Label them, and remove other labels; may be repeated
    #[arg(short, long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// The sandboxes
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// What happens to an idle sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IdleArgument {
    // Not documentation: clap would print a list of it in every help text.
    // It is frozen until it is used.
    Pause,
    // It ends.
    Close,
    // Nothing.
    Stay,
}

impl From<IdleArgument> for Idle {
    fn from(argument: IdleArgument) -> Self {
        match argument {
            IdleArgument::Pause => Self::Pause,
            IdleArgument::Close => Self::Close,
            IdleArgument::Stay => Self::Stay,
        }
    }
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    let some = span(text).filter(|span| !span.is_zero());
    some.ok_or_else(|| "write 90s, 10m, 2h or 1d".to_owned())
}

pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = split_variable(text).map_err(|failure| failure.to_string())?;
    Ok((name.to_owned(), value.to_owned()))
}
