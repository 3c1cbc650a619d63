//! From typed events to JSON, with keys in the order in which the original writes them.
//!
//! A key whose value is absent is left out, never written as null.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap};
use serde_json::Value;

use crate::{ActionEvent, EventSource, ObservationEvent};

impl Serialize for ActionEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        put_origin(&mut map, self.id, self.timestamp.as_deref(), self.source)?;
        map.serialize_entry("message", &self.action.message())?;
        put(&mut map, "cause", self.cause)?;
        map.serialize_entry("action", self.action.kind())?;
        put(
            &mut map,
            "tool_call_metadata",
            self.tool_call_metadata.as_ref(),
        )?;
        put(&mut map, "llm_metrics", self.llm_metrics.as_ref())?;
        map.serialize_entry("args", &self.action)?;
        // JSON has no infinity, and a client that means it means no timeout.
        put(
            &mut map,
            "timeout",
            self.timeout.filter(|seconds| seconds.is_finite()),
        )?;
        put(&mut map, "shell", self.shell.as_ref())?;
        put(&mut map, "once", self.once.as_ref())?;
        map.end()
    }
}

impl Serialize for ObservationEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        put_origin(&mut map, self.id, self.timestamp.as_deref(), self.source)?;
        map.serialize_entry("message", &self.observation.message())?;
        put(&mut map, "cause", self.cause)?;
        map.serialize_entry("observation", self.observation.kind_name())?;
        put(
            &mut map,
            "tool_call_metadata",
            self.tool_call_metadata.as_ref(),
        )?;
        put(&mut map, "llm_metrics", self.llm_metrics.as_ref())?;
        map.serialize_entry("content", &self.observation.content)?;
        map.serialize_entry("extras", &self.observation.kind)?;
        put(&mut map, "success", self.observation.success())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for ActionEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ObservationEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl ActionEvent {
    /// The event as a JSON value.
    pub fn to_value(&self) -> Value {
        value_of(self)
    }

    /// The event as JSON text on one line.
    pub fn to_json(&self) -> String {
        text_of(self)
    }
}

impl ObservationEvent {
    /// The event as a JSON value.
    pub fn to_value(&self) -> Value {
        value_of(self)
    }

    /// The event as JSON text on one line.
    pub fn to_json(&self) -> String {
        text_of(self)
    }
}

fn put_origin<M: SerializeMap>(
    map: &mut M,
    id: Option<i64>,
    timestamp: Option<&str>,
    source: Option<EventSource>,
) -> Result<(), M::Error> {
    put(map, "id", id)?;
    put(map, "timestamp", timestamp)?;
    put(map, "source", source)
}

fn put<M: SerializeMap>(
    map: &mut M,
    key: &'static str,
    value: Option<impl Serialize>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(key, &value),
        None => Ok(()),
    }
}

#[expect(
    clippy::expect_used,
    reason = "keys are strings and no part of an event refuses to be written"
)]
fn value_of(event: &impl Serialize) -> Value {
    serde_json::to_value(event).expect("an event is always JSON")
}

#[expect(
    clippy::expect_used,
    reason = "keys are strings and no part of an event refuses to be written"
)]
fn text_of(event: &impl Serialize) -> String {
    serde_json::to_string(event).expect("an event is always JSON")
}
