//! The OpenAPI document: one path per tool, with the schema of its arguments.

use serde_json::{Map, Value, json};
use zareba_tools::ToolDefinition;

/// Where a schema has definitions of its own.
const DEFINITIONS: &str = "#/$defs/";

/// Describes the tools and the server's own routes.
pub(super) fn document(tools: &[ToolDefinition]) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    paths.insert("/health".to_owned(), health());
    for tool in tools {
        let name = tool.name.as_str();
        paths.insert(format!("/{name}"), path_of(tool));
        let mut schema = tool.call_schema().clone();
        move_definitions(&mut schema, &format!("#/components/schemas/{name}/$defs/"));
        schemas.insert(name.to_owned(), schema);
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Tools", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn health() -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let schema = json!({
        "type": "object",
        "required": ["status", "toolkits", "endpoints"],
        "properties": {
            "status": { "type": "string" },
            "toolkits": texts,
            "endpoints": texts,
            "failures": { "type": "array", "items": { "type": "object" } },
        },
    });
    json!({ "get": {
        "summary": "What is served",
        "operationId": "health",
        "responses": { "200": answer("The tools, and the entrypoints that gave none", &schema) },
    } })
}

fn path_of(tool: &ToolDefinition) -> Value {
    let name = tool.name.as_str();
    let by_name = json!({ "properties": {
        "args": { "maxItems": 0 },
        "kwargs": { "$ref": format!("#/components/schemas/{name}") },
    } });
    let by_position = json!({ "properties": { "args": { "minItems": 1 } } });
    let asked = json!({
        "type": "object",
        "required": ["args", "kwargs"],
        "properties": {
            "args": { "type": "array", "description": "Arguments by position" },
            "kwargs": { "type": "object", "description": "Arguments by name" },
            "redirect_stdout": {
                "type": "boolean",
                "default": false,
                "description": "Whether the answer shall have what the tool prints",
            },
        },
        "anyOf": [by_name, by_position],
    });
    let returned = json!({
        "type": "object",
        "required": ["output"],
        "properties": {
            "output": { "type": "string", "description": "The result, as JSON" },
            "stdout": { "type": "string", "description": "What the tool printed" },
        },
    });
    let failed = json!({
        "type": "object",
        "properties": {
            "detail": { "type": "string" },
            "error_message": { "type": "string" },
        },
    });
    let unfit = json!({ "type": "object", "properties": { "detail": { "type": "array" } } });
    json!({ "post": {
        "summary": name,
        "description": tool.description,
        "operationId": name,
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": asked } },
        },
        "responses": {
            "200": answer("What the tool returned", &returned),
            "422": answer("The body is not what a call needs", &unfit),
            "500": answer("The tool failed", &failed),
        },
    } })
}

fn answer(description: &str, schema: &Value) -> Value {
    json!({
        "description": description,
        "content": { "application/json": { "schema": schema } },
    })
}

/// References of a schema begin at its root, which is elsewhere in a larger document.
fn move_definitions(schema: &mut Value, place: &str) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(target) if key == "$ref" => {
                        if let Some(name) = target.strip_prefix(DEFINITIONS) {
                            *target = format!("{place}{name}");
                        }
                    }
                    other => move_definitions(other, place),
                }
            }
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| move_definitions(value, place)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use zareba_tools::{Origin, ToolName};

    use super::*;

    #[test]
    fn references_of_a_schema_lead_to_where_it_is_now() {
        let parameters = json!({
            "type": "object",
            "properties": {
                "place": { "$ref": "#/$defs/Place" },
                "others": { "type": "array", "items": { "$ref": "#/$defs/Place" } },
                "$ref": { "type": "string" },
            },
            "$defs": { "Place": { "type": "object" } },
        });
        let tool = ToolDefinition {
            name: ToolName::try_from("go").unwrap(),
            description: "Goes.".to_owned(),
            parameters,
            accepts: None,
            origin: Origin::Rust,
        };
        let document = document(&[tool]);
        let properties = &document["components"]["schemas"]["go"]["properties"];
        let place = json!({ "$ref": "#/components/schemas/go/$defs/Place" });
        assert_eq!(properties["place"], place);
        assert_eq!(properties["others"]["items"], place);
        assert_eq!(properties["$ref"], json!({ "type": "string" }));
        let there = document.pointer("/components/schemas/go/$defs/Place");
        assert_eq!(there, Some(&json!({ "type": "object" })));
    }
}
