//! How often something may happen: a bucket of tokens per name, and one for all.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Names that are remembered; beyond these, those with a full bucket are forgotten.
const NAMES_MAX: usize = 4096;
/// How often they are looked for, so that many new names do not cost a search each.
const FORGETTING: Duration = Duration::from_secs(1);

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// How often at once.
    pub burst: u32,
    /// How often in a second over time.
    pub per_second: f64,
}

impl Rate {
    /// So often in a minute, all of them at once if need be.
    #[must_use]
    pub fn per_minute(times: u32) -> Self {
        Self {
            burst: times,
            per_second: f64::from(times) / 60.0,
        }
    }
}

/// A bucket that fills by itself.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn full(rate: Rate, now: Instant) -> Self {
        Self {
            tokens: f64::from(rate.burst),
            filled: now,
        }
    }

    fn fill(&mut self, rate: Rate, now: Instant) {
        let earned = now.duration_since(self.filled).as_secs_f64() * rate.per_second;
        self.tokens = (self.tokens + earned).min(f64::from(rate.burst));
        self.filled = now;
    }

    /// Takes a token, or says how long there will be none.
    fn take(&mut self, rate: Rate, now: Instant) -> Result<(), Duration> {
        self.fill(rate, now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let wait = (1.0 - self.tokens) / rate.per_second;
        Err(Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX))
    }
}

/// Buckets by name.
#[derive(Debug)]
pub struct Limiter<N> {
    known: Mutex<Known<N>>,
}

#[derive(Debug)]
struct Known<N> {
    buckets: HashMap<N, (Rate, Bucket)>,
    /// When names were last forgotten.
    forgot: Option<Instant>,
}

impl<N: Eq + Hash> Default for Limiter<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N: Eq + Hash> Limiter<N> {
    /// With all buckets full.
    #[must_use]
    pub fn new() -> Self {
        let buckets = HashMap::new();
        let forgot = None;
        Self {
            known: Mutex::new(Known { buckets, forgot }),
        }
    }

    /// Counts one of `name`'s.
    ///
    /// # Errors
    /// How long it is too many.
    pub fn count(&self, name: N, rate: Rate) -> Result<(), Duration> {
        self.count_at(name, rate, Instant::now())
    }

    fn count_at(&self, name: N, rate: Rate, now: Instant) -> Result<(), Duration> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.buckets.contains_key(&name) && !known.has_room(now) {
            // What cannot be counted is refused: letting it through would be a way around.
            return Err(FORGETTING);
        }
        let (last, bucket) = known
            .buckets
            .entry(name)
            .or_insert_with(|| (rate, Bucket::full(rate, now)));
        *last = rate;
        bucket.take(rate, now)
    }
}

impl<N: Eq + Hash> Known<N> {
    fn has_room(&mut self, now: Instant) -> bool {
        let is_due = self
            .forgot
            .is_none_or(|forgot| now.duration_since(forgot) >= FORGETTING);
        if self.buckets.len() >= NAMES_MAX && is_due {
            self.forgot = Some(now);
            self.buckets.retain(|_, (rate, bucket)| {
                bucket.fill(*rate, now);
                bucket.tokens < f64::from(rate.burst)
            });
        }
        self.buckets.len() < NAMES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        burst: 2,
        per_second: 0.5,
    };

    #[test]
    fn a_burst_is_followed_by_the_rate() {
        let limiter = Limiter::new();
        let start = Instant::now();
        let count = |seconds| {
            let now = start + Duration::from_secs(seconds);
            limiter.count_at("a", RATE, now)
        };
        assert_eq!(count(0), Ok(()));
        assert_eq!(count(0), Ok(()));
        assert_eq!(count(0), Err(Duration::from_secs(2)));
        assert_eq!(count(2), Ok(()));
        assert!(count(2).is_err());
        assert_eq!(limiter.count_at("b", RATE, start), Ok(()));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let limiter = Limiter::new();
        let start = Instant::now();
        for name in 0..2 * NAMES_MAX {
            let counted = limiter.count_at(name, RATE, start);
            // Whoever cannot be counted has to wait.
            assert_eq!(counted.is_ok(), name < NAMES_MAX, "{name}");
        }
        assert_eq!(limiter.known.lock().unwrap().buckets.len(), NAMES_MAX);
        let later = start + Duration::from_secs(60);
        let _ = limiter.count_at(usize::MAX, RATE, later);
        assert_eq!(limiter.known.lock().unwrap().buckets.len(), 1);
    }
}
