//! One server: connected when it is needed, again after it died, and held to what was accepted
//! of it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use rmcp::{
    ServiceError,
    model::{CallToolRequestParams, CallToolResult, JsonObject, Tool},
};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};
use zareba_protocol::ErrorClass;
use zareba_tools::Place;

use super::{
    Pins, ServerSpec,
    connection::{ConnectError, Connection, chain},
    listing::Listing,
    pins::{self, Pinned},
};

/// How long a server that could not be reached is left alone at first, and at the most: each time
/// twice as long. Calls until then get the same answer.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

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
    /// The tools of its last list, and the hash of each.
    listed: HashMap<String, String>,
    /// What is known of its tools elsewhere is of its last list. Not so before its first.
    is_told: bool,
    /// Some tools of its last list were not accepted, when the pins were of that generation.
    refused_at: Option<u64>,
    failed: Option<Failed>,
}

/// It could not be reached.
#[derive(Clone)]
struct Failed {
    until: Instant,
    pause: Duration,
    error: ConnectError,
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

    /// What it has and what is wrong with that, when that may be news: it was not reached before and
    /// may be tried again, its list has changed, or somebody has accepted what it has.
    pub(super) async fn look(&self) -> Option<Result<Listing, ConnectError>> {
        let mut state = self.state.lock().await;
        let open = state.connection.clone().filter(|open| open.is_open());
        let is_paused = state.failed.as_ref().is_some_and(Failed::is_on);
        let Some(open) = open else {
            // One that was there and is gone comes back with the next call.
            let is_due = !state.is_told && !is_paused;
            return match is_due {
                true => Some(self.connect(&mut state).await),
                false => None,
            };
        };
        // What cannot be read is told by whoever compares.
        let generation = self.pins.generation().unwrap_or_default();
        let is_approved = state.refused_at.is_some_and(|then| then != generation);
        let has_changed = open.take_list_changed();
        if !has_changed && !is_approved && state.is_told {
            return None;
        }
        Some(self.list_again(&mut state, open).await)
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
            None => {
                drop(self.connect(&mut state).await.map_err(unavailable)?);
                // Whoever has the tools of before finds the new ones when they look.
                state.is_told = false;
            }
            Some(open) if open.take_list_changed() => {
                let listed = self.list_again(&mut state, open).await;
                drop(listed.map_err(unavailable)?);
                state.is_told = false;
            }
            Some(_) => {}
        }
        let (server, tool) = (self.spec.name.clone(), tool.to_owned());
        let (Some(hash), Some(connection)) = (state.listed.get(&tool), &state.connection) else {
            return Err(CallError::Missing { server, tool });
        };
        // At every use, as others may have accepted something else meanwhile.
        let asked = [(tool, hash.clone())];
        let verdicts = self.compare(&asked).await.map_err(unavailable)?;
        let [(tool, _)] = asked;
        match verdicts.first() {
            Some(Pinned::Accepted) => Ok(Arc::clone(connection)),
            Some(Pinned::Changed) | None => Err(CallError::Changed { server, tool }),
        }
    }

    async fn connect(&self, state: &mut State) -> Result<Listing, ConnectError> {
        state.connection = None;
        if let Some(failed) = state.failed.as_ref().filter(|failed| failed.is_on()) {
            return Err(failed.error.clone());
        }
        let opened = async {
            let connection = Connection::open(&self.spec, self.place.as_ref()).await?;
            let tools = connection.list(&self.spec).await?;
            Ok::<_, ConnectError>((connection, tools))
        };
        match opened.await {
            Ok((connection, tools)) => {
                let listing = self.judge(state, tools).await?;
                state.failed = None;
                state.connection = Some(Arc::new(connection));
                Ok(listing)
            }
            Err(error) => {
                state.failed = Some(Failed::again(state.failed.take(), error.clone()));
                Err(error)
            }
        }
    }

    async fn list_again(
        &self,
        state: &mut State,
        open: Arc<Connection>,
    ) -> Result<Listing, ConnectError> {
        // Not used again unless its new list was looked at, however this ends.
        state.connection = None;
        let tools = open.list(&self.spec).await?;
        let listing = self.judge(state, tools).await?;
        state.connection = Some(open);
        Ok(listing)
    }

    /// Compares a list with what was accepted.
    async fn judge(&self, state: &mut State, tools: Vec<Tool>) -> Result<Listing, ConnectError> {
        let mut listing = Listing::of(tools);
        let hashed = listing.tools.iter();
        let hashed = hashed.map(|tool| (tool.name.to_string(), pins::hash(tool)));
        let hashed: Vec<(String, String)> = hashed.collect();
        let verdicts = self.compare(&hashed).await?;
        let names = hashed.iter().map(|(name, _)| name.as_str());
        let changed = names.zip(verdicts);
        let changed = changed.filter(|(_, verdict)| *verdict == Pinned::Changed);
        let changed: Vec<&str> = changed.map(|(name, _)| name).collect();
        let told = changed.iter().map(|tool| {
            let (server, tool) = (self.spec.name.clone(), (*tool).to_owned());
            CallError::Changed { server, tool }.to_string()
        });
        listing.problems.extend(told);
        // Not even its words reach a model.
        listing
            .tools
            .retain(|tool| !changed.contains(&tool.name.as_ref()));
        state.is_told = true;
        state.refused_at = match changed.as_slice() {
            [] => None,
            _ => Some(self.pins.generation().unwrap_or_default()),
        };
        state.listed = hashed.into_iter().collect();
        Ok(listing)
    }

    async fn compare(&self, hashed: &[(String, String)]) -> Result<Vec<Pinned>, ConnectError> {
        let compared = self.pins.compare(&self.spec, hashed).await;
        compared.map_err(|error| ConnectError {
            class: ErrorClass::Internal,
            message: chain(&error),
        })
    }

    /// Ends its connection. The next call makes a new one.
    pub(crate) async fn close(&self) {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.take() {
            connection.close();
        }
    }
}

impl Failed {
    /// Twice the pause of the failure before.
    fn again(before: Option<Self>, error: ConnectError) -> Self {
        let pause = before.map_or(PAUSE_FIRST, |before| (before.pause * 2).min(PAUSE_MAX));
        Self {
            until: Instant::now() + pause,
            pause,
            error,
        }
    }

    fn is_on(&self) -> bool {
        Instant::now() < self.until
    }
}

fn unavailable(error: ConnectError) -> CallError {
    CallError::Unavailable {
        class: error.class,
        message: error.message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_pause_after_a_failure_doubles_up_to_a_minute() {
        let error = ConnectError {
            class: ErrorClass::Disconnected,
            message: "no".to_owned(),
        };
        let mut failed: Option<Failed> = None;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let next = Failed::again(failed.take(), error.clone());
            assert!(next.is_on());
            tokio::time::advance(next.pause).await;
            assert!(!next.is_on());
            pauses.push(next.pause.as_secs());
            failed = Some(next);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
