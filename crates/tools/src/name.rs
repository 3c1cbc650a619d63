//! [`ToolName`]: what a tool is called by.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The longest name. Language models take 64, MCP servers 128.
const CHARS_MAX: usize = 128;

/// A tool's name: 1 to 128 of `A`–`Z`, `a`–`z`, `0`–`9`, `_`, `.` and `-`, so that it can stand in
/// a path, in a schema and in a log as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

/// A text that cannot name a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` cannot name a tool: use 1 to {CHARS_MAX} letters, digits, `_`, `.` and `-`",
    name.chars().take(CHARS_MAX).collect::<String>().escape_debug()
)]
pub struct InvalidToolName {
    /// The text.
    pub name: String,
}

impl ToolName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ToolName {
    type Error = InvalidToolName;

    fn try_from(name: String) -> Result<Self, InvalidToolName> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let is_name = (1..=CHARS_MAX).contains(&name.len()) && name.bytes().all(is_plain);
        // Two names that a path would take for directories.
        if is_name && name != "." && name != ".." {
            Ok(Self(name))
        } else {
            Err(InvalidToolName { name })
        }
    }
}

impl TryFrom<&str> for ToolName {
    type Error = InvalidToolName;

    fn try_from(name: &str) -> Result<Self, InvalidToolName> {
        Self::try_from(name.to_owned())
    }
}

impl FromStr for ToolName {
    type Err = InvalidToolName;

    fn from_str(name: &str) -> Result<Self, InvalidToolName> {
        Self::try_from(name)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_stand_in_a_path_a_schema_and_a_log() {
        for name in ["a", "math_add", "github.list-issues", "_", &"a".repeat(128)] {
            assert_eq!(ToolName::try_from(name).unwrap().as_str(), name);
        }
        for name in ["", ".", "..", "a/b", "a b", "ä", "a\n", &"a".repeat(129)] {
            let error = ToolName::try_from(name).unwrap_err();
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}
