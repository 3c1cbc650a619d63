//! What a tool is called with and what it returns.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::json;

/// What is kept of what a tool prints, per stream and call.
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// How deep a result may nest: what stores and shows it goes down as deep and no deeper.
pub const RESULT_DEPTH_MAX: usize = 64;

/// How many values a result may be made of: in memory each takes many times what it has as text.
pub const RESULT_VALUES_MAX: usize = 1_000_000;

/// What a tool is called with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    /// Arguments by position, for functions that have such; they come first.
    pub positional: Vec<Value>,
    /// Arguments by name.
    pub named: Map<String, Value>,
}

impl Arguments {
    /// Arguments by name, as language models give them.
    pub fn named(named: Map<String, Value>) -> Self {
        Self {
            positional: Vec::new(),
            named,
        }
    }
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What it is called with.
    pub arguments: Arguments,
    /// How long it may take; `None` is as long as the tool's own limit says.
    pub timeout: Option<Duration>,
    /// Whether the arguments are held to the tool's schema before it is called. CAMEL's wire
    /// passes them straight.
    pub is_validated: bool,
}

impl Call {
    /// A call that is held to the tool's schema and to its own limit of time.
    pub fn new(arguments: Arguments) -> Self {
        Self {
            arguments,
            timeout: None,
            is_validated: true,
        }
    }
}

/// What a tool returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// The result as the tool's side wrote it: JSON, but Python also writes `NaN` and `Infinity`.
    pub json: String,
    /// What it printed.
    pub stdout: String,
    /// What it printed as errors.
    pub stderr: String,
    /// It printed more than [`OUTPUT_BYTES_MAX`].
    pub is_truncated: bool,
}

impl Returned {
    /// A result without anything printed.
    pub fn of(value: &Value) -> Self {
        Self {
            json: value.to_string(),
            ..Self::default()
        }
    }

    /// The result as a value. What strict JSON cannot say is null; what is no JSON at all is the
    /// text itself.
    pub fn value(&self) -> Value {
        json::lenient(&self.json)
    }

    /// The result, and its text where that is no strict JSON.
    pub(crate) fn value_and_raw(&self) -> (Value, Option<String>) {
        match serde_json::from_str(&self.json) {
            Ok(value) => (value, None),
            Err(_) => (self.value(), Some(self.json.clone())),
        }
    }
}
