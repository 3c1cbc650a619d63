//! One thing that was looked for.

use zareba_config::RuntimeKind;

/// What was looked for and what came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) need: Need,
    pub(super) finding: Finding,
}

/// The check that makes a sandbox.
pub(super) const TRIAL_START: &str = "a trial start";

/// Who needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing works without it.
    Now,
    /// Agents and some actions use it when it is there.
    Useful,
    /// The runtime `native` needs it.
    Sandbox,
    /// The runtime `docker` needs it.
    Docker,
    /// Parts of Zareba that this version does not have will use it.
    Later,
}

/// Whether it is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// What was found.
    Present(String),
    /// What was found, and how to get more.
    Partly(String),
    /// How to get it.
    Missing(String),
    /// Why that cannot be told.
    Unknown(String),
}

impl Check {
    /// Without it no sandbox of this runtime starts here.
    pub(super) fn hinders(&self, kind: RuntimeKind) -> bool {
        let is_needed = match kind {
            RuntimeKind::Native => self.name == TRIAL_START,
            RuntimeKind::Docker => self.need == Need::Docker,
            RuntimeKind::Cli
            | RuntimeKind::Local
            | RuntimeKind::Kubernetes
            | RuntimeKind::Remote
            | RuntimeKind::Daytona
            | RuntimeKind::Modal
            | RuntimeKind::Runloop
            | RuntimeKind::E2b => false,
        };
        // An Engine that does not answer starts nothing either.
        is_needed && matches!(self.finding, Finding::Missing(_) | Finding::Unknown(_))
    }

    /// Without it Zareba does not work here.
    pub(super) fn is_blocking(&self) -> bool {
        self.need == Need::Now && matches!(self.finding, Finding::Missing(_))
    }
}

impl Need {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Now => "Needed now",
            Self::Useful => "Used when it is there",
            Self::Sandbox => "For sandboxes (the runtime native)",
            Self::Docker => "For containers (the runtime docker)",
            Self::Later => {
                "For parts that this version does not have yet (browser, notebook, pods)"
            }
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Useful => "useful",
            Self::Sandbox => "sandbox",
            Self::Docker => "docker",
            Self::Later => "later",
        }
    }
}

impl Finding {
    /// In one word, and in some more.
    pub(super) fn in_words(&self) -> (&'static str, &str) {
        match self {
            Self::Present(what) => ("ok", what),
            Self::Partly(what) => ("partly", what),
            Self::Missing(how) => ("missing", how),
            Self::Unknown(why) => ("unknown", why),
        }
    }

    /// Present if there is something, otherwise missing with advice.
    pub(super) fn of(found: Option<String>, advice: &str) -> Self {
        found.map_or_else(|| Self::Missing(advice.to_owned()), Self::Present)
    }
}
