//! Text from a variable or a flag, read as the shape of the setting it is for.

use super::shape::{Mismatch, Shape};
use crate::literal::parse_literal;
use crate::value::Value;

/// How long a piece of a rejected text may be in an error message.
const QUOTE_MAX: usize = 40;

/// Whose rules for booleans apply; the other types are read alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `true`, `1`, `false` or `0`; anything else is an error.
    Strict,
    /// OpenHands' configuration variables: `true` and `1` are true, everything else is false.
    OpenHands,
    /// OpenHands' executor variables: a few more words are true, everything else is false.
    TruthyWords,
}

impl Dialect {
    /// Reads a text for a setting of this shape.
    pub(crate) fn read(self, text: &str, shape: Shape) -> Result<Value, Mismatch> {
        let mismatch = || Mismatch::Type {
            expected: shape,
            found: quote(text),
        };
        if text.is_empty() && matches!(shape, Shape::Optional(_)) {
            return Ok(Value::Null);
        }
        match shape.inner() {
            Shape::Boolean => self.boolean(text).map(Value::Boolean).ok_or_else(mismatch),
            Shape::Integer { .. } => text
                .trim()
                .parse()
                .map(Value::Integer)
                .map_err(|_| mismatch()),
            Shape::Seconds | Shape::Number => number(text.trim()).ok_or_else(mismatch),
            Shape::TextList | Shape::List(_) | Shape::Table => {
                parse_literal(text).map_err(|error| {
                    Mismatch::rule(format!("must be {shape} in JSON or Python syntax: {error}"))
                })
            }
            // The inner shape is never optional itself.
            Shape::Text
            | Shape::Size
            | Shape::Path
            | Shape::Secret
            | Shape::Choice(_)
            | Shape::Optional(_) => Ok(Value::Text(text.to_owned())),
        }
    }

    fn boolean(self, text: &str) -> Option<bool> {
        let word = text.trim().to_ascii_lowercase();
        match self {
            Self::Strict => match word.as_str() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
            Self::OpenHands => Some(matches!(word.as_str(), "true" | "1")),
            Self::TruthyWords => Some(matches!(
                word.as_str(),
                "1" | "true" | "t" | "yes" | "y" | "on"
            )),
        }
    }
}

fn number(text: &str) -> Option<Value> {
    let integer = text.parse().map(Value::Integer);
    integer.or_else(|_| text.parse().map(Value::Float)).ok()
}

/// The beginning of a text in quotes, with control characters made visible.
pub(super) fn quote(text: &str) -> String {
    let start: String = text.chars().take(QUOTE_MAX).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{more}")
}
