//! The OpenAPI 3.1 document, written from the table of operations.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json, map::Entry};
use utoipa::openapi::{RefOr, Schema};
use zareba_protocol::schema::{action_schema, observation_schema};

use crate::{
    Access, Content, ErrorBody, ErrorCode, Operation, Parameter, ParameterPlace, ParameterType,
    Payload, Seconds,
    operation::{of, reference},
    operations,
};

/// Codes that any operation may answer with.
const ALWAYS: &[ErrorCode] = &[
    ErrorCode::InvalidRequest,
    ErrorCode::LimitExceeded,
    ErrorCode::UriTooLong,
    ErrorCode::MisdirectedRequest,
    ErrorCode::TooManyRequests,
    ErrorCode::Internal,
    ErrorCode::Overloaded,
    ErrorCode::ShuttingDown,
    ErrorCode::Timeout,
];
/// Codes that any operation may answer with that needs a key.
const WITH_KEY: &[ErrorCode] = &[ErrorCode::Unauthorized, ErrorCode::Forbidden];
/// Codes that any operation may answer with that takes a body.
const WITH_BODY: &[ErrorCode] = &[
    ErrorCode::RequestTimeout,
    ErrorCode::BodyTooLarge,
    ErrorCode::UnsupportedMediaType,
];

/// The document.
pub fn openapi() -> Value {
    let mut schemas = Schemas::default();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations::all() {
        // The rest of a path is a parameter like any other.
        let path = operation.path.replace("{*", "{");
        let item = paths.entry(path).or_insert_with(|| json!({}));
        let method = operation.method.as_str().to_ascii_lowercase();
        item[method] = describe(operation, &mut schemas);
    }
    schemas.add_type(of::<ErrorBody>());
    schemas.add_foreign("Action", action_schema());
    schemas.add_foreign("Observation", observation_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Zareba",
            "description": "The runtime that agents work inside.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": {
            "schemas": schemas.0,
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "api_key": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
                "ticket": { "type": "apiKey", "in": "query", "name": "ticket" },
            },
        },
        "tags": groups(),
    })
}

fn groups() -> Vec<Value> {
    let mut seen = BTreeSet::new();
    operations::all()
        .filter(|operation| seen.insert(operation.group))
        .map(|operation| json!({ "name": operation.group }))
        .collect()
}

fn describe(operation: &Operation, schemas: &mut Schemas) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.group],
        "summary": operation.summary,
        "security": security(operation.access),
        "parameters": parameters(operation),
        "responses": responses(operation, schemas),
    });
    if !operation.description.is_empty() {
        described["description"] = operation.description.into();
    }
    if let Some(body) = &operation.body {
        described["requestBody"] = json!({
            "required": true,
            "content": content(body, schemas),
        });
    }
    described
}

/// The scope is said in words of ours: API keys have none in OpenAPI's.
fn security(access: Access) -> Value {
    let keys = |scope: &str| json!([{ "bearer": [scope] }, { "api_key": [scope] }]);
    let or_ticket =
        |scope: &str| json!([{ "bearer": [scope] }, { "api_key": [scope] }, { "ticket": [scope] }]);
    match access {
        Access::Public | Access::Capability => json!([]),
        Access::Read => keys("read"),
        Access::ReadOrTicket => or_ticket("read"),
        Access::Session => keys("session"),
        Access::SessionOrTicket => or_ticket("session"),
        Access::Admin => keys("admin"),
    }
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let in_path = operation.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        let name = name.strip_prefix('*').unwrap_or(name);
        let schema = match name {
            "action" => json!({ "type": "integer", "minimum": 0 }),
            "port" => json!({ "type": "integer", "minimum": 1, "maximum": u16::MAX }),
            _ => json!({ "type": "string" }),
        };
        Some(json!({ "name": name, "in": "path", "required": true, "schema": schema }))
    });
    in_path
        .chain(operation.parameters.iter().map(parameter))
        .collect()
}

fn parameter(parameter: &Parameter) -> Value {
    let schema = match parameter.kind {
        ParameterType::Flag => json!({ "type": "boolean" }),
        ParameterType::Count => json!({ "type": "integer", "minimum": 0 }),
        ParameterType::Seconds => {
            json!({ "type": "number", "minimum": 0, "maximum": Seconds::MAX })
        }
        ParameterType::Text => json!({ "type": "string" }),
        ParameterType::Matching(pattern) => json!({ "type": "string", "pattern": pattern }),
        ParameterType::OneOf(words) => json!({ "type": "string", "enum": words }),
    };
    let place = match parameter.place {
        ParameterPlace::Query => "query",
        ParameterPlace::Header => "header",
    };
    json!({
        "name": parameter.name,
        "in": place,
        "required": parameter.is_required,
        "description": parameter.description,
        "schema": schema,
    })
}

fn responses(operation: &Operation, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    for answer in operation.answers {
        let mut response = json!({ "description": answer.description });
        if let Some(body) = &answer.content {
            response["content"] = content(body, schemas);
        }
        match responses.entry(answer.status.to_string()) {
            Entry::Vacant(place) => {
                place.insert(response);
            }
            // One status with bodies of several types.
            Entry::Occupied(mut place) => add_response(place.get_mut(), response),
        }
    }
    for (status, codes) in error_codes(operation) {
        let lines: Vec<String> = codes
            .iter()
            .map(|code| format!("`{}`:{}", code.as_str(), code.meaning()))
            .collect();
        let response = json!({
            "description": lines.join("\n"),
            "content": { "application/json": { "schema": to_value(&reference("ErrorBody")) } },
        });
        responses.entry(status.to_string()).or_insert(response);
    }
    Value::Object(responses)
}

fn add_response(response: &mut Value, more: Value) {
    if let (Some(one), Some(other)) = (
        response["description"].as_str(),
        more["description"].as_str(),
    ) {
        response["description"] = format!("{one} {other}").into();
    }
    if let (Some(contents), Some(more)) = (
        response["content"].as_object_mut(),
        more["content"].as_object(),
    ) {
        contents.extend(more.clone());
    }
}

fn error_codes(operation: &Operation) -> BTreeMap<u16, Vec<ErrorCode>> {
    let with_key: &[ErrorCode] = match operation.access {
        Access::Public | Access::Capability => &[],
        _ => WITH_KEY,
    };
    let with_body: &[ErrorCode] = if operation.body.is_some() {
        WITH_BODY
    } else {
        &[]
    };
    let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in [ALWAYS, with_key, with_body, operation.errors].concat() {
        let codes = by_status.entry(code.status()).or_default();
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    by_status
}

fn content(content: &Content, schemas: &mut Schemas) -> Value {
    let schema = match content.payload {
        Payload::Type(schema) => to_value(&reference(&schemas.add_type(schema()))),
        Payload::Action => to_value(&reference("Action")),
        Payload::Observation => to_value(&reference("Observation")),
        Payload::Text => json!({ "type": "string" }),
        // 3.1 says of raw bytes by the media type alone.
        Payload::Bytes => json!({}),
        Payload::AnyJson => json!({ "type": "object" }),
    };
    let mut by_type = Map::new();
    by_type.insert(content.media_type.to_owned(), json!({ "schema": schema }));
    Value::Object(by_type)
}

/// What is referred to, by name.
#[derive(Default)]
struct Schemas(BTreeMap<String, Value>);

impl Schemas {
    fn add_type(&mut self, (name, schemas): (String, Vec<(String, RefOr<Schema>)>)) -> String {
        for (name, schema) in schemas {
            self.0.insert(name, to_value(&schema));
        }
        name
    }

    /// Takes a JSON Schema document apart: its definitions become schemas of ours, under names
    /// that no other document has.
    fn add_foreign(&mut self, name: &str, mut document: Value) {
        point_into(&mut document, name);
        if let Some(document) = document.as_object_mut() {
            document.remove("$schema");
            document.remove("title");
            if let Some(Value::Object(definitions)) = document.remove("$defs") {
                for (inner, schema) in definitions {
                    self.0.insert(format!("{name}.{inner}"), schema);
                }
            }
        }
        self.0.insert(name.to_owned(), document);
    }
}

/// Makes references to a document's own definitions point to where they are put.
fn point_into(value: &mut Value, name: &str) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(target)) = object.get_mut("$ref")
                && let Some(inner) = target.strip_prefix("#/$defs/")
            {
                *target = format!("#/components/schemas/{name}.{inner}");
            }
            object
                .values_mut()
                .for_each(|value| point_into(value, name));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| point_into(value, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[expect(
    clippy::expect_used,
    reason = "keys are strings and no part of a schema refuses to be written"
)]
fn to_value(schema: &RefOr<Schema>) -> Value {
    serde_json::to_value(schema).expect("a schema is always JSON")
}
