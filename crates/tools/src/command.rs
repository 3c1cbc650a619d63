//! [`CommandTool`]: a command in a sandbox as a tool.
//!
//! Arguments never become text of a shell: they are words of their own, or variables.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use zareba_wire::{
    BoxFuture,
    program::{ProgramConnection, ProgramEvent, ProgramExit, ProgramLine, ProgramRequest},
};

use crate::{
    Call, Exception, OUTPUT_BYTES_MAX, Origin, Place, Returned, Tool, ToolDefinition, ToolError,
    ToolName, function::by_name,
};

/// The longest single argument: the kernel takes no longer word or variable.
const ARGUMENT_BYTES_MAX: usize = 120 * 1024;

/// A command that is to be a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandToolSpec {
    /// What it is called by.
    pub name: ToolName,
    /// What it does, for the language model.
    #[serde(default)]
    pub description: String,
    /// A program and its words; a word that is `{name}` is replaced by that argument, and left
    /// out when there is none. Either this or `shell`.
    #[serde(default)]
    pub argv: Vec<String>,
    /// Text for a shell, which finds the arguments in variables of their names: `"$name"`.
    #[serde(default)]
    pub shell: Option<String>,
    /// What it takes.
    #[serde(default)]
    pub parameters: Vec<CommandParameter>,
    /// Where it runs; the workspace when absent.
    #[serde(default)]
    pub directory: Option<String>,
}

/// What a command takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandParameter {
    /// Its name, which is that of a variable: letters, digits and `_`.
    pub name: String,
    /// What it means, for the language model.
    #[serde(default)]
    pub description: String,
    /// A JSON schema of its value; a text when absent. What is no text is passed as JSON.
    #[serde(default)]
    pub schema: Option<Value>,
    /// It may be left out.
    #[serde(default)]
    pub optional: bool,
}

/// A command in a sandbox as a tool. Its result is what it prints; an exit code other than 0 is a
/// failure.
pub struct CommandTool {
    definition: ToolDefinition,
    spec: CommandToolSpec,
    place: Arc<dyn Place>,
}

impl CommandTool {
    /// A tool of a command.
    ///
    /// # Errors
    /// When there is no command, or a parameter cannot name a variable.
    pub fn new(place: Arc<dyn Place>, spec: CommandToolSpec) -> Result<Self, ToolError> {
        if let Some(problem) = problem(&spec) {
            let tool = spec.name.to_string();
            return Err(ToolError::Definition { tool, problem });
        }
        let command = match &spec.shell {
            Some(text) => text.clone(),
            None => spec.argv.join(" "),
        };
        let definition = ToolDefinition {
            name: spec.name.clone(),
            description: spec.description.clone(),
            parameters: schema(&spec.parameters),
            accepts: None,
            origin: Origin::Command { command },
        };
        Ok(Self {
            definition,
            spec,
            place,
        })
    }

    fn request(&self, arguments: &Map<String, Value>) -> Result<ProgramRequest, ToolError> {
        let tool = || self.definition.name.to_string();
        let mut values = Vec::with_capacity(arguments.len());
        for (name, value) in arguments.iter().filter(|(_, value)| !value.is_null()) {
            // Also in calls that are not held to the schema: nobody sets other variables.
            if !self.spec.parameters.iter().any(|it| it.name == *name) {
                let problems = vec![format!("it has no parameter `{name}`")];
                return Err(ToolError::Invalid {
                    tool: tool(),
                    problems,
                });
            }
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            if text.contains('\0') {
                let problems = vec![format!("`{name}` has a NUL character")];
                return Err(ToolError::Invalid {
                    tool: tool(),
                    problems,
                });
            }
            if text.len() > ARGUMENT_BYTES_MAX {
                return Err(ToolError::TooLarge {
                    tool: tool(),
                    what: "an argument",
                    bytes: text.len(),
                    limit: ARGUMENT_BYTES_MAX,
                });
            }
            values.push((name.clone(), text));
        }
        let (line, environment) = match &self.spec.shell {
            Some(text) => (ProgramLine::Shell(text.clone()), values),
            None => (ProgramLine::Argv(words(&self.spec, &values)), Vec::new()),
        };
        Ok(ProgramRequest {
            directory: self.spec.directory.clone(),
            environment,
            ..ProgramRequest::new(line)
        })
    }
}

impl Tool for CommandTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Returned, ToolError>> {
        Box::pin(async move {
            let tool = self.definition.name.as_str();
            let arguments = by_name(&self.definition.parameters, call.arguments);
            let request = self.request(&arguments)?;
            let started = self.place.start(request).await;
            let connection = started.map_err(|error| {
                ToolError::unavailable(&format!("cannot start the command of `{tool}`"), &error)
            })?;
            watch(tool, connection).await
        })
    }
}

impl std::fmt::Debug for CommandTool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("CommandTool")
            .field(&self.spec)
            .finish()
    }
}

fn problem(spec: &CommandToolSpec) -> Option<String> {
    let has_shell = spec.shell.as_ref().is_some_and(|text| !text.is_empty());
    if spec.argv.is_empty() != has_shell {
        return Some("give either `argv` or `shell`".to_owned());
    }
    let is_variable = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let odd = spec.parameters.iter().find(|it| !is_variable(&it.name));
    odd.map(|it| {
        let name = it.name.escape_debug();
        format!("`{name}` cannot name a parameter: use letters, digits and `_`")
    })
}

fn schema(parameters: &[CommandParameter]) -> Value {
    let mut properties = Map::new();
    for parameter in parameters {
        let text = json!({ "type": "string" });
        let mut schema = parameter.schema.clone().unwrap_or(text);
        if let (Some(schema), false) = (schema.as_object_mut(), parameter.description.is_empty()) {
            schema.insert(
                "description".to_owned(),
                parameter.description.clone().into(),
            );
        }
        properties.insert(parameter.name.clone(), schema);
    }
    let required = parameters.iter().filter(|it| !it.optional);
    let required: Vec<&str> = required.map(|it| it.name.as_str()).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn words(spec: &CommandToolSpec, values: &[(String, String)]) -> Vec<String> {
    let parameter = |word: &str| {
        let name = word.strip_prefix('{')?.strip_suffix('}')?;
        spec.parameters.iter().find(|it| it.name == name)
    };
    let replaced = spec.argv.iter().filter_map(|word| match parameter(word) {
        None => Some(word.clone()),
        Some(parameter) => {
            let value = values.iter().find(|(name, _)| *name == parameter.name);
            value.map(|(_, value)| value.clone())
        }
    });
    replaced.collect()
}

/// Reads what a command prints until it ends.
async fn watch(tool: &str, connection: ProgramConnection) -> Result<Returned, ToolError> {
    let (_input, mut events) = connection.split();
    let (mut stdout, mut stderr) = (Printed::default(), Printed::default());
    let exit = loop {
        match events.next().await {
            Some(ProgramEvent::Stdout(bytes)) => stdout.push(&bytes),
            Some(ProgramEvent::Stderr(bytes)) => stderr.push(&bytes),
            Some(ProgramEvent::Exit(exit)) => break exit,
            Some(ProgramEvent::Error(message)) => return Err(gone(tool, message)),
            None => return Err(gone(tool, "the way to its command broke".to_owned())),
        }
    };
    let is_truncated = stdout.is_truncated || stderr.is_truncated;
    let (stdout, stderr) = (stdout.text(), stderr.text());
    let message = match exit {
        ProgramExit::Code(0) => {
            return Ok(Returned {
                json: Value::String(stdout).to_string(),
                stdout: String::new(),
                stderr,
                is_truncated,
            });
        }
        ProgramExit::Code(code) => format!("it ended with exit code {code}"),
        ProgramExit::Signal(signal) => format!("it was ended by the signal {signal}"),
    };
    Err(ToolError::Raised(Box::new(Exception {
        tool: tool.to_owned(),
        kind: "CommandFailed".to_owned(),
        message,
        traceback: String::new(),
        stdout,
        stderr,
        is_truncated,
    })))
}

fn gone(tool: &str, message: String) -> ToolError {
    ToolError::Gone {
        tool: tool.to_owned(),
        message,
    }
}

/// The beginning of what was printed.
#[derive(Default)]
struct Printed {
    bytes: Vec<u8>,
    is_truncated: bool,
}

impl Printed {
    fn push(&mut self, bytes: &Bytes) {
        let room = OUTPUT_BYTES_MAX - self.bytes.len();
        let kept = bytes.len().min(room);
        self.bytes
            .extend_from_slice(bytes.get(..kept).unwrap_or_default());
        self.is_truncated |= kept < bytes.len();
    }

    fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}
