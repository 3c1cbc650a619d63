//! How often something is asked for again, and when.

use std::time::Duration;

use super::{Patience, PullError};

/// The first try included.
const TRIES_MAX: u32 = 3;

/// Counts the tries at one part of an image.
///
/// Everything that is asked of a registry only reads, so asking again changes nothing (RH-2).
#[derive(Debug)]
pub(super) struct Tries<'a> {
    patience: &'a Patience,
    failed: u32,
}

impl<'a> Tries<'a> {
    pub(super) fn new(patience: &'a Patience) -> Self {
        Self {
            patience,
            failed: 0,
        }
    }

    /// Returns when it is time for another try; gives the failure back when there is none.
    pub(super) async fn again(&mut self, failure: PullError) -> Result<(), PullError> {
        self.failed += 1;
        match self.pause(&failure) {
            Some(pause) => {
                tracing::debug!(?pause, error = %failure, "will try again");
                tokio::time::sleep(pause).await;
                Ok(())
            }
            None => Err(failure),
        }
    }

    fn pause(&self, failure: &PullError) -> Option<Duration> {
        if !failure.is_temporary() || self.failed >= TRIES_MAX {
            return None;
        }
        let pause = failure
            .retry_after()
            .unwrap_or(self.patience.pause.saturating_mul(self.failed));
        // Coming back earlier than asked would be rude and useless.
        (pause <= self.patience.pause_max).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Part;

    fn busy(retry_after: Option<u64>) -> PullError {
        PullError::Busy {
            part: Part::Manifest {
                image: "debian".to_owned(),
            },
            host: "images.example".to_owned(),
            status: 429,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    fn pause_after(failed: u32, failure: &PullError) -> Option<u64> {
        let patience = Patience::default();
        let tries = Tries {
            patience: &patience,
            failed,
        };
        tries.pause(failure).map(|pause| pause.as_secs())
    }

    #[test]
    fn there_are_three_tries_with_growing_pauses() {
        let pauses = [1, 2, 3].map(|failed| pause_after(failed, &busy(None)));
        assert_eq!(pauses, [Some(1), Some(2), None]);
    }

    #[test]
    fn a_registry_sets_the_pause_up_to_a_limit() {
        assert_eq!(pause_after(1, &busy(Some(0))), Some(0));
        assert_eq!(pause_after(1, &busy(Some(60))), Some(60));
        assert_eq!(pause_after(1, &busy(Some(61))), None);
        assert_eq!(pause_after(1, &busy(Some(u64::MAX))), None);
    }

    #[test]
    fn what_will_not_change_is_not_tried_again() {
        let failure = PullError::TooSlow {
            limit: Duration::ZERO,
        };
        assert_eq!(pause_after(1, &failure), None);
    }
}
