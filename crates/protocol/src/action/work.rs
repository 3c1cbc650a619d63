//! The actions on shells, notebooks and files.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use crate::{ConfirmationState, EditSource, ReadSource, SecurityRisk};

/// `run`: a command in a persistent shell, or input for what runs there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    /// The text to run; empty asks for more output of the running command; `C-c` presses a key.
    pub command: String,
    /// The text is input for the running command.
    #[serde(default)]
    pub is_input: bool,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
    /// Wait for the hard timeout only, however silent the command is.
    #[serde(default)]
    pub blocking: bool,
    /// Run in a new shell of its own, which ends with the command.
    #[serde(default)]
    pub is_static: bool,
    /// Where a static command runs.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Do not show the command to the agent; its output is not truncated.
    #[serde(default)]
    pub hidden: bool,
    /// Where the action stands in a confirmation dialogue.
    #[serde(default)]
    pub confirmation_state: ConfirmationState,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
}

impl RunCommand {
    /// Runs `command` with everything else at its default.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            ..Self::default()
        }
    }

    /// Sends `text` to the command that runs in the shell; `C-c` and its like press a key.
    pub fn input(text: impl Into<String>) -> Self {
        Self {
            command: text.into(),
            is_input: true,
            ..Self::default()
        }
    }
}

/// `run_ipython`: a notebook cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCell {
    /// Python source.
    pub code: String,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
    /// Append the lines that name directory and interpreter.
    #[serde(default = "yes")]
    pub include_extra: bool,
    /// Where the action stands in a confirmation dialogue.
    #[serde(default)]
    pub confirmation_state: ConfirmationState,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
    /// Accepted and unused, as in the original.
    #[serde(default)]
    pub kernel_init_code: String,
}

impl RunCell {
    /// Runs `code` with everything else at its default.
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            thought: String::new(),
            include_extra: true,
            confirmation_state: ConfirmationState::default(),
            security_risk: SecurityRisk::default(),
            kernel_init_code: String::new(),
        }
    }
}

/// `read`: a file's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// Absolute, or relative to the shell's directory.
    pub path: String,
    /// First line, counted from 0.
    #[serde(default)]
    pub start: i64,
    /// Line after the last; −1 means to the end.
    #[serde(default = "to_the_end")]
    pub end: i64,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
    /// Plain text or the editor's numbered view.
    #[serde(default)]
    pub impl_source: ReadSource,
    /// First and last line of the editor's view, counted from 1.
    #[serde(default)]
    pub view_range: Option<Vec<i64>>,
}

impl ReadFile {
    /// Reads the whole file at `path` as plain text.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            start: 0,
            end: to_the_end(),
            thought: String::new(),
            security_risk: SecurityRisk::default(),
            impl_source: ReadSource::default(),
            view_range: None,
        }
    }

    /// Asks for the editor's numbered view of the file or directory at `path`.
    pub fn view(path: impl Into<String>) -> Self {
        Self {
            impl_source: ReadSource::Editor,
            ..Self::new(path)
        }
    }
}

/// `write`: a file's new content, or a splice of lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// Absolute, or relative to the shell's directory.
    pub path: String,
    /// The text; every line is written with a newline.
    pub content: String,
    /// Lines before this one are kept.
    #[serde(default)]
    pub start: i64,
    /// Lines from this one on are kept; −1 keeps none.
    #[serde(default = "to_the_end")]
    pub end: i64,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
}

impl WriteFile {
    /// Replaces the file at `path` by `content`.
    pub fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
            start: 0,
            end: to_the_end(),
            thought: String::new(),
            security_risk: SecurityRisk::default(),
        }
    }
}

/// `edit`: one command of the editor, or a draft edit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// Absolute path.
    pub path: String,
    /// `view`, `create`, `str_replace`, `insert` or `undo_edit`.
    #[serde(default)]
    pub command: String,
    /// The text that `create` writes.
    #[serde(default)]
    pub file_text: Option<String>,
    /// The text that `str_replace` looks for.
    #[serde(default)]
    pub old_str: Option<String>,
    /// The text that `str_replace` and `insert` put in.
    #[serde(default)]
    pub new_str: Option<String>,
    /// The line after which `insert` works: a number, or a string that holds one.
    #[serde(default, deserialize_with = "number_or_text")]
    #[schemars(schema_with = "number_or_text_schema")]
    pub insert_line: Option<Value>,
    /// Draft mode: the draft.
    #[serde(default)]
    pub content: String,
    /// Draft mode: first line.
    #[serde(default = "first_line")]
    pub start: i64,
    /// Draft mode: last line.
    #[serde(default = "to_the_end")]
    pub end: i64,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
    /// The editor or a draft.
    #[serde(default)]
    pub impl_source: EditSource,
}

impl EditFile {
    /// Any `command` of the editor on `path`, its parameters still to be filled in.
    pub fn new(path: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            command: command.into(),
            ..Self::default()
        }
    }
}

impl Default for EditFile {
    fn default() -> Self {
        Self {
            path: String::new(),
            command: String::new(),
            file_text: None,
            old_str: None,
            new_str: None,
            insert_line: None,
            content: String::new(),
            start: first_line(),
            end: to_the_end(),
            thought: String::new(),
            security_risk: SecurityRisk::default(),
            impl_source: EditSource::default(),
        }
    }
}

fn yes() -> bool {
    true
}

fn to_the_end() -> i64 {
    -1
}

fn first_line() -> i64 {
    1
}

/// Agents give line numbers as numbers or as text; the editor reads both.
fn number_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        line @ (Value::Number(_) | Value::String(_)) => Ok(Some(line)),
        other => Err(D::Error::custom(format_args!(
            "expected a number or a string, got {other}"
        ))),
    }
}

fn number_or_text_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["number", "string", "null"] })
}
