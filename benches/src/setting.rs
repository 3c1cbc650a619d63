//! What all measurements share: the program, how hard to try, and the peer.

use std::{cell::OnceCell, time::Duration};

use crate::{
    executor::Program,
    lane::Plan,
    peers::{self, Peer},
};

/// How long a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Enough runs for a 99th percentile.
    Full,
    /// Only to see that everything still works; its numbers mean little.
    Quick,
}

impl Effort {
    /// A plan for something that takes well under a millisecond.
    pub(crate) fn plan(self, runs: usize) -> Plan {
        match self {
            Self::Full => Plan {
                warm_up: 200,
                runs,
                block: 100,
                budget: Duration::from_secs(8),
            },
            Self::Quick => Plan {
                warm_up: 5,
                runs: 50,
                block: 10,
                budget: Duration::from_millis(400),
            },
        }
    }

    /// A plan for something that takes milliseconds.
    pub(crate) fn slow_plan(self, runs: usize) -> Plan {
        match self {
            Self::Full => Plan {
                warm_up: 3,
                runs,
                block: 2,
                budget: Duration::from_secs(6),
            },
            Self::Quick => Plan {
                warm_up: 1,
                runs: 3,
                block: 1,
                budget: Duration::from_millis(400),
            },
        }
    }

    /// How long everybody races in one go.
    pub(crate) fn race_time(self) -> Duration {
        match self {
            Self::Full => Duration::from_millis(1500),
            Self::Quick => Duration::from_millis(150),
        }
    }
}

/// The surroundings of a measurement.
#[derive(Debug)]
pub(crate) struct Setting {
    /// With a home that has no start-up files.
    pub(crate) program: Program,
    /// With the home of whoever runs this, when there is one.
    pub(crate) at_home: Option<Program>,
    pub(crate) effort: Effort,
    pub(crate) peer: OnceCell<Result<Peer, String>>,
}

impl Setting {
    /// SWE-ReX as measured in this run, or why there is none.
    pub(crate) fn peer(&self) -> &Result<Peer, String> {
        self.peer.get_or_init(|| match self.effort {
            Effort::Full => peers::swe_rex(),
            Effort::Quick => Err("left out of a quick run".to_owned()),
        })
    }
}
