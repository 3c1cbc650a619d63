//! [`McpServers`]: all servers of one session.

use std::{fmt, sync::Arc};

use futures_util::future::join_all;
use rmcp::model::{CallToolResult, JsonObject, Tool as Listed};
use zareba_tools::{Place, Registry, Tool, ToolName};

use super::{CallError, Pins, Server, ServerSpec, tool::McpTool};

/// Servers of one session.
const SERVERS_MAX: usize = 32;

/// How tools of servers are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `server_tool`, always.
    Prefixed,
    /// `server_tool` when there are several servers and `tool` when there is one, as OpenHands
    /// has it.
    PrefixedIfSeveral,
}

/// Something that is not as it should be; everything else works.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server `{server}`: {message}")]
pub struct Problem {
    /// Which server.
    pub server: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// The servers of one session, connected, with what they offer.
pub struct McpServers {
    servers: Vec<Arc<Server>>,
    offers: Vec<Offer>,
    problems: Vec<Problem>,
}

/// A tool of one of them.
struct Offer {
    name: ToolName,
    listed: Listed,
    server: Arc<Server>,
}

impl McpServers {
    /// Connects to all servers at once. One that cannot be reached is a [problem](Self::problems)
    /// and nothing else: the others are there.
    pub async fn connect(
        specs: Vec<ServerSpec>,
        place: Option<Arc<dyn Place>>,
        pins: Pins,
        naming: Naming,
    ) -> Self {
        let mut problems = Vec::new();
        let surplus = specs.iter().skip(SERVERS_MAX);
        problems.extend(surplus.map(|spec| Problem {
            server: spec.name.clone(),
            message: format!("it is left out: there may be {SERVERS_MAX} servers"),
        }));
        let specs = specs.into_iter().take(SERVERS_MAX);
        let servers = specs.map(|spec| Arc::new(Server::new(spec, place.clone(), pins.clone())));
        let servers: Vec<Arc<Server>> = servers.collect();
        let is_prefixed = naming == Naming::Prefixed || servers.len() > 1;
        let listings = join_all(servers.iter().map(|server| server.introduce())).await;
        let mut offers: Vec<Offer> = Vec::new();
        for (server, listing) in servers.iter().zip(listings) {
            let problem = |message: String| Problem {
                server: server.spec.name.clone(),
                message,
            };
            match listing {
                Ok(listing) => {
                    problems.extend(listing.problems.into_iter().map(problem));
                    for listed in listing.tools {
                        match offer(listed, server, is_prefixed, &offers) {
                            Ok(offer) => offers.push(offer),
                            Err(message) => problems.push(problem(message)),
                        }
                    }
                }
                Err(error) => problems.push(problem(error.message)),
            }
        }
        Self {
            servers,
            offers,
            problems,
        }
    }

    /// What is not as it should be.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Their tools, for a registry.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = self.offers.iter().map(|offer| {
            let server = Arc::clone(&offer.server);
            Arc::new(McpTool::new(offer.name.clone(), &offer.listed, server)) as Arc<dyn Tool>
        });
        tools.collect()
    }

    /// Puts their tools into a registry. What it does not take, because a name is taken or a
    /// schema makes no sense, is a problem.
    pub fn add_to(&mut self, registry: &Registry) {
        let tools = self.tools();
        for (offer, tool) in self.offers.iter().zip(tools) {
            if let Err(error) = registry.add(tool) {
                self.problems.push(Problem {
                    server: offer.server.spec.name.clone(),
                    message: error.to_string(),
                });
            }
        }
    }

    /// Ends all connections, and programs with them. A later call connects again.
    pub async fn close(&self) {
        join_all(self.servers.iter().map(|server| server.close())).await;
    }

    /// Definitions as the servers wrote them, under the names that they have here.
    pub(crate) fn definitions(&self) -> Vec<Listed> {
        let renamed = self.offers.iter().map(|offer| {
            let mut listed = offer.listed.clone();
            listed.name = offer.name.as_str().to_owned().into();
            listed
        });
        renamed.collect()
    }

    /// Calls a tool by the name that it has here; `None` when there is none.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
    ) -> Option<Result<CallToolResult, CallError>> {
        let offer = self
            .offers
            .iter()
            .find(|offer| offer.name.as_str() == name)?;
        let limit = offer.server.spec.timeout;
        let called = offer.server.call(&offer.listed.name, arguments, limit);
        Some(called.await)
    }
}

/// Names a tool, or says why it cannot be had.
fn offer(
    listed: Listed,
    server: &Arc<Server>,
    is_prefixed: bool,
    others: &[Offer],
) -> Result<Offer, String> {
    let own = listed.name.chars().map(|character| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' | '-' => character,
        _ => '_',
    });
    let own: String = own.collect();
    let name = match is_prefixed {
        true => format!("{}_{own}", server.spec.name),
        false => own,
    };
    let name = ToolName::try_from(name).map_err(|error| error.to_string())?;
    let clash = others.iter().find(|other| other.name == name);
    if let Some(other) = clash {
        return Err(format!(
            "its tool `{}` is left out: the name `{name}` is that of the tool `{}` of `{}`; give \
             one of the servers another name",
            listed.name.escape_debug(),
            other.listed.name.escape_debug(),
            other.server.spec.name
        ));
    }
    Ok(Offer {
        name,
        listed,
        server: Arc::clone(server),
    })
}

impl fmt::Debug for McpServers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self
            .offers
            .iter()
            .map(|offer| offer.name.as_str())
            .collect();
        formatter
            .debug_struct("McpServers")
            .field("tools", &names)
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}
