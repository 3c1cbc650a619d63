//! The envelope in which actions and observations travel.

use std::time::Duration;

use serde_json::Value;

use crate::{Action, EventSource, Observation, ShellName};

/// An action with what its envelope says.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionEvent {
    /// Number in a session's log.
    pub id: Option<i64>,
    /// When it was asked for: ISO 8601 without a zone.
    pub timestamp: Option<String>,
    /// Who asked.
    pub source: Option<EventSource>,
    /// The event that led to it.
    pub cause: Option<i64>,
    /// Hard timeout in seconds.
    pub timeout: Option<f64>,
    /// What the language model's tool call said; opaque here.
    pub tool_call_metadata: Option<Value>,
    /// What the language model cost; opaque here.
    pub llm_metrics: Option<Value>,
    /// Ours, top-level key `shell`: the shell that a `run` means; absent is the default one.
    pub shell: Option<ShellName>,
    /// Ours, top-level key `once`: a name under which it runs at most once, however often it is
    /// asked for; 1 to 128 visible ASCII characters.
    pub once: Option<String>,
    /// What is asked for.
    pub action: Action,
}

/// An observation with what its envelope says.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservationEvent {
    /// Number in a session's log.
    pub id: Option<i64>,
    /// When it was made: ISO 8601 without a zone.
    pub timestamp: Option<String>,
    /// Who caused it.
    pub source: Option<EventSource>,
    /// The number of the action that it answers.
    pub cause: Option<i64>,
    /// Copied from the action.
    pub tool_call_metadata: Option<Value>,
    /// Copied from the action.
    pub llm_metrics: Option<Value>,
    /// What came back.
    pub observation: Observation,
}

impl ActionEvent {
    /// The longest name that an action can be given so that it runs only once.
    pub const ONCE_CHARS_MAX: usize = 128;

    /// Whether a text can be the name under which an action runs only once.
    pub fn is_once_name(text: &str) -> bool {
        (1..=Self::ONCE_CHARS_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// The same with a hard timeout in seconds.
    #[must_use]
    pub fn with_timeout(self, seconds: f64) -> Self {
        Self {
            timeout: Some(seconds),
            ..self
        }
    }

    /// The same for the shell `shell`.
    #[must_use]
    pub fn with_shell(self, shell: ShellName) -> Self {
        Self {
            shell: Some(shell),
            ..self
        }
    }

    /// The hard timeout as a duration.
    ///
    /// The number comes from outside: a negative one means at once, and one that is too large
    /// for a duration, or no number at all, means no timeout.
    pub fn hard_timeout(&self) -> Option<Duration> {
        let seconds = self.timeout?;
        if seconds <= 0.0 {
            Some(Duration::ZERO)
        } else {
            Duration::try_from_secs_f64(seconds).ok()
        }
    }
}

impl From<Action> for ActionEvent {
    fn from(action: Action) -> Self {
        Self {
            id: None,
            timestamp: None,
            source: None,
            cause: None,
            timeout: None,
            tool_call_metadata: None,
            llm_metrics: None,
            shell: None,
            once: None,
            action,
        }
    }
}

impl From<Observation> for ObservationEvent {
    fn from(observation: Observation) -> Self {
        Self {
            id: None,
            timestamp: None,
            source: None,
            cause: None,
            tool_call_metadata: None,
            llm_metrics: None,
            observation,
        }
    }
}
