//! How often wrong keys are told to be wrong: guessing is slow, and right keys are let in however
//! many wrong ones there were.

use std::{net::IpAddr, time::Duration};

use crate::limiter::{Limiter, Rate};

/// Wrong keys of one source that are told so; more are told to wait.
const PER_SOURCE: Rate = Rate {
    burst: 20,
    per_second: 0.5,
};
/// The same of all sources.
const OF_ALL: Rate = Rate {
    burst: 500,
    per_second: 20.0,
};

/// Counts wrong keys by where they came from, and all of them.
#[derive(Debug, Default)]
pub struct WrongKeys {
    counts: Limiter<Option<IpAddr>>,
}

impl WrongKeys {
    /// Counts a wrong key.
    ///
    /// # Errors
    /// How long its sender is told to wait, because there were too many.
    pub fn count(&self, source: IpAddr) -> Result<(), Duration> {
        let of_source = self.counts.count(Some(network(source)), PER_SOURCE);
        let of_all = self.counts.count(None, OF_ALL);
        of_source.and(of_all)
    }
}

/// A client with one address of version 6 has a whole network of them.
fn network(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(prefix.into())
        }
        version_4 => version_4,
    }
}
