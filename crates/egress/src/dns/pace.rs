//! How fast lookups may come.

use std::time::{Duration, Instant};

/// Lookups per second over time. Each can carry data out in its name where a wildcard is
/// allowed, so the pace bounds that; programs need a handful per connection.
const LOOKUPS_PER_SECOND: u32 = 50;
/// Lookups at once: what a package manager does when it starts.
const BURST: u32 = 200;

/// Admits a burst, then one lookup per interval.
#[derive(Debug)]
pub(crate) struct Pace {
    /// When everything that was admitted has had its interval.
    free_at: Instant,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { free_at: now }
    }

    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        let interval = Duration::from_secs(1) / LOOKUPS_PER_SECOND;
        let next = self.free_at.max(now) + interval;
        let is_admitted = next <= now + interval * BURST;
        if is_admitted {
            self.free_at = next;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_pace_holds_eg_5() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let admitted = |pace: &mut Pace, now| (0..1000).filter(|_| pace.admit(now)).count();
        assert_eq!(admitted(&mut pace, start), 200);
        assert_eq!(admitted(&mut pace, start + Duration::from_secs(1)), 50);
        assert_eq!(admitted(&mut pace, start + Duration::from_secs(3600)), 200);
    }
}
