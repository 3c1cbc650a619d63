//! One server: connected when it is needed, again after it died, and held to what was accepted
//! of it.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::{Arc, Mutex as Latch, MutexGuard, PoisonError},
    time::Duration,
};

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
    PinError, Pins, ServerSpec,
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
    /// Beside the state, so that nobody waits for it while the server is waited for.
    news: Latch<News>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// The tools of its last list, and the hash of each.
    listed: HashMap<String, String>,
    /// Its last list was taken in. One that is gone after that comes back with the next call.
    is_listed: bool,
    /// Some tools of its last list were not accepted, when the pins were of that generation.
    refused_at: Option<u64>,
    failed: Option<Failed>,
}

/// What nobody has [taken](Server::take_news) yet. It is kept until then, whatever becomes of those
/// who asked for it.
#[derive(Default)]
pub(super) struct News {
    /// Its last list, as far as it was accepted.
    pub(super) listing: Option<Listing>,
    /// Why it could not be used after that.
    pub(super) error: Option<ConnectError>,
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
    #[error(
        "the tool `{tool}` of the MCP server `{server}` cannot be used: too many definitions were \
         accepted to remember another one. `zareba mcp --approve {server}` forgets those of this \
         server"
    )]
    NoRoom { server: String, tool: String },
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
            news: Latch::default(),
        }
    }

    /// Whether a [look](Self::look) may bring news: it was not reached before and may be tried
    /// again, its list has changed, or somebody has accepted what it has.
    pub(super) fn is_due(&self) -> bool {
        // Whoever has it may be about to find something.
        let state = self.state.try_lock();
        state.map_or(true, |state| !matches!(self.due(&state), Due::Nothing))
    }

    /// Sees to it that what there is to know of it is among the news.
    pub(super) async fn look(&self) {
        let mut state = self.state.lock().await;
        // What goes wrong is among the news as well.
        let _told = match self.due(&state) {
            Due::Nothing => Ok(()),
            Due::Connection => self.connect(&mut state).await,
            Due::List(open) => self.list_again(&mut state, open).await,
        };
    }

    fn due(&self, state: &State) -> Due {
        let open = state.connection.clone().filter(|open| open.is_open());
        let is_paused = state.failed.as_ref().is_some_and(Failed::is_on);
        let Some(open) = open else {
            return match state.is_listed || is_paused {
                true => Due::Nothing,
                false => Due::Connection,
            };
        };
        // What cannot be read is told by whoever compares.
        let generation = self.pins.generation().unwrap_or_default();
        let is_approved = state.refused_at.is_some_and(|then| then != generation);
        match open.has_list_changed() || is_approved {
            true => Due::List(open),
            false => Due::Nothing,
        }
    }

    /// What was found since somebody took it last.
    pub(super) fn take_news(&self) -> News {
        mem::take(&mut *self.news())
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
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
            None => self.connect(&mut state).await.map_err(unavailable)?,
            Some(open) if open.has_list_changed() => {
                let listed = self.list_again(&mut state, open).await;
                listed.map_err(unavailable)?;
            }
            // Somebody has approved what the server has now, which may not be what it had when it
            // was asked last: that is accepted again by nobody.
            Some(open) if self.check(&state, tool)?.is_none() => {
                let listed = self.list_again(&mut state, open).await;
                listed.map_err(unavailable)?;
            }
            Some(_) => {}
        }
        // At every use, as others may have accepted something else meanwhile.
        let verdict = self.check(&state, tool)?;
        let (server, tool) = (self.spec.name.clone(), tool.to_owned());
        match (verdict, &state.connection) {
            (Some(Pinned::Accepted), Some(connection)) => Ok(Arc::clone(connection)),
            (Some(Pinned::Changed), _) => Err(CallError::Changed { server, tool }),
            (_, None) => Err(CallError::Missing { server, tool }),
            (Some(Pinned::NoRoom) | None, _) => Err(CallError::NoRoom { server, tool }),
        }
    }

    /// How a tool of its last list compares with the accepted one, if there is one.
    fn check(&self, state: &State, tool: &str) -> Result<Option<Pinned>, CallError> {
        let hash = state.listed.get(tool).ok_or_else(|| CallError::Missing {
            server: self.spec.name.clone(),
            tool: tool.to_owned(),
        })?;
        let checked = self.pins.check(&self.spec, tool, hash);
        checked.map_err(|error| unavailable(not_compared(&error)))
    }

    async fn connect(&self, state: &mut State) -> Result<(), ConnectError> {
        state.connection = None;
        if let Some(failed) = state.failed.as_ref().filter(|failed| failed.is_on()) {
            return Err(failed.error.clone());
        }
        let opened = async {
            let connection = Connection::open(&self.spec, self.place.as_ref()).await?;
            self.take_list(state, &connection).await?;
            Ok::<_, ConnectError>(Arc::new(connection))
        };
        let opened = opened.await;
        self.settle(state, opened)
    }

    async fn list_again(
        &self,
        state: &mut State,
        open: Arc<Connection>,
    ) -> Result<(), ConnectError> {
        // Not used again unless its new list was looked at, however this ends.
        state.connection = None;
        state.is_listed = false;
        let listed = self.take_list(state, &open).await;
        self.settle(state, listed.map(|()| open))
    }

    /// Uses a connection from now on, or leaves the server alone for a while.
    fn settle(
        &self,
        state: &mut State,
        outcome: Result<Arc<Connection>, ConnectError>,
    ) -> Result<(), ConnectError> {
        match outcome {
            Ok(connection) => {
                state.failed = None;
                state.connection = Some(connection);
                Ok(())
            }
            Err(error) => {
                state.failed = Some(Failed::again(state.failed.take(), error.clone()));
                self.news().error = Some(error.clone());
                Err(error)
            }
        }
    }

    async fn take_list(
        &self,
        state: &mut State,
        connection: &Connection,
    ) -> Result<(), ConnectError> {
        let tools = connection.list(&self.spec).await?;
        let listing = self.judge(state, tools).await?;
        *self.news() = News {
            listing: Some(listing),
            error: None,
        };
        Ok(())
    }

    /// Compares a list with what was accepted.
    async fn judge(&self, state: &mut State, tools: Vec<Tool>) -> Result<Listing, ConnectError> {
        let mut listing = Listing::of(tools);
        let hashed = listing.tools.iter();
        let hashed = hashed.map(|tool| (tool.name.to_string(), pins::hash(tool)));
        let hashed: Vec<(String, String)> = hashed.collect();
        // Before they are compared: what is approved after that is another generation.
        let generation = self.pins.generation().unwrap_or_default();
        let compared = self.pins.compare(&self.spec, &hashed).await;
        let verdicts = compared.map_err(|error| not_compared(&error))?;
        let names = hashed.iter().map(|(name, _)| name.as_str());
        let refused = names.zip(verdicts).filter_map(|(name, verdict)| {
            let (server, tool) = (self.spec.name.clone(), name.to_owned());
            match verdict {
                Pinned::Accepted => None,
                Pinned::Changed => Some((name, CallError::Changed { server, tool })),
                Pinned::NoRoom => Some((name, CallError::NoRoom { server, tool })),
            }
        });
        let refused: BTreeMap<&str, CallError> = refused.collect();
        let told = refused.values().map(ToString::to_string);
        listing.problems.extend(told);
        // Not even its words reach a model.
        listing
            .tools
            .retain(|tool| !refused.contains_key(tool.name.as_ref()));
        state.refused_at = (!refused.is_empty()).then_some(generation);
        state.is_listed = true;
        state.listed = hashed.into_iter().collect();
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

/// What a look has to do.
enum Due {
    Nothing,
    Connection,
    List(Arc<Connection>),
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

fn not_compared(error: &PinError) -> ConnectError {
    ConnectError {
        class: ErrorClass::Internal,
        message: chain(error),
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
