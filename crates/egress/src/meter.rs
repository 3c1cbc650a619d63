//! How much one sandbox sends and receives: counted, slowed down and stopped (EG-7).

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::denial::Denial;
use crate::limits::Limits;

/// What all connections of a sandbox share.
#[derive(Debug)]
pub(crate) struct Meter {
    bytes_per_second: Option<u64>,
    bytes_total: Option<u64>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Bytes that were let through.
    passed: u64,
    /// When what was let through so far has had its time.
    free_at: Instant,
}

impl Meter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            bytes_per_second: limits.bytes_per_second,
            bytes_total: limits.bytes_total,
            state: Mutex::new(State {
                passed: 0,
                free_at: Instant::now(),
            }),
        }
    }

    /// Returns when so many bytes may pass, or why they may not. Connections take turns in the
    /// order in which they ask. Dropping the future gives nothing back.
    pub(crate) async fn admit(&self, bytes: usize) -> Result<(), Denial> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if let Some(turn) = self.book(bytes, Instant::now())? {
            sleep_until(turn).await;
        }
        Ok(())
    }

    /// Whether the sandbox has anything left to send and receive.
    pub(crate) fn check(&self) -> Result<(), Denial> {
        self.book(0, Instant::now()).map(|_| ())
    }

    fn book(&self, bytes: u64, now: Instant) -> Result<Option<Instant>, Denial> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = state.passed.saturating_add(bytes);
        if let Some(limit) = self.bytes_total
            && (passed > limit || state.passed == limit)
        {
            return Err(Denial::BytesTotal { limit });
        }
        state.passed = passed;
        let Some(rate) = self.bytes_per_second else {
            return Ok(None);
        };
        let turn = state.free_at.max(now);
        let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let nanoseconds = u64::try_from(nanoseconds).unwrap_or(u64::MAX);
        state.free_at = turn + Duration::from_nanos(nanoseconds);
        Ok((turn > now).then_some(turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(bytes_per_second: Option<u64>, bytes_total: Option<u64>) -> Meter {
        Meter::new(&Limits {
            bytes_per_second,
            bytes_total,
            ..Limits::default()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_pass_no_faster_than_the_limit_eg_7() {
        let meter = meter(Some(1000), None);
        let start = Instant::now();
        for _ in 0..11 {
            meter.admit(500).await.unwrap();
        }
        assert_eq!(start.elapsed(), Duration::from_secs(5));
    }

    #[tokio::test]
    async fn no_more_bytes_pass_than_the_limit_eg_7() {
        let meter = meter(None, Some(1000));
        assert_eq!(meter.admit(999).await, Ok(()));
        assert_eq!(meter.check(), Ok(()));
        assert_eq!(
            meter.admit(2).await,
            Err(Denial::BytesTotal { limit: 1000 })
        );
        assert_eq!(meter.admit(1).await, Ok(()));
        assert_eq!(meter.check(), Err(Denial::BytesTotal { limit: 1000 }));
    }
}
