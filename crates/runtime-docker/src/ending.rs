//! How a container has ended, told apart (DK-8).

use bollard::models::ContainerInspectResponse;
use serde_json::{Value, json};

/// Signals are told by exit codes above this.
const SIGNAL_BASE: i64 = 128;
/// The highest number of a signal.
const SIGNAL_MAX: i64 = 64;

/// Why there is no executor any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExitReason {
    /// The kernel killed it because the sandbox had no memory left.
    #[error("the container was killed because it had no memory left")]
    OutOfMemory,
    /// A signal ended it.
    #[error("the container was ended by signal {0}")]
    Signal(i64),
    /// It ended by itself.
    #[error("the container ended with exit code {0}")]
    Code(i64),
    /// Somebody removed it.
    #[error("the container was removed")]
    Removed,
}

impl ExitReason {
    /// As a document: `kind` is one word, with the number that belongs to it.
    pub fn describe(&self) -> Value {
        let message = self.to_string();
        match self {
            Self::OutOfMemory => json!({ "kind": "out_of_memory", "message": message }),
            Self::Signal(number) => {
                json!({ "kind": "signal", "signal": number, "message": message })
            }
            Self::Code(code) => json!({ "kind": "code", "code": code, "message": message }),
            Self::Removed => json!({ "kind": "removed", "message": message }),
        }
    }
}

/// How a container is, by what the Engine says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Made, and not started yet.
    New,
    Running,
    Paused,
    Ended(ExitReason),
}

impl Condition {
    /// `None` is a container that is not there.
    pub(crate) fn of(container: Option<&ContainerInspectResponse>) -> Self {
        let Some(container) = container else {
            return Self::Ended(ExitReason::Removed);
        };
        let state = container.state.clone().unwrap_or_default();
        let is = |flag: Option<bool>| flag.unwrap_or(false);
        if is(state.paused) {
            return Self::Paused;
        }
        if is(state.running) || is(state.restarting) {
            return Self::Running;
        }
        let started = state.started_at.unwrap_or_default();
        if started.is_empty() || started.starts_with("0001-") {
            return Self::New;
        }
        if is(state.oom_killed) {
            return Self::Ended(ExitReason::OutOfMemory);
        }
        let code = state.exit_code.unwrap_or_default();
        let signal = code - SIGNAL_BASE;
        Self::Ended(if (1..=SIGNAL_MAX).contains(&signal) {
            ExitReason::Signal(signal)
        } else {
            ExitReason::Code(code)
        })
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ContainerState;

    use super::*;

    fn condition(change: impl FnOnce(&mut ContainerState)) -> Condition {
        let mut state = ContainerState {
            started_at: Some("2026-01-01T00:00:00Z".to_owned()),
            ..ContainerState::default()
        };
        change(&mut state);
        Condition::of(Some(&ContainerInspectResponse {
            state: Some(state),
            ..ContainerInspectResponse::default()
        }))
    }

    #[test]
    fn ends_are_told_apart_dk_8() {
        let ended = Condition::Ended;
        assert_eq!(condition(|it| it.running = Some(true)), Condition::Running);
        assert_eq!(
            condition(|it| (it.running, it.paused) = (Some(true), Some(true))),
            Condition::Paused
        );
        assert_eq!(
            condition(|it| it.started_at = Some("0001-01-01T00:00:00Z".to_owned())),
            Condition::New
        );
        assert_eq!(
            condition(|it| (it.oom_killed, it.exit_code) = (Some(true), Some(137))),
            ended(ExitReason::OutOfMemory)
        );
        assert_eq!(
            condition(|it| it.exit_code = Some(137)),
            ended(ExitReason::Signal(9))
        );
        assert_eq!(
            condition(|it| it.exit_code = Some(3)),
            ended(ExitReason::Code(3))
        );
        assert_eq!(Condition::of(None), ended(ExitReason::Removed));
    }
}
