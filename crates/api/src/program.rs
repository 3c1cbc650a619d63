//! Programs with streams of their own: what is asked for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A program to start: either `argv` or `command` is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartProgram {
    /// A program and its arguments, passed on as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// A line for the session's shell instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Where it starts; the workspace when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables beside those that every shell of the session has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The size of its terminal. Left out, it has pipes, with errors apart from output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<ProgramTerminal>,
    /// Whether it reads what the client sends; otherwise it has nothing to read.
    #[serde(default)]
    pub stdin: bool,
}

/// The size of a program's terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramTerminal {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub cols: u16,
}
