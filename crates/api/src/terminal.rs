//! Terminals and shared ports: what is asked for and what is told.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A terminal to open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTerminal {
    /// Its name: 1 to 64 letters, digits, `-` and `_`. Left out, it gets a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    pub name: Option<String>,
    /// A program and its arguments. Left out, and without a command, it is a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// A line for the session's shell instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Where it starts; the workspace when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Variables beside those that every shell of the session has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Its size; 80 by 24 when left out.
    #[serde(default)]
    pub size: WindowSize,
}

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowSize {
    /// Characters in a line.
    #[schema(minimum = 1, maximum = 65535)]
    pub columns: u16,
    /// Lines.
    #[schema(minimum = 1, maximum = 65535)]
    pub rows: u16,
}

impl Default for WindowSize {
    fn default() -> Self {
        Self {
            columns: 80,
            rows: 24,
        }
    }
}

/// A terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Terminal {
    /// Its name.
    pub name: String,
    /// When it was opened.
    #[schema(value_type = String, format = DateTime)]
    pub created: Timestamp,
    /// Its size.
    pub size: WindowSize,
    /// Bytes that it has shown so far.
    pub output_bytes: u64,
    /// How it ended; left out while its program runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<TerminalExit>,
}

/// How a terminal ended: one of these is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalExit {
    /// The status that its program exited with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What else ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Terminals of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalPage {
    /// All of them, by name.
    pub terminals: Vec<Terminal>,
}

/// What a client says on a terminal's socket in a text message. Bytes are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalCommand {
    /// Another size.
    pub resize: WindowSize,
}

/// What is said on a terminal's socket in a text message: one of these is there. Bytes are output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalNotice {
    /// The number of the byte that comes next: at the start, and when this viewer was too slow
    /// and has to come back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
    /// The terminal has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<TerminalExit>,
    /// What the client said makes no sense, or is not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Parameters of looking at a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalQuery {
    /// The number of the first byte; as far back as it is kept when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// A ticket instead of a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// A port of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Port {
    /// Its number.
    pub port: u16,
    /// Whether a program listens on it; left out when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening: Option<bool>,
    /// Where it is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<SharedPort>,
}

/// Ports of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortPage {
    /// Those that programs listen on, as far as that is known, and those that are shared.
    pub ports: Vec<Port>,
}

/// Where a port is shared. Whoever knows the address may use it, and nobody can guess it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SharedPort {
    /// The port inside.
    pub port: u16,
    /// The path on this server.
    pub path: String,
    /// The address with a name of its own, which browsers should use: a page there has an origin
    /// of its own.
    pub url: String,
}
