//! One server: connected when it is needed, again after it died, and held to what was accepted
//! of it.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use rmcp::{
    ServiceError,
    model::{CallToolRequestParams, CallToolResult, JsonObject, Tool},
};
use tokio::{sync::Mutex, time::timeout};
use zareba_protocol::ErrorClass;
use zareba_tools::Place;

use super::{
    Pins, ServerSpec,
    connection::{ConnectError, Connection},
    listing::Listing,
    pins::{self, Pinned},
};

/// How long a server that could not be reached is left alone. Calls until then get the same answer.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// One server.
pub(crate) struct Server {
    pub(crate) spec: ServerSpec,
    place: Option<Arc<dyn Place>>,
    pins: Pins,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// How each tool of its last list compares with what was accepted.
    verdicts: HashMap<String, Pinned>,
    failed: Option<(Instant, ConnectError)>,
}

/// Why a tool of a server gave no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("{message}")]
    Unavailable { class: ErrorClass, message: String },
    #[error(
        "the tool `{tool}` of the MCP server `{server}` is not the one that was accepted: the \
         server has changed its definition. Look at it, and accept it with \
         `zareba mcp --approve {server}`"
    )]
    Changed { server: String, tool: String },
    #[error("the MCP server `{server}` has no tool `{tool}` any more")]
    Missing { server: String, tool: String },
    #[error("Tool \"{tool}\" timed out after {} seconds", limit.as_secs_f64())]
    TimedOut { tool: String, limit: Duration },
    #[error("the MCP server `{server}` is gone: {reason}")]
    Gone { server: String, reason: String },
    #[error("{message}")]
    Refused { message: String },
}

impl Server {
    pub(crate) fn new(spec: ServerSpec, place: Option<Arc<dyn Place>>, pins: Pins) -> Self {
        Self {
            spec,
            place,
            pins,
            state: Mutex::default(),
        }
    }

    /// Connects, and says what it has and what is wrong with that.
    pub(super) async fn introduce(&self) -> Result<Listing, ConnectError> {
        let mut state = self.state.lock().await;
        self.connect(&mut state).await
    }

    /// Calls a tool by the server's own name for it.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        limit: Duration,
    ) -> Result<CallToolResult, CallError> {
        let late = || CallError::TimedOut {
            tool: tool.to_owned(),
            limit,
        };
        // Dropped when it is late, which takes the call back at the server.
        let called = timeout(limit, self.call_somehow(tool, arguments)).await;
        called.unwrap_or_else(|_| Err(late()))
    }

    async fn call_somehow(
        &self,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<CallToolResult, CallError> {
        let connection = self.live(tool).await?;
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = connection.call(request).await;
        result.map_err(|error| match error {
            ServiceError::McpError(error) => CallError::Refused {
                message: error.message.into_owned(),
            },
            error => CallError::Gone {
                server: self.spec.name.clone(),
                reason: connection.reason(&error),
            },
        })
    }

    /// A connection on which the tool is the one that was accepted.
    async fn live(&self, tool: &str) -> Result<Arc<Connection>, CallError> {
        let mut state = self.state.lock().await;
        let open = state.connection.clone().filter(|open| open.is_open());
        match open {
            None => drop(self.connect(&mut state).await.map_err(unavailable)?),
            Some(open) if open.take_list_changed() => {
                // Not used again unless its new list was looked at, however this ends.
                state.connection = None;
                let listed = open.list(&self.spec).await.map_err(unavailable)?;
                self.judge(&mut state, listed).map_err(unavailable)?;
                state.connection = Some(open);
            }
            Some(_) => {}
        }
        let (server, tool) = (self.spec.name.clone(), tool.to_owned());
        match (state.verdicts.get(&tool), &state.connection) {
            (Some(Pinned::Accepted), Some(connection)) => Ok(Arc::clone(connection)),
            (Some(Pinned::Changed), _) => Err(CallError::Changed { server, tool }),
            (None, _) | (_, None) => Err(CallError::Missing { server, tool }),
        }
    }

    async fn connect(&self, state: &mut State) -> Result<Listing, ConnectError> {
        state.connection = None;
        if let Some((at, error)) = &state.failed
            && at.elapsed() < RECONNECT_PAUSE
        {
            return Err(error.clone());
        }
        let opened = async {
            let connection = Connection::open(&self.spec, self.place.as_ref()).await?;
            let tools = connection.list(&self.spec).await?;
            Ok::<_, ConnectError>((connection, tools))
        };
        match opened.await {
            Ok((connection, tools)) => {
                let listing = self.judge(state, tools)?;
                state.failed = None;
                state.connection = Some(Arc::new(connection));
                Ok(listing)
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Compares a list with what was accepted.
    fn judge(&self, state: &mut State, tools: Vec<Tool>) -> Result<Listing, ConnectError> {
        let mut listing = Listing::of(tools);
        let hashed = listing.tools.iter();
        let hashed = hashed.map(|tool| (tool.name.to_string(), pins::hash(tool)));
        let hashed: Vec<(String, String)> = hashed.collect();
        let verdicts = self.pins.compare(&self.spec.name, &hashed);
        let verdicts = verdicts.map_err(|error| ConnectError {
            class: ErrorClass::Internal,
            message: error.to_string(),
        })?;
        let names = hashed.into_iter().map(|(name, _)| name);
        state.verdicts = names.zip(verdicts).collect();
        let is_changed = |tool: &Tool| state.verdicts.get(&*tool.name) == Some(&Pinned::Changed);
        let changed = listing.tools.iter().filter(|tool| is_changed(tool));
        let told = changed.map(|tool| {
            let (server, tool) = (self.spec.name.clone(), tool.name.to_string());
            CallError::Changed { server, tool }.to_string()
        });
        listing.problems.extend(told.collect::<Vec<_>>());
        // Not even its words reach a model.
        listing.tools.retain(|tool| !is_changed(tool));
        Ok(listing)
    }

    /// Ends its connection. The next call makes a new one.
    pub(crate) async fn close(&self) {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.take() {
            connection.close();
        }
    }
}

fn unavailable(error: ConnectError) -> CallError {
    CallError::Unavailable {
        class: error.class,
        message: error.message,
    }
}
