//! What is served: tools, and what is known of the entrypoints that they came from.

use zareba_tools::{Call, LoadFailure, Loaded, Registry, Returned, ToolDefinition, ToolError};
use zareba_wire::BoxFuture;

/// Tools, however they are called.
pub trait Toolbox: Send + Sync {
    /// The tools, in the order in which they were added.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// Whether there is a tool of this name.
    fn has(&self, name: &str) -> bool;

    /// The entrypoints that made a toolkit, as they were written.
    fn toolkits(&self) -> Vec<String>;

    /// The entrypoints that gave nothing, and why.
    fn failures(&self) -> Vec<LoadFailure>;

    /// Calls a tool. Dropping the future ends the call.
    fn call<'a>(&'a self, name: &'a str, call: Call) -> BoxFuture<'a, Result<Returned, ToolError>>;
}

/// The tools of a registry, which were loaded once.
#[derive(Debug)]
pub struct LoadedTools {
    /// Where they are called.
    pub registry: Registry,
    /// What became of their entrypoints.
    pub loaded: Loaded,
}

impl Toolbox for LoadedTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.registry.list()
    }

    fn has(&self, name: &str) -> bool {
        self.registry.get(name).is_some()
    }

    fn toolkits(&self) -> Vec<String> {
        self.loaded.toolkits.clone()
    }

    fn failures(&self) -> Vec<LoadFailure> {
        self.loaded.failures.clone()
    }

    fn call<'a>(&'a self, name: &'a str, call: Call) -> BoxFuture<'a, Result<Returned, ToolError>> {
        Box::pin(self.registry.call(name, call))
    }
}
