//! What a worker says it has loaded.

use serde::{Deserialize, Serialize};

use crate::ToolDefinition;

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
