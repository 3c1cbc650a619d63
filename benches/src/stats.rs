//! Many timings of the same thing, and what is said of them.

use std::time::Duration;

/// Timings of one thing, in the order in which they were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Samples {
    timings: Vec<Duration>,
}

impl Samples {
    pub(crate) fn push(&mut self, timing: Duration) {
        self.timings.push(timing);
    }

    pub(crate) fn len(&self) -> usize {
        self.timings.len()
    }

    pub(crate) fn p50(&self) -> Duration {
        self.percentile(50)
    }

    pub(crate) fn p99(&self) -> Duration {
        self.percentile(99)
    }

    /// The smallest timing that `percent` of all timings do not exceed (nearest rank); zero
    /// when there are none. Never a value between two timings, which nobody measured.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.timings.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent.min(100)).div_ceil(100);
        sorted
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or_default()
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(timings: I) -> Self {
        Self {
            timings: timings.into_iter().collect(),
        }
    }
}

/// The middle one of a few numbers; of an even count the upper of the two.
pub(crate) fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(micros: &[u64], percent: usize, expected: u64) {
        let samples: Samples = micros.iter().copied().map(Duration::from_micros).collect();
        assert_eq!(samples.percentile(percent), Duration::from_micros(expected));
    }

    #[test]
    fn percentiles_are_timings_that_were_taken() {
        check(&[30, 10, 20], 50, 20);
        check(&[30, 10, 20, 40], 50, 20);
        check(&[30, 10, 20], 0, 10);
        check(&[30, 10, 20], 100, 30);
        check(&[7], 99, 7);
    }

    #[test]
    fn one_in_a_hundred_may_be_slower_than_p99() {
        let mut timings = vec![1; 99];
        timings.push(1000);
        check(&timings, 99, 1);
        timings.extend([1; 99]);
        timings.push(1000);
        check(&timings, 99, 1);
        timings.push(1000);
        check(&timings, 99, 1000);
    }

    #[test]
    fn nothing_measured_is_zero() {
        check(&[], 50, 0);
    }

    #[test]
    fn the_median_ignores_how_far_the_others_are_off() {
        assert_eq!(median(&[5.0, 1000.0, 1.0]), 5.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 3.0);
    }
}
