//! [`ShellName`]: how an action says which of a sandbox's shells it means.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The name of one of a sandbox's shells.
///
/// Names end up in paths and log lines, so only letters, digits, `_`, `.` and `-` are allowed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ShellName(String);

/// A text that cannot name a shell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a shell name has 1 to 64 characters out of letters, digits, `_`, `.` and `-`")]
pub struct InvalidShellName;

impl ShellName {
    /// The longest name, so that a path made of it stays within any file system's limit.
    pub const CHARS_MAX: usize = 64;

    /// Checks the name.
    ///
    /// # Errors
    /// When it is empty, too long, or has a character that is not allowed.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidShellName> {
        let name = name.into();
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if (1..=Self::CHARS_MAX).contains(&name.len()) && name.bytes().all(is_allowed) {
            Ok(Self(name))
        } else {
            Err(InvalidShellName)
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ShellName {
    /// The shell of an action that names none.
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl fmt::Display for ShellName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl FromStr for ShellName {
    type Err = InvalidShellName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<String> for ShellName {
    type Error = InvalidShellName;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl TryFrom<&str> for ShellName {
    type Error = InvalidShellName;

    fn try_from(name: &str) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<ShellName> for String {
    fn from(name: ShellName) -> Self {
        name.0
    }
}

impl AsRef<str> for ShellName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl JsonSchema for ShellName {
    fn schema_name() -> Cow<'static, str> {
        "ShellName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The name of one of a sandbox's shells.",
            "type": "string",
            "pattern": "^[A-Za-z0-9_.-]{1,64}$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_names_are_kept_as_they_are() {
        for name in ["a", "default", "build-2", "A.b_c", &"x".repeat(64)] {
            assert_eq!(ShellName::new(name).map(String::from).as_deref(), Ok(name));
        }
        assert_eq!(ShellName::default().to_string(), "default");
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["", " ", "a b", "a/b", "é", "a\n", &"x".repeat(65)] {
            assert_eq!(name.parse::<ShellName>(), Err(InvalidShellName), "{name:?}");
        }
    }
}
