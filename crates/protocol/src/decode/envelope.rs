//! The keys that actions and observations have in common.

use serde_json::{Map, Value};

use super::{DecodeError, error::type_name, fields::FieldError};
use crate::{EventSource, python_repr};

/// An object on its way into an event; each key is taken out as it is read.
pub(super) struct Document {
    pub(super) keys: Map<String, Value>,
}

impl Document {
    pub(super) fn parse(json: &[u8]) -> Result<Value, DecodeError> {
        serde_json::from_slice(json).map_err(|error| DecodeError::syntax(&error))
    }

    pub(super) fn new(value: Value) -> Result<Self, DecodeError> {
        match value {
            Value::Object(keys) => Ok(Self { keys }),
            other => Err(DecodeError::not_an_object(&other)),
        }
    }

    /// The object below `key`; absent and null are the empty one.
    pub(super) fn take_object(&mut self, key: &str) -> Result<Map<String, Value>, FieldError> {
        match self.take(key) {
            None => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object),
            Some(other) => Err(wrong_type(key, "an object", &other)),
        }
    }

    /// An event's number. The original marks an event without one by a negative number.
    pub(super) fn take_number(&mut self, key: &str) -> Result<Option<i64>, FieldError> {
        match self.take(key) {
            None => Ok(None),
            Some(value) => match value.as_i64() {
                Some(number) => Ok(Some(number).filter(|number| *number >= 0)),
                None => Err(wrong_type(key, "an integer", &value)),
            },
        }
    }

    pub(super) fn take_text(&mut self, key: &str) -> Result<Option<String>, FieldError> {
        self.take(key).map(|value| text(key, value)).transpose()
    }

    /// Seconds, whole or not.
    pub(super) fn take_seconds(&mut self, key: &str) -> Result<Option<f64>, FieldError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(other) => Err(wrong_type(key, "a number of seconds", &other)),
        }
    }

    pub(super) fn take_source(&mut self) -> Result<Option<EventSource>, DecodeError> {
        let Some(value) = self.take("source") else {
            return Ok(None);
        };
        match value.as_str().and_then(EventSource::from_wire) {
            Some(source) => Ok(Some(source)),
            None => Err(DecodeError::UnknownSource {
                value: python_repr::of(&value),
            }),
        }
    }

    /// The value below `key`, which is left null; null counts as absent.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.keys
            .get_mut(key)
            .map(Value::take)
            .filter(|value| !value.is_null())
    }
}

pub(super) fn text(key: &str, value: Value) -> Result<String, FieldError> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(wrong_type(key, "a string", &other)),
    }
}

fn wrong_type(key: &str, expected: &str, found: &Value) -> FieldError {
    FieldError::new(
        key,
        format!("expected {expected}, got {}", type_name(found)),
    )
}
