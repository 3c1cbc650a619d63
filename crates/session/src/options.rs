//! What is asked of a session.

use std::{collections::BTreeMap, fmt, num::NonZeroU8, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use zareba_protocol::SessionId;
use zareba_runtime::SandboxRequest;

use crate::{PermittedParts, PermittedReach, RequestMaxima, SessionsOptions};

/// Who a session belongs to: the name of an API key's holder. Others do not get to know that it
/// exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner(pub String);

/// A value that is shown and stored only as a mask.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// What a session shall be like. Anything left out is as the server's settings say.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// Its id; `None` lets us choose a random one.
    pub id: Option<SessionId>,
    /// What its owner calls it, where the id is made of owner and name ([`own_id`](crate::own_id)).
    pub name: Option<SessionId>,
    /// The runtime to run in.
    pub runtime: Option<String>,
    /// The image whose files it has.
    pub image: Option<String>,
    /// The directory of this machine to work in; the server must have allowed that.
    pub workspace: Option<PathBuf>,
    /// Variables of its shells.
    pub environment: Vec<(String, String)>,
    /// Variables of its shells whose values are masked wherever they would be stored or shown.
    pub secrets: Vec<(String, Secret)>,
    /// What people call it.
    pub labels: BTreeMap<String, String>,
    /// How long a command may be silent before the agent is told.
    pub no_change_timeout: Option<Duration>,
    /// How long an action may take that does not say so itself.
    pub timeout: Option<Duration>,
    /// When it goes to sleep and when it ends.
    pub limits: SessionLimits,
    /// What is run before it is ready.
    pub setup: Setup,
    /// What else is asked of its sandbox.
    pub request: SandboxRequest,
    /// The most that its owner may ask for, where that is less than the server's settings allow.
    pub maxima: RequestMaxima,
    /// What it may be made of, where that is less than the server's settings allow.
    pub parts: PermittedParts,
    /// What it may reach, where that is less than the server's settings allow.
    pub reach: PermittedReach,
    /// How long it may live, where that is shorter than the server's settings allow.
    pub life_max: Option<Duration>,
    /// How many times the memory and processors that its runtime usually gives.
    pub scale: Option<NonZeroU8>,
    /// Sessions that its owner may have open at once, this one included, where that is fewer than
    /// the server's settings allow.
    pub quota: Option<usize>,
}

/// When a session goes to sleep and when it ends; `None` is as the server's settings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLimits {
    /// How long nothing may be asked of it.
    pub idle_timeout: Option<Duration>,
    /// What happens then.
    pub when_idle: Option<Idle>,
    /// How long it may live, used or not.
    pub life_max: Option<Duration>,
}

impl SessionLimits {
    /// What is written down of limits that are permitted: what was asked for, and a key's longest life
    /// where no life was, so that a client is told of the limit that holds.
    pub(crate) fn bounded(self, options: &SessionsOptions, of_key: Option<Duration>) -> Self {
        let life_max = stricter_of(self.life_max, of_key);
        let held = Self { life_max, ..self }.within(options);
        Self {
            idle_timeout: self.idle_timeout.and(held.idle_timeout),
            when_idle: self.when_idle.and(held.when_idle),
            life_max: life_max.and(held.life_max),
        }
    }

    /// What holds when the server's settings say something, too: the stricter of both. A client
    /// may shorten what it was given, never lengthen it.
    pub(crate) fn within(self, options: &SessionsOptions) -> Self {
        let stricter = |asked: Option<Duration>, set: Duration| asked.unwrap_or(set).min(set);
        let asked = self.when_idle.unwrap_or(options.when_idle);
        let idle_timeout = match options.when_idle {
            // Nothing was set that could be lengthened.
            Idle::Stay => self.idle_timeout.unwrap_or(options.idle_timeout),
            Idle::Pause | Idle::Close => stricter(self.idle_timeout, options.idle_timeout),
        };
        let life_max = stricter_of(self.life_max, options.life_max);
        Self {
            idle_timeout: Some(idle_timeout),
            when_idle: Some(asked.max(options.when_idle)),
            life_max,
        }
    }
}

/// The shorter of two times, of which each may be none.
pub(crate) fn stricter_of(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// What happens to an idle session, in the order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// Nothing.
    Stay,
    /// It is paused, and wakes when something is asked of it. Where the runtime cannot pause, it
    /// goes on.
    Pause,
    /// It is closed.
    Close,
}

/// What is run before a session is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setup {
    /// What the workspace brings: `.openhands/setup.sh` and `.openhands/pre-commit.sh`.
    #[default]
    Workspace,
    /// Nothing.
    Nothing,
}
