//! Servers of tools for the sessions of a server: those that the operator names, and those that
//! OpenHands' clients push.

use std::{path::Path, sync::Arc};

use tokio::sync::Mutex;
use zareba_config::Settings;
use zareba_facades::openhands::ToolProxies;
use zareba_mcp::{
    client::{McpServers, Naming, Pins, ServerSpec},
    proxy::Proxy,
};
use zareba_session::{Owner, Sessions, ToolSource, ToolSupply};
use zareba_tools::{Place, Tool};
use zareba_wire::{BoxFuture, tool_servers::ToolServers};

use crate::{commands::mcp, failure::Failure};

/// Has every session get the tools of the servers that the settings name.
pub(super) fn equip(sessions: &Sessions, settings: &Settings, state: &Path) -> Result<(), Failure> {
    let specs = mcp::specs(&settings.mcp)?;
    if !specs.is_empty() {
        let pins = mcp::pins(state)?;
        sessions.set_tool_source(Arc::new(Configured { specs, pins }));
    }
    Ok(())
}

/// Servers that the settings name.
struct Configured {
    specs: Vec<ServerSpec>,
    pins: Pins,
}

impl ToolSource for Configured {
    fn open(&self, owner: &Owner, place: Arc<dyn Place>) -> Arc<dyn ToolSupply> {
        let pins = self.pins.of_tenant(&owner.0);
        let servers = McpServers::new(self.specs.clone(), Some(place), pins, Naming::Prefixed);
        Arc::new(OfSession(Mutex::new(servers)))
    }
}

/// Those servers for one session.
struct OfSession(Mutex<McpServers>);

impl ToolSupply for OfSession {
    fn look(&self) -> BoxFuture<'_, Vec<Arc<dyn Tool>>> {
        Box::pin(async move {
            let mut servers = self.0.lock().await;
            let before = servers.problems().to_vec();
            let news = servers.look().await;
            let problems = servers.problems().iter();
            for problem in problems.filter(|problem| !before.contains(problem)) {
                tracing::warn!(%problem, "not every tool of an MCP server can be used");
            }
            news
        })
    }
}

/// Servers that OpenHands' clients push.
pub(super) struct Pushed;

impl ToolProxies for Pushed {
    fn make(&self, place: Arc<dyn Place>) -> Arc<dyn ToolServers> {
        Arc::new(Proxy::new(place))
    }
}
