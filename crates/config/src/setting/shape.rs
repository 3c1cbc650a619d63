//! The contract of a setting's type, and the complaint when a value breaks it.

use std::fmt;

use super::text::quote;
use crate::nearest::nearest;
use crate::problem::Hint;
use crate::value::Value;

/// A type that a setting can have.
pub(crate) trait Setting: Sized {
    /// What the type accepts, for parsing text, for error messages and for the reference.
    const SHAPE: Shape;

    /// Accepts a value or says what is wrong with it.
    fn read(value: &Value) -> Result<Self, Mismatch>;

    /// The value that [`Setting::read`] would read back as this one.
    fn write(&self) -> Value;
}

/// What values a setting accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Boolean,
    Integer {
        max: i64,
    },
    Seconds,
    Number,
    Size,
    Text,
    Path,
    Secret,
    Choice(&'static [&'static str]),
    TextList,
    /// A list of what the words say.
    List(&'static str),
    Table,
    Optional(&'static Shape),
}

/// Why a value was not accepted. The key and the place are added by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mismatch {
    Type { expected: Shape, found: String },
    Value { reason: String, hint: Option<Hint> },
}

impl Shape {
    /// The shape of the value itself when there is one.
    pub(crate) fn inner(self) -> Self {
        match self {
            Self::Optional(inner) => inner.inner(),
            other => other,
        }
    }
}

/// The words of an error message, after "must be".
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("a boolean"),
            Self::Integer { max } => write!(f, "an integer from 0 to {max}"),
            Self::Seconds => f.write_str("a number of seconds"),
            Self::Number => f.write_str("a number"),
            Self::Size => f.write_str(
                "a number of bytes, or one with a unit of 1024s such as \"512MiB\" or \"2G\"",
            ),
            Self::Text | Self::Secret => f.write_str("a string"),
            Self::Path => f.write_str("a path"),
            Self::Choice(words) => {
                f.write_str("one of ")?;
                for (index, word) in words.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}\"{word}\"")?;
                }
                Ok(())
            }
            Self::TextList => f.write_str("a list of strings"),
            Self::List(items) => write!(f, "a list of {items}"),
            Self::Table => f.write_str("a table"),
            Self::Optional(inner) => inner.fmt(f),
        }
    }
}

impl Mismatch {
    /// The complaint about a value of the wrong type.
    pub(crate) fn wrong_type(expected: Shape, found: &Value) -> Self {
        Self::Type {
            expected,
            found: found.kind().to_owned(),
        }
    }

    /// The complaint about a value that breaks a rule.
    pub(crate) fn rule(reason: impl Into<String>) -> Self {
        Self::Value {
            reason: reason.into(),
            hint: None,
        }
    }
}

/// The complaint of a [`choice`] type about a value that is none of its words.
pub(crate) fn choice_mismatch(shape: Shape, value: &Value) -> Mismatch {
    match (shape, value) {
        (Shape::Choice(words), Value::Text(text)) => Mismatch::Value {
            reason: format!("must be {shape}, not {}", quote(text)),
            hint: nearest(text, words.iter().copied())
                .map(|word| Hint::DidYouMean(word.to_owned())),
        },
        (shape, other) => Mismatch::wrong_type(shape, other),
    }
}
