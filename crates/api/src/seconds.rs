//! [`Seconds`]: a duration as a JSON number.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A duration in seconds, whole or not: zero or more, and at most a hundred years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schema(value_type = f64, minimum = 0, maximum = 3_155_760_000_f64)]
pub struct Seconds(Duration);

/// A number that is no duration.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("a number of seconds is between 0 and {max}", max = Seconds::MAX)]
pub struct InvalidSeconds;

impl Seconds {
    /// A hundred years: more would overflow clocks that it is added to.
    pub const MAX: u64 = 3_155_760_000;

    /// The duration.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl From<Duration> for Seconds {
    fn from(duration: Duration) -> Self {
        Self(duration.min(Duration::from_secs(Self::MAX)))
    }
}

impl TryFrom<f64> for Seconds {
    type Error = InvalidSeconds;

    fn try_from(seconds: f64) -> Result<Self, Self::Error> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if duration.as_secs() <= Self::MAX => Ok(Self(duration)),
            Ok(_) | Err(_) => Err(InvalidSeconds),
        }
    }
}

impl From<Seconds> for f64 {
    fn from(seconds: Seconds) -> Self {
        seconds.0.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_a_clock_can_hold_are_durations() {
        for (json, expected) in [
            ("0", Some(Duration::ZERO)),
            ("1.5", Some(Duration::from_millis(1500))),
            ("-1", None),
            ("1e300", None),
            ("\"3\"", None),
        ] {
            let read = serde_json::from_str::<Seconds>(json).ok();
            assert_eq!(read.map(Seconds::duration), expected, "{json}");
        }
    }
}
