//! [`SessionId`]: the name of a session.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of a session: unique among all that there ever are, and never used again.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// A name that no session can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name of a session: it takes 1 to {max} letters, digits, `-` and `_`",
    max = SessionId::LENGTH_MAX
)]
pub struct InvalidSessionId(String);

impl SessionId {
    /// What a name may have in characters.
    pub const LENGTH_MAX: usize = 64;

    /// Takes a name of 1 to 64 letters, digits, `-` and `_`.
    ///
    /// # Errors
    /// When it is another.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidSessionId> {
        let name = name.into();
        let is_valid = (1..=Self::LENGTH_MAX).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if is_valid {
            Ok(Self(name))
        } else {
            let shown: String = name.chars().take(Self::LENGTH_MAX).collect();
            Err(InvalidSessionId(shown))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl FromStr for SessionId {
    type Err = InvalidSessionId;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<String> for SessionId {
    type Error = InvalidSessionId;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_1_to_64_safe_characters() {
        for name in ["a", "A-1_b", &"x".repeat(64)] {
            assert_eq!(SessionId::new(name).unwrap().as_str(), name);
        }
        for name in ["", ".", "a/b", "ä", "a b", "a\0", &"x".repeat(65)] {
            assert!(SessionId::new(name).is_err(), "{name:?}");
            let json = serde_json::to_string(name).unwrap();
            assert!(
                serde_json::from_str::<SessionId>(&json).is_err(),
                "{name:?}"
            );
        }
    }
}
