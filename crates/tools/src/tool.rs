//! The two traits: a tool, and what runs several of them.

use std::sync::Arc;

use zareba_wire::BoxFuture;

use crate::{Call, Returned, ToolDefinition, ToolError};

/// A function that an agent can call. It may be called from many tasks at once.
pub trait Tool: Send + Sync {
    /// What is said of it.
    fn definition(&self) -> &ToolDefinition;

    /// Calls it. Dropping the future cancels the call: what runs it is told to stop, and is ended
    /// when it does not.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Returned, ToolError>>;

    /// What keeps its state, which it may share with other tools.
    fn host(&self) -> Option<Arc<dyn Host>> {
        None
    }
}

/// What keeps the state of tools.
pub trait Host: Send + Sync {
    /// Begins anew, as if nothing had been called yet. Calls that are under way end as if the host
    /// had died.
    fn reset(&self) -> BoxFuture<'_, Result<(), ToolError>>;

    /// Ends it. A later call begins anew.
    fn close(&self) -> BoxFuture<'_, ()>;
}
