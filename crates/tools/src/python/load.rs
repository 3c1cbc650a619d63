//! What a worker says it has loaded, as far as that can be believed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::{Cut, ITEMS_MAX, LoadedTool, Ready, Unread};
use crate::{Origin, ToolDefinition, ToolError, ToolName, check::SCHEMA_BYTES_MAX};

/// All schemas of one worker, as text. In memory they take many times as much.
const SCHEMAS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The longest text of a failure.
const FAILURE_BYTES_MAX: usize = 16 * 1024;

/// What came of loading entrypoints.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// Entrypoints that made a toolkit.
    pub toolkits: Vec<String>,
    /// The tools, in the order of the entrypoints.
    pub tools: Vec<ToolDefinition>,
    /// Entrypoints that could not be loaded, in whole or in part.
    pub failures: Vec<LoadFailure>,
    /// The version of the interpreter.
    pub python: String,
}

/// Why an entrypoint could not be loaded, or a tool of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadFailure {
    /// Which.
    pub entrypoint: String,
    /// The class of the exception.
    pub kind: String,
    /// Its text.
    pub message: String,
    /// Where it came from, as Python prints it.
    #[serde(default)]
    pub traceback: String,
}

impl From<Ready> for Loaded {
    fn from(ready: Ready) -> Self {
        let Ready {
            python,
            toolkits,
            tools,
            failures,
        } = ready;
        let mut loaded = Self {
            toolkits: toolkits.items,
            tools: Vec::with_capacity(tools.items.len()),
            failures: failures.items.into_iter().map(LoadFailure::cut).collect(),
            python,
        };
        let Cut { items, left_out } = tools;
        let mut room = SCHEMAS_BYTES_MAX;
        for tool in items {
            let entrypoint = tool.entrypoint.clone();
            match definition(tool, &mut room) {
                Ok(definition) => loaded.tools.push(definition),
                Err(error) => loaded.failures.push(LoadFailure::of(entrypoint, &error)),
            }
        }
        if left_out > 0 {
            let error = ToolError::Definition {
                tool: "*".to_owned(),
                problem: format!(
                    "one interpreter may bring {ITEMS_MAX} tools, and {left_out} more are left out"
                ),
            };
            loaded
                .failures
                .push(LoadFailure::of("*".to_owned(), &error));
        }
        loaded.failures.truncate(ITEMS_MAX);
        loaded
    }
}

impl LoadFailure {
    fn of(entrypoint: String, error: &ToolError) -> Self {
        Self {
            entrypoint,
            kind: error.kind().to_owned(),
            message: error.to_string(),
            traceback: String::new(),
        }
        .cut()
    }

    /// The same with texts that somebody can be expected to read.
    fn cut(mut self) -> Self {
        let texts = [
            &mut self.entrypoint,
            &mut self.kind,
            &mut self.message,
            &mut self.traceback,
        ];
        for text in texts {
            text.truncate(text.floor_char_boundary(FAILURE_BYTES_MAX));
        }
        self
    }
}

/// Reads a definition whose schemas fit into what is left for them.
fn definition(tool: LoadedTool, room: &mut usize) -> Result<ToolDefinition, ToolError> {
    let name = ToolName::try_from(tool.name)?;
    let refuse = |problem| ToolError::Definition {
        tool: name.to_string(),
        problem,
    };
    let mut read = |schema: &Unread| read(schema, room).map_err(refuse);
    let parameters = read(&tool.parameters)?;
    let accepts = tool.accepts.as_ref().map(read).transpose()?;
    let definition = ToolDefinition {
        name,
        description: tool.description,
        parameters,
        accepts,
        origin: Origin::Python {
            entrypoint: tool.entrypoint,
        },
    };
    crate::registry::checked(&definition)?;
    Ok(definition)
}

fn read(schema: &Unread, room: &mut usize) -> Result<Value, String> {
    let bytes = schema.text().len();
    if bytes > SCHEMA_BYTES_MAX {
        return Err(format!(
            "its schema has {bytes} bytes, and the limit is {SCHEMA_BYTES_MAX}"
        ));
    }
    *room = room.checked_sub(bytes).ok_or_else(|| {
        format!(
            "the schemas of all tools have more than {SCHEMAS_BYTES_MAX} bytes, which is the limit"
        )
    })?;
    serde_json::from_str(schema.text()).map_err(|error| format!("its schema is no JSON: {error}"))
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
