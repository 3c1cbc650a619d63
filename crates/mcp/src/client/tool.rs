//! A tool of a server, as the registry sees it.

use std::sync::Arc;

use rmcp::model::Tool as Listed;
use serde_json::Value;
use zareba_protocol::ErrorClass;
use zareba_tools::{
    Call, Exception, Host, Origin, Returned, Tool, ToolDefinition, ToolError, ToolName,
};
use zareba_wire::BoxFuture;

use super::{CallError, Server};

/// A tool of a server. What it returns is the result of the protocol as JSON: `content`,
/// `structuredContent`, `isError`.
pub(super) struct McpTool {
    definition: ToolDefinition,
    /// The server's own name for it.
    name: String,
    server: Arc<Server>,
}

impl McpTool {
    pub(super) fn new(name: ToolName, listed: &Listed, server: Arc<Server>) -> Self {
        let definition = ToolDefinition {
            name,
            description: listed.description.as_deref().unwrap_or_default().to_owned(),
            parameters: Value::Object(listed.input_schema.as_ref().clone()),
            accepts: None,
            origin: Origin::Mcp {
                server: server.spec.name.clone(),
            },
        };
        Self {
            definition,
            name: listed.name.to_string(),
            server,
        }
    }

    fn failure(&self, error: CallError) -> ToolError {
        let tool = self.definition.name.to_string();
        match error {
            CallError::Unavailable { class, message } => ToolError::Unavailable { message, class },
            error @ (CallError::Changed { .. } | CallError::NoRoom { .. }) => {
                ToolError::Unavailable {
                    message: error.to_string(),
                    class: ErrorClass::Permission,
                }
            }
            error @ CallError::Missing { .. } => ToolError::Unavailable {
                message: error.to_string(),
                class: ErrorClass::NotFound,
            },
            CallError::TimedOut { limit, .. } => ToolError::TimedOut { tool, limit },
            error @ CallError::Gone { .. } => ToolError::Gone {
                tool,
                message: error.to_string(),
            },
            CallError::Refused { message } => ToolError::Raised(Box::new(Exception {
                tool,
                kind: "McpError".to_owned(),
                message,
                ..Exception::default()
            })),
        }
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Returned, ToolError>> {
        Box::pin(async move {
            if !call.arguments.positional.is_empty() {
                let tool = self.definition.name.to_string();
                let problems = vec!["it takes arguments by name only".to_owned()];
                return Err(ToolError::Invalid { tool, problems });
            }
            let limit = call.timeout.unwrap_or(self.server.spec.timeout);
            let called = self.server.call(&self.name, call.arguments.named, limit);
            let mut result = called.await.map_err(|error| self.failure(error))?;
            result.result_type = None;
            match serde_json::to_value(&result) {
                Ok(value) => Ok(Returned::of(&value)),
                Err(error) => Err(self.failure(CallError::Refused {
                    message: error.to_string(),
                })),
            }
        })
    }

    fn host(&self) -> Option<Arc<dyn Host>> {
        Some(Arc::clone(&self.server) as Arc<dyn Host>)
    }
}

impl Host for Server {
    fn reset(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async {
            self.close().await;
            Ok(())
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close())
    }
}
