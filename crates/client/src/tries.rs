//! Trying again: how long to wait between tries.

use std::time::Duration;

use rand::RngExt as _;

/// Waits that grow from a first one to a longest one, each shortened by up to half at random so
/// that many clients do not come back at once.
#[derive(Clone, Debug)]
pub struct BackOff {
    next: Duration,
    longest: Duration,
}

impl BackOff {
    /// Waits that grow from `first` to `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            next: first,
            longest,
        }
    }

    /// Waits before the next try.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.step()).await;
    }

    fn step(&mut self) -> Duration {
        let wait = self.next.mul_f64(rand::rng().random_range(0.5..=1.0));
        self.next = (self.next * 2).min(self.longest);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_longest_and_are_never_zero() {
        let millis = Duration::from_millis;
        let mut back_off = BackOff::new(millis(100), millis(300));
        for most in [100, 200, 300, 300, 300] {
            let wait = back_off.step();
            assert!(wait <= millis(most) && wait >= millis(most / 2), "{wait:?}");
        }
    }
}
