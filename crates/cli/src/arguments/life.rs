//! When a sandbox of a server ends, as the commands take it that make one.

use std::time::Duration;

use clap::Args;
use zareba_client::{Idle, Seconds, SessionLimits};

use super::update::{IdleArgument, label, time};

/// How long a sandbox of a server lives. Nothing on this machine would keep it.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "With --server")]
pub(crate) struct LifeArguments {
    /// End it when it is this old, such as 90s, 10m, 2h or 1d
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) life_max: Option<Duration>,
    /// Call it idle after this time without use
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) idle_timeout: Option<Duration>,
    /// What happens to it when it is idle
    #[arg(long, value_name = "ACTION")]
    pub(crate) when_idle: Option<IdleArgument>,
    /// Label it; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
}

impl LifeArguments {
    /// The first flag that was given.
    pub(crate) fn first_flag(&self) -> Option<&'static str> {
        let given = [
            ("--life-max", self.life_max.is_some()),
            ("--idle-timeout", self.idle_timeout.is_some()),
            ("--when-idle", self.when_idle.is_some()),
            ("--label", !self.labels.is_empty()),
        ];
        let mut given = given.into_iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(flag, _)| flag)
    }

    /// The limits as a server is told of them.
    pub(crate) fn limits(&self) -> SessionLimits {
        SessionLimits {
            idle_timeout: self.idle_timeout.map(Seconds::from),
            when_idle: self.when_idle.map(Idle::from),
            life_max: self.life_max.map(Seconds::from),
        }
    }
}
