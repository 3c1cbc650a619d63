//! The actions that look around: in the web, among tools and among files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::SecurityRisk;

/// `browse`: load a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrowseUrl {
    /// What to load.
    pub url: String,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
    /// Return the accessibility tree too.
    #[serde(default)]
    pub return_axtree: bool,
}

impl BrowseUrl {
    /// Loads `url` without its accessibility tree.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            thought: String::new(),
            security_risk: SecurityRisk::default(),
            return_axtree: false,
        }
    }
}

/// `browse_interactive`: act on the loaded page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrowseInteractive {
    /// Calls such as `click("12")`.
    pub browser_actions: String,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
    /// Text for the user.
    #[serde(default)]
    pub browsergym_send_msg_to_user: String,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
    /// Return the accessibility tree too.
    #[serde(default)]
    pub return_axtree: bool,
}

impl BrowseInteractive {
    /// Performs the calls in `browser_actions`.
    pub fn new(browser_actions: impl Into<String>) -> Self {
        Self {
            browser_actions: browser_actions.into(),
            thought: String::new(),
            browsergym_send_msg_to_user: String::new(),
            security_risk: SecurityRisk::default(),
            return_axtree: false,
        }
    }
}

/// `call_tool_mcp`: call a tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallTool {
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
}

impl CallTool {
    /// Calls the tool `name` with `arguments`.
    pub fn new(name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self {
            name: name.into(),
            arguments,
            thought: String::new(),
            security_risk: SecurityRisk::default(),
        }
    }
}

/// `call_tool`: call a tool of the session.
///
/// How long it may take is the event's `timeout`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UseTool {
    /// The tool.
    pub name: String,
    /// Its arguments by name.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Arguments by position, for functions that have such; they come before those with names.
    #[serde(default)]
    pub positional: Vec<Value>,
    /// Hand the arguments over as they are, without looking at the tool's schema.
    #[serde(default)]
    pub unchecked: bool,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
}

impl UseTool {
    /// Calls the tool `name` with `arguments`.
    pub fn new(name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self {
            name: name.into(),
            arguments,
            ..Self::default()
        }
    }
}

/// `glob`: file names by pattern, ignore files respected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindFiles {
    /// A glob such as `**/*.rs`.
    pub pattern: String,
    /// The directory to look in; the shell's directory when absent.
    #[serde(default)]
    pub path: Option<String>,
    /// Look into hidden and ignored files too.
    #[serde(default)]
    pub include_ignored: bool,
    /// How many names at the most.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
}

impl FindFiles {
    /// Looks for `pattern` below the shell's directory.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            ..Self::default()
        }
    }
}

/// `grep`: lines by regular expression, ignore files respected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchFiles {
    /// A regular expression in Rust's linear-time syntax.
    pub pattern: String,
    /// The file or directory to look in; the shell's directory when absent.
    #[serde(default)]
    pub path: Option<String>,
    /// Look only into files whose path matches this glob.
    #[serde(default)]
    pub include: Option<String>,
    /// Look into hidden and ignored files too.
    #[serde(default)]
    pub include_ignored: bool,
    /// Upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
    /// How many matches at the most.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
}

impl SearchFiles {
    /// Looks for `pattern` in the files below the shell's directory.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            ..Self::default()
        }
    }
}
