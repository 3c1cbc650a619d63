//! The plain types that settings have: one small implementation each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::shape::{Mismatch, Setting, Shape};
use crate::secret::Secret;
use crate::value::Value;

impl Setting for bool {
    const SHAPE: Shape = Shape::Boolean;

    fn read(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Boolean(boolean) => Ok(*boolean),
            other => Err(Mismatch::wrong_type(Self::SHAPE, other)),
        }
    }

    fn write(&self) -> Value {
        Value::Boolean(*self)
    }
}

macro_rules! integer_setting {
    ($($integer:ty),+) => {$(
        impl Setting for $integer {
            const SHAPE: Shape = Shape::Integer { max: <$integer>::MAX as i64 };

            fn read(value: &Value) -> Result<Self, Mismatch> {
                match value {
                    Value::Integer(integer) => Self::try_from(*integer).map_err(|_| Mismatch::Type {
                        expected: Self::SHAPE,
                        found: integer.to_string(),
                    }),
                    other => Err(Mismatch::wrong_type(Self::SHAPE, other)),
                }
            }

            fn write(&self) -> Value {
                Value::Integer(i64::from(*self))
            }
        }
    )+};
}

integer_setting!(u16, u32);

/// Seconds, whole or not: the unit of every duration outside the program.
impl Setting for Duration {
    const SHAPE: Shape = Shape::Seconds;

    fn read(value: &Value) -> Result<Self, Mismatch> {
        let seconds = match value {
            Value::Integer(integer) => u64::try_from(*integer).ok().map(Self::from_secs),
            Value::Float(float) => Self::try_from_secs_f64(*float).ok(),
            other => return Err(Mismatch::wrong_type(Self::SHAPE, other)),
        };
        seconds.ok_or_else(|| Mismatch::Type {
            expected: Self::SHAPE,
            found: value.to_string(),
        })
    }

    fn write(&self) -> Value {
        match i64::try_from(self.as_secs()) {
            Ok(seconds) if self.subsec_nanos() == 0 => Value::Integer(seconds),
            _ => Value::Float(self.as_secs_f64()),
        }
    }
}

impl Setting for String {
    const SHAPE: Shape = Shape::Text;

    fn read(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            other => Err(Mismatch::wrong_type(Self::SHAPE, other)),
        }
    }

    fn write(&self) -> Value {
        Value::Text(self.clone())
    }
}

impl Setting for PathBuf {
    const SHAPE: Shape = Shape::Path;

    fn read(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Text(text) => Ok(Self::from(text)),
            other => Err(Mismatch::wrong_type(Self::SHAPE, other)),
        }
    }

    fn write(&self) -> Value {
        Value::Text(self.to_string_lossy().into_owned())
    }
}

impl Setting for Secret {
    const SHAPE: Shape = Shape::Secret;

    fn read(value: &Value) -> Result<Self, Mismatch> {
        String::read(value).map(Self::new)
    }

    fn write(&self) -> Value {
        Value::Text(self.expose().to_owned())
    }
}

impl Setting for Vec<String> {
    const SHAPE: Shape = Shape::TextList;

    fn read(value: &Value) -> Result<Self, Mismatch> {
        let Value::List(items) = value else {
            return Err(Mismatch::wrong_type(Self::SHAPE, value));
        };
        items
            .iter()
            .map(|item| match item {
                Value::Text(text) => Ok(text.clone()),
                other => Err(Mismatch::Type {
                    expected: Self::SHAPE,
                    found: format!("a list with {}", other.kind()),
                }),
            })
            .collect()
    }

    fn write(&self) -> Value {
        Value::List(self.iter().cloned().map(Value::Text).collect())
    }
}

impl Setting for BTreeMap<String, Value> {
    const SHAPE: Shape = Shape::Table;

    fn read(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Table(entries) => Ok(entries.clone()),
            other => Err(Mismatch::wrong_type(Self::SHAPE, other)),
        }
    }

    fn write(&self) -> Value {
        Value::Table(self.clone())
    }
}

/// TOML has no null, so the empty string unsets an optional setting that a weaker source has set.
impl<T: Setting> Setting for Option<T> {
    const SHAPE: Shape = Shape::Optional(&T::SHAPE);

    fn read(value: &Value) -> Result<Self, Mismatch> {
        match value {
            Value::Null => Ok(None),
            Value::Text(text) if text.is_empty() => Ok(None),
            other => T::read(other).map(Some),
        }
    }

    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::write)
    }
}
