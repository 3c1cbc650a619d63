//! [`ToolServer`]: what is said to a client.

use std::{fmt, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use tokio::sync::{Mutex, OwnedSemaphorePermit, watch};
use zareba_tools::Registry;

use super::{
    Hide, Workplace, catalog::BuiltIn, command::Backgrounds, perform, registered, veil::Veil,
};
use crate::client::McpServers;

/// What a server of tools says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Our version.
    pub version: String,
    /// What a model should know of the place, such as what holds it in; none says nothing.
    pub remarks: Option<String>,
}

/// A place as a server of tools. Clones serve the same place.
#[derive(Clone)]
pub struct ToolServer {
    place: Arc<dyn Workplace>,
    backgrounds: Arc<Backgrounds>,
    options: Arc<ServerOptions>,
    registry: Registry,
    ready: Option<watch::Receiver<bool>>,
    /// Servers whose tools are in the registry, or will be when they can be reached.
    servers: Option<Arc<Mutex<McpServers>>>,
    /// What is told passes it.
    veil: Veil,
    /// Held by the one client that this clone serves, where there may only be so many.
    seat: Option<Arc<OwnedSemaphorePermit>>,
}

impl ToolServer {
    /// Serves a place.
    pub fn new(place: Arc<dyn Workplace>, options: ServerOptions) -> Self {
        Self {
            place,
            backgrounds: Arc::new(Backgrounds::new()),
            options: Arc::new(options),
            registry: Registry::new(),
            ready: None,
            servers: None,
            veil: Veil::default(),
            seat: None,
        }
    }

    /// The same with the tools of a registry beside those that every sandbox has. They are all
    /// there when `ready` says so.
    #[must_use]
    pub fn with_tools(self, registry: Registry, ready: watch::Receiver<bool>) -> Self {
        Self {
            registry,
            ready: Some(ready),
            ..self
        }
    }

    /// The same with servers that are asked for what is new before a client is told which tools
    /// there are, or that there is none of a name.
    #[must_use]
    pub fn with_servers(self, servers: Arc<Mutex<McpServers>>) -> Self {
        Self {
            servers: Some(servers),
            ..self
        }
    }

    /// The same with something hidden in all that clients are told of tools and their results.
    #[must_use]
    pub fn hiding(self, hide: Arc<Hide>) -> Self {
        Self {
            veil: Veil::new(hide),
            ..self
        }
    }

    /// Puts what servers have by now into the registry.
    async fn look(&self) {
        // Where somebody looks already, there is nothing to be seen yet.
        if let Some(servers) = &self.servers
            && let Ok(mut servers) = servers.try_lock()
        {
            servers.look_for(&self.registry).await;
        }
    }

    /// The registry, once its tools are in it. Nobody waits longer than for those.
    async fn registry(&self) -> &Registry {
        if let Some(mut ready) = self.ready.clone() {
            // Whoever fills it and goes away has finished as well.
            let _ = ready.wait_for(|ready| *ready).await;
        }
        &self.registry
    }

    /// The same for one client, who keeps its seat as long as it is served.
    pub(super) fn seated(&self, seat: OwnedSemaphorePermit) -> Self {
        Self {
            seat: Some(Arc::new(seat)),
            ..self.clone()
        }
    }

    fn instructions(&self) -> String {
        let workspace = self.place.workspace();
        let remarks = self.options.remarks.as_deref();
        let remarks = remarks.map_or(String::new(), |text| format!(" {text}"));
        format!(
            "A sandbox to work in; its workspace is {workspace}. Commands run in persistent \
             shells inside it, and all paths are paths inside it.{remarks}"
        )
    }

    async fn definitions(&self) -> Vec<Tool> {
        let built_in = BuiltIn::ALL.into_iter().map(BuiltIn::definition);
        let registry = self.registry().await;
        self.look().await;
        let others = registered::list(registry).into_iter();
        built_in
            .chain(others.filter_map(|tool| self.veil.definition(tool)))
            .collect()
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let ourselves = Implementation::new("zareba", self.options.version.as_str());
        ServerConfig::new(capabilities)
            .with_server_info(ourselves)
            .with_instructions(self.instructions())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.definitions().await))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams {
            name, arguments, ..
        } = request;
        if let Some(tool) = BuiltIn::of_name(&name) {
            let (place, backgrounds) = (&*self.place, &*self.backgrounds);
            let answer = perform::perform(tool, arguments, place, backgrounds, &context).await;
            return Ok(self.veil.result(answer.into_result()).into());
        }
        let arguments = arguments.unwrap_or_default();
        let registry = self.registry().await;
        if registry.get(&name).is_none() {
            self.look().await;
        }
        match registered::call(registry, &name, arguments, &context).await {
            Some(result) => Ok(self.veil.result(result).into()),
            None => {
                let message =
                    format!("there is no tool `{name}`; `tools/list` says which there are");
                Err(ErrorData::invalid_params(message, None))
            }
        }
    }
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ToolServer")
            .field("options", &self.options)
            .field("has_seat", &self.seat.is_some())
            .finish_non_exhaustive()
    }
}
