//! Tools of a session: what is added, what is told of them, and how they are called.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::Seconds;

/// Tools to add to a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddTools {
    /// Functions and toolkits of Python: `module.attribute`, followed by a JSON object of
    /// arguments when a toolkit is made with some. One interpreter hosts all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entrypoints: Vec<String>,
    /// The interpreter: a name to look for, or the path of one; `python3` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Variables of the interpreter. They are kept with the session, so that secrets do not belong
    /// here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Where the interpreter starts, from where modules can be imported; the workspace when left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Calls of functions that are not `async` which run at once; 16 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 256)]
    pub threads: Option<u16>,
    /// Commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandTool>,
}

/// A command that is to be a tool. Its result is what it prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandTool {
    /// What it is called by: 1 to 128 letters, digits, `_`, `.` and `-`.
    #[schema(pattern = "^[A-Za-z0-9_.-]{1,128}$")]
    pub name: String,
    /// What it does, for the language model.
    #[serde(default)]
    pub description: String,
    /// A program and its words; a word that is `{name}` is replaced by that argument, and left out
    /// when there is none. Either this or `shell`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// Text for a shell, which finds the arguments in variables of their names: `"$name"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// What it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<CommandParameter>,
    /// Where it runs; the workspace when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

/// What a command takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandParameter {
    /// Its name, which is that of a variable.
    #[schema(pattern = "^[A-Za-z_][A-Za-z0-9_]*$")]
    pub name: String,
    /// What it means, for the language model.
    #[serde(default)]
    pub description: String,
    /// A JSON schema of its value; a text when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Map<String, Value>>,
    /// It may be left out.
    #[serde(default)]
    pub optional: bool,
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Tool {
    /// What it is called by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments, as a language model sees it: in the strict form, every
    /// parameter is required, and one with a default may be null.
    #[schema(value_type = Object)]
    pub parameters: Value,
    /// The JSON schema that calls are held to; left out when that is `parameters`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub accepts: Option<Value>,
    /// Where it comes from.
    pub origin: ToolOrigin,
}

/// Where a tool comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolOrigin {
    /// `rust`, `python`, `command` or `mcp`.
    pub kind: String,
    /// The entrypoint, the command or the name of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What came of adding tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolsAdded {
    /// The tools that were added.
    pub tools: Vec<Tool>,
    /// Entrypoints that made a toolkit.
    pub toolkits: Vec<String>,
    /// Entrypoints that could not be loaded, in whole or in part.
    pub failures: Vec<ToolLoadFailure>,
}

/// Why an entrypoint could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolLoadFailure {
    /// Which.
    pub entrypoint: String,
    /// The class of the exception.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its text.
    pub message: String,
    /// Where it came from, as Python prints it.
    pub traceback: String,
}

/// The tools of a session, in the order in which they were added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolPage {
    /// All of them: as `Tool`, or in the form that was asked for.
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Value>,
    /// Entrypoints that made a toolkit.
    pub toolkits: Vec<String>,
}

/// Parameters of listing tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsQuery {
    /// In which form.
    #[serde(default)]
    pub format: ToolFormat,
}

/// The forms in which tools are described.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolFormat {
    /// With everything that is known.
    #[default]
    Full,
    /// As OpenAI's API takes it.
    Openai,
    /// As MCP lists it.
    Mcp,
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallTool {
    /// Arguments by name.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
    /// Arguments by position; they come before those with names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub positional: Vec<Value>,
    /// Hand the arguments over as they are, without looking at the tool's schema.
    #[serde(default)]
    pub unchecked: bool,
    /// How long it may take; as the session's actions when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
}
