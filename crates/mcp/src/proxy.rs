//! Servers that run inside a sandbox behind one address, as OpenHands' client expects it: it
//! pushes a list of programs with `/update_mcp_server` and then talks to all of them at once.
//!
//! The set is replaced as a whole. Clients that are connected see the new one with their next
//! request: nothing is kept of the old one, whose programs end.

use std::sync::{Arc, RwLock};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
    transport::async_rw::AsyncRwTransport,
};
use std::sync::PoisonError;
use tokio::sync::Mutex;
use zareba_tools::Place;
use zareba_wire::{
    BoxFuture,
    tool_servers::{ToolClient, ToolProgram, ToolServers},
};

use crate::client::{CallError, McpServers, Naming, Pins, ServerSpec};

/// What waits in each direction of a connection.
const PIPE_BYTES: usize = 64 * 1024;
/// A message from a client.
const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Servers inside a sandbox behind one address. Dropping it ends them.
pub struct Proxy {
    place: Arc<dyn Place>,
    set: Arc<RwLock<Option<Arc<McpServers>>>>,
    /// Held by the one who replaces the set.
    replacing: Mutex<()>,
}

impl Proxy {
    /// Without servers, until there are some.
    pub fn new(place: Arc<dyn Place>) -> Self {
        Self {
            place,
            set: Arc::default(),
            replacing: Mutex::default(),
        }
    }

    async fn replace_with(&self, programs: Vec<ToolProgram>) -> Result<(), String> {
        let _alone = self.replacing.lock().await;
        let specs = programs.into_iter().map(|program| {
            let ToolProgram {
                name,
                command,
                arguments,
                environment,
            } = program;
            ServerSpec::program(&name, &command, arguments, environment)
        });
        let specs = specs.collect::<Result<Vec<_>, _>>();
        let specs = specs.map_err(|error| error.to_string())?;
        let (place, naming) = (Arc::clone(&self.place), Naming::PrefixedIfSeveral);
        // Whoever pushes a server has accepted it.
        let servers = McpServers::connect(specs, Some(place), Pins::in_memory(), naming).await;
        let problems: Vec<_> = servers.problems().iter().map(ToString::to_string).collect();
        let before = {
            let mut set = self.set.write().unwrap_or_else(PoisonError::into_inner);
            set.replace(Arc::new(servers))
        };
        if let Some(before) = before {
            before.close().await;
        }
        match problems.as_slice() {
            [] => Ok(()),
            problems => Err(problems.join("\n")),
        }
    }
}

impl ToolServers for Proxy {
    fn replace(&self, programs: Vec<ToolProgram>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.replace_with(programs))
    }

    fn connect(&self) -> Option<ToolClient> {
        let set = self.set.read().unwrap_or_else(PoisonError::into_inner);
        set.as_ref()?;
        drop(set);
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let (input, output) = tokio::io::split(ours);
        let transport =
            AsyncRwTransport::new_server(input, output).with_max_line_length(MESSAGE_BYTES_MAX);
        let handler = Handler {
            set: Arc::clone(&self.set),
        };
        // Ends when the other side of the pipe is dropped.
        tokio::spawn(async move {
            match handler.serve(transport).await {
                Ok(running) => drop(running.waiting().await),
                Err(error) => tracing::debug!(%error, "a client of the MCP proxy did not begin"),
            }
        });
        Some(ToolClient { stream: theirs })
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Proxy").finish_non_exhaustive()
    }
}

/// What is said to one client.
#[derive(Clone)]
struct Handler {
    set: Arc<RwLock<Option<Arc<McpServers>>>>,
}

impl Handler {
    fn servers(&self) -> Result<Arc<McpServers>, ErrorData> {
        let set = self.set.read().unwrap_or_else(PoisonError::into_inner);
        let gone = || ErrorData::internal_error("there are no servers", None);
        set.clone().ok_or_else(gone)
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let ourselves = Implementation::new("zareba", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(ourselves)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(
            self.servers()?.definitions(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let servers = self.servers()?;
        let arguments = request.arguments.unwrap_or_default();
        let called = tokio::select! {
            called = servers.call(&request.name, arguments) => called,
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the call was called off", None));
            }
        };
        match called {
            Some(Ok(result)) => Ok(result.into()),
            Some(Err(CallError::Refused { message })) => {
                Err(ErrorData::internal_error(message, None))
            }
            Some(Err(error)) => {
                let text = ContentBlock::text(error.to_string());
                Ok(CallToolResult::error(vec![text]).into())
            }
            None => {
                let message = format!("Unknown tool: {}", request.name);
                Err(ErrorData::invalid_params(message, None))
            }
        }
    }
}
