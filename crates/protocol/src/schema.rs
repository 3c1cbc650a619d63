//! The wire format as JSON Schema, for clients in other languages.
//!
//! The committed documents are made by these functions and compared with them in a test.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{ActionEvent, EventSource, ShellName, action, observation};

/// The document that describes every action event that a server understands.
///
/// Old spellings that are still understood are not part of it.
pub fn action_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator();
    let variants = action::contract::ALL
        .iter()
        .map(|contract| {
            let args = (contract.schema)(&mut generator);
            let required: &[&str] = if contract.required.is_empty() {
                &["action"]
            } else {
                &["action", "args"]
            };
            variant("action", contract.kind, json!({ "args": args }), required)
        })
        .collect();
    let mut keys = envelope(&mut generator);
    let timeout = described("Hard timeout in seconds.", &json!(["number", "null"]));
    keys.insert("timeout".to_owned(), timeout);
    keys.insert(
        "shell".to_owned(),
        of_type::<Option<ShellName>>(&mut generator).into(),
    );
    keys.insert("once".to_owned(), once());
    document(
        generator,
        "ActionEvent",
        "What a client asks for.",
        keys,
        variants,
    )
}

/// The document that describes every observation event that a server answers with.
pub fn observation_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let variants = observation::contract::ALL
        .iter()
        .map(|contract| {
            let keys = json!({ "extras": (contract.schema)(&mut generator) });
            variant(
                "observation",
                contract.kind,
                keys,
                &["observation", "content", "extras"],
            )
        })
        .collect();
    let mut keys = envelope(&mut generator);
    let content = described("The text that the agent reads.", &json!("string"));
    keys.insert("content".to_owned(), content);
    let success = described(
        "Whether a command exited with 0 or a tool returned; always true for a cell.",
        &json!("boolean"),
    );
    keys.insert("success".to_owned(), success);
    document(
        generator,
        "ObservationEvent",
        "What comes of an action.",
        keys,
        variants,
    )
}

fn variant(tag: &str, kind: &str, keys: Value, required: &[&str]) -> Value {
    let mut properties = Map::new();
    properties.insert(tag.to_owned(), json!({ "const": kind }));
    if let Value::Object(keys) = keys {
        properties.extend(keys);
    }
    json!({ "title": kind, "properties": properties, "required": required })
}

/// The keys that actions and observations have in common.
fn envelope(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let source = of_type::<Option<EventSource>>(generator);
    let message = "A sentence for people; ignored when read.";
    let opaque = |description: &str| json!({ "description": description });
    [
        (
            "id",
            described("Number in a session's log.", &json!(["integer", "null"])),
        ),
        (
            "timestamp",
            described("ISO 8601 without a zone.", &json!(["string", "null"])),
        ),
        ("source", source.into()),
        ("message", described(message, &json!("string"))),
        (
            "cause",
            described(
                "Number of the event that led to it.",
                &json!(["integer", "null"]),
            ),
        ),
        (
            "tool_call_metadata",
            opaque("The language model's tool call."),
        ),
        ("llm_metrics", opaque("What the language model cost.")),
    ]
    .into_iter()
    .map(|(key, schema)| (key.to_owned(), schema))
    .collect()
}

fn once() -> Value {
    json!({
        "description": "A name under which the action runs at most once, however often it is asked for.",
        "type": ["string", "null"],
        "pattern": format!("^[!-~]{{1,{}}}$", ActionEvent::ONCE_CHARS_MAX),
    })
}

fn described(description: &str, types: &Value) -> Value {
    json!({ "description": description, "type": types })
}

fn of_type<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn document(
    mut generator: SchemaGenerator,
    title: &str,
    description: &str,
    properties: Map<String, Value>,
    variants: Vec<Value>,
) -> Value {
    let definitions = generator.take_definitions(true);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": description,
        "type": "object",
        "properties": properties,
        "oneOf": variants,
        "$defs": definitions,
    })
}
