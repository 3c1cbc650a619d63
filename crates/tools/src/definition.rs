//! [`ToolDefinition`]: what is said of a tool, to a language model and to an MCP client.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ToolName;

/// What is said of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// What it is called by.
    pub name: ToolName,
    /// What it does, for the language model.
    pub description: String,
    /// The JSON schema of its arguments, as a language model sees it. In the strict form that
    /// CAMEL makes, every parameter is required, and one with a default may be null.
    pub parameters: Value,
    /// The JSON schema that calls are held to, where that asks for less than `parameters`: only
    /// parameters without a default are required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepts: Option<Value>,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a tool comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Origin {
    /// A function of this program.
    Rust,
    /// A function of Python in the sandbox.
    Python {
        /// What it was loaded by.
        entrypoint: String,
    },
    /// A command in the sandbox.
    Command {
        /// Its words, as a person would type them.
        command: String,
    },
    /// A tool of an MCP server.
    Mcp {
        /// The server's name in the configuration.
        server: String,
    },
}

impl ToolDefinition {
    /// The definition as OpenAI's API takes it.
    pub fn openai(&self) -> Value {
        json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "strict": is_strict(&self.parameters),
                "parameters": self.parameters,
            },
        })
    }

    /// The definition as MCP's `tools/list` has it. Its schema is the one that calls are held to.
    pub fn mcp(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.call_schema(),
        })
    }

    /// The schema that calls are held to.
    pub fn call_schema(&self) -> &Value {
        self.accepts.as_ref().unwrap_or(&self.parameters)
    }
}

/// OpenAI's strict mode takes only schemas whose top level is closed and requires everything.
fn is_strict(parameters: &Value) -> bool {
    let Some(properties) = parameters.get("properties").and_then(Value::as_object) else {
        return false;
    };
    let required: Vec<&str> = parameters
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    parameters.get("additionalProperties") == Some(&Value::Bool(false))
        && properties
            .keys()
            .all(|name| required.contains(&name.as_str()))
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rust => formatter.write_str("this program"),
            Self::Python { entrypoint } => {
                write!(formatter, "the Python entrypoint `{entrypoint}`")
            }
            Self::Command { command } => write!(formatter, "the command `{command}`"),
            Self::Mcp { server } => write!(formatter, "the MCP server `{server}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(parameters: Value, accepts: Option<Value>) -> ToolDefinition {
        ToolDefinition {
            name: ToolName::try_from("add").unwrap(),
            description: "Adds.".to_owned(),
            parameters,
            accepts,
            origin: Origin::Rust,
        }
    }

    #[test]
    fn one_definition_gives_the_forms_of_openai_and_of_mcp() {
        let strict = json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}},
            "required": ["a", "b"],
            "additionalProperties": false,
        });
        let mut loose = strict.clone();
        loose["required"] = json!(["a"]);
        let tool = definition(strict.clone(), Some(loose.clone()));
        assert_eq!(
            tool.openai(),
            json!({"type": "function", "function": {
                "name": "add", "description": "Adds.", "strict": true, "parameters": strict,
            }})
        );
        assert_eq!(
            tool.mcp(),
            json!({"name": "add", "description": "Adds.", "inputSchema": loose})
        );
        assert_eq!(
            definition(loose, None).openai()["function"]["strict"],
            false
        );
    }
}
