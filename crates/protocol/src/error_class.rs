//! [`ErrorClass`]: the few kinds of failure that every surface tells apart.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of failure an error is, over HTTP and in every client library.
///
/// Callers decide by the class and show the message; nobody has to read texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The other side is gone or cannot be reached.
    Disconnected,
    /// What was named does not exist.
    NotFound,
    /// The caller may not do this.
    Permission,
    /// It took longer than allowed.
    Timeout,
    /// The request makes no sense as it stands.
    Invalid,
    /// It cannot be done now because something else is being done.
    Busy,
    /// It cannot be done here at all.
    Unsupported,
    /// A fault of ours.
    Internal,
}

impl ErrorClass {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disconnected => "disconnected",
            Self::NotFound => "not_found",
            Self::Permission => "permission",
            Self::Timeout => "timeout",
            Self::Invalid => "invalid",
            Self::Busy => "busy",
            Self::Unsupported => "unsupported",
            Self::Internal => "internal",
        }
    }

    /// Whether the same request may succeed later without anybody changing anything.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Disconnected | Self::Timeout | Self::Busy)
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_word_is_the_displayed_one() {
        let all = [
            ErrorClass::Disconnected,
            ErrorClass::NotFound,
            ErrorClass::Permission,
            ErrorClass::Timeout,
            ErrorClass::Invalid,
            ErrorClass::Busy,
            ErrorClass::Unsupported,
            ErrorClass::Internal,
        ];
        for class in all {
            assert_eq!(serde_json::to_value(class).unwrap(), class.to_string());
        }
    }
}
