//! [`McpServers`]: all servers of one session.

use std::{fmt, sync::Arc};

use futures_util::future::join_all;
use rmcp::model::{CallToolResult, JsonObject, Tool as Listed};
use zareba_tools::{Origin, Place, Registry, Tool, ToolName};

use super::{CallError, Pins, Server, ServerSpec, lookout::Lookout, server::News, tool::McpTool};

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

/// The servers of one session, with what they offer.
pub struct McpServers {
    lookouts: Vec<Lookout>,
    is_prefixed: bool,
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
    /// Servers that are not connected before somebody [looks](Self::look).
    pub fn new(
        specs: Vec<ServerSpec>,
        place: Option<Arc<dyn Place>>,
        pins: Pins,
        naming: Naming,
    ) -> Self {
        let surplus = specs.iter().skip(SERVERS_MAX).map(|spec| Problem {
            server: spec.name.clone(),
            message: format!("it is left out: there may be {SERVERS_MAX} servers"),
        });
        let problems = surplus.collect();
        let specs = specs.into_iter().take(SERVERS_MAX);
        let servers = specs.map(|spec| Server::new(spec, place.clone(), pins.clone()));
        let lookouts: Vec<Lookout> = servers.map(Lookout::new).collect();
        Self {
            is_prefixed: naming == Naming::Prefixed || lookouts.len() > 1,
            lookouts,
            offers: Vec::new(),
            problems,
        }
    }

    /// Connects to all servers at once. One that cannot be reached is a [problem](Self::problems)
    /// and nothing else: the others are there.
    pub async fn connect(
        specs: Vec<ServerSpec>,
        place: Option<Arc<dyn Place>>,
        pins: Pins,
        naming: Naming,
    ) -> Self {
        let mut servers = Self::new(specs, place, pins, naming);
        servers.look().await;
        servers
    }

    /// Connects to servers that were not reached yet and are not to be left alone for now, and asks
    /// those again whose tools may be others. Returns the tools that are new, or were defined
    /// otherwise when somebody looked last. Costs nothing when there is nothing to be done.
    ///
    /// The first look waits for every server. Later ones go on without those that take long, whose
    /// tools are found by a look after that. What was found is not lost when this is dropped.
    pub async fn look(&mut self) -> Vec<Arc<dyn Tool>> {
        join_all(self.lookouts.iter_mut().map(Lookout::look)).await;
        let lookouts = self.lookouts.iter();
        let servers: Vec<_> = lookouts.map(|it| Arc::clone(&it.server)).collect();
        let mut tools = Vec::new();
        for server in servers {
            tools.extend(self.hear(server.take_news(), &server));
        }
        tools
    }

    /// Takes what is new of a server, and returns the tools that are.
    fn hear(&mut self, news: News, server: &Arc<Server>) -> Vec<Arc<dyn Tool>> {
        let mut tools = Vec::new();
        if news.listing.is_some() || news.error.is_some() {
            self.problems.retain(|it| it.server != server.spec.name);
        }
        if let Some(listing) = news.listing {
            for message in listing.problems {
                self.complain(server, message);
            }
            for listed in listing.tools {
                match self.take(listed, server) {
                    Ok(tool) => tools.extend(tool),
                    Err(message) => self.complain(server, message),
                }
            }
        }
        if let Some(error) = news.error {
            self.complain(server, error.message);
        }
        tools
    }

    /// The same with what is found put into a registry. What that does not take, because a name is
    /// taken or a schema makes no sense, is a problem.
    pub async fn look_for(&mut self, registry: &Registry) {
        for tool in self.look().await {
            let origin = tool.definition().origin.clone();
            let Err(error) = registry.replace(tool) else {
                continue;
            };
            if let Origin::Mcp { server } = origin {
                let message = error.to_string();
                self.problems.push(Problem { server, message });
            }
        }
    }

    /// Takes a tool of a server, and returns it unless it is known as it is.
    fn take(
        &mut self,
        listed: Listed,
        server: &Arc<Server>,
    ) -> Result<Option<Arc<dyn Tool>>, String> {
        let is_own = |it: &Offer| Arc::ptr_eq(&it.server, server) && it.listed.name == listed.name;
        let before = self.offers.iter().position(is_own);
        if let Some(at) = before {
            if self.offers.get(at).is_some_and(|it| it.listed == listed) {
                return Ok(None);
            }
            self.offers.remove(at);
        }
        let offer = offer(listed, server, self.is_prefixed, &self.offers)?;
        let tool = offer.tool();
        self.offers.push(offer);
        Ok(Some(tool))
    }

    fn complain(&mut self, server: &Server, message: String) {
        let server = server.spec.name.clone();
        self.problems.push(Problem { server, message });
    }

    /// What is not as it should be.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Their tools, for a registry.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.offers.iter().map(Offer::tool).collect()
    }

    /// Ends all connections, and programs with them. A later call connects again.
    pub async fn close(&self) {
        join_all(self.lookouts.iter().map(Lookout::close)).await;
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

impl Offer {
    fn tool(&self) -> Arc<dyn Tool> {
        let server = Arc::clone(&self.server);
        Arc::new(McpTool::new(self.name.clone(), &self.listed, server))
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
