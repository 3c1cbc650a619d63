//! A live connection to a server: opened, asked what it has, and called.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ClientHandler, RoleClient, ServiceError, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
        PaginatedRequestParams, Tool,
    },
    service::{ClientInitializeError, NotificationContext, RunningService},
    transport::streamable_http_client::{
        StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
    },
};
use tokio::time::timeout;
use zareba_protocol::ErrorClass;
use zareba_tools::{JsonShape, Place, PlaceError};
use zareba_wire::program::{ProgramLine, ProgramRequest, ProgramStdin};

use super::{
    Reach, ServerSpec,
    events::EventsTransport,
    http::{self, BoundedClient},
    listing::{LIST_PATIENCE, PAGES_MAX, TOOLS_MAX},
    program::ProgramTransport,
    restrained::Restrained,
};

/// A message from a server: more than any model can read.
pub(super) const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a message may be made of: in memory each value takes many times what it has as text.
const MESSAGE_VALUES_MAX: usize = 300_000;

/// How long a server may take to begin. One that `npx` or `uvx` fetches first is slow.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);

/// What became of a connection, told by the one who saw it.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending(Arc<Mutex<Option<String>>>);

impl Ending {
    pub(super) fn set(&self, how: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
    }

    pub(super) fn get(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Why a server cannot be used. The text is for the one who asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct ConnectError {
    pub(super) class: ErrorClass,
    pub(super) message: String,
}

/// A live connection. Dropping it ends it, and a program with it.
pub(super) struct Connection {
    service: RunningService<RoleClient, Ourselves>,
    ending: Ending,
    list_changed: Arc<AtomicBool>,
}

/// What a server may ask of us: nothing. It can only say that its list has changed.
#[derive(Clone, Debug)]
struct Ourselves {
    list_changed: Arc<AtomicBool>,
}

impl ClientHandler for Ourselves {
    fn get_info(&self) -> ClientConfig {
        let ourselves = Implementation::new("zareba", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), ourselves)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.list_changed.store(true, Ordering::Release);
    }
}

impl Connection {
    /// Connects to a server, within [`CONNECT_PATIENCE`].
    pub(super) async fn open(
        spec: &ServerSpec,
        place: Option<&Arc<dyn Place>>,
    ) -> Result<Self, ConnectError> {
        let ending = Ending::default();
        let list_changed = Arc::new(AtomicBool::new(false));
        let ourselves = Ourselves {
            list_changed: Arc::clone(&list_changed),
        };
        let opened = timeout(CONNECT_PATIENCE, begin(spec, place, ourselves, &ending)).await;
        let late = || {
            failure(
                spec,
                ErrorClass::Timeout,
                &format!("it did not begin within {CONNECT_PATIENCE:?}"),
            )
        };
        let service = opened.map_err(|_| late())??;
        Ok(Self {
            service,
            ending,
            list_changed,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.service.is_closed() && !self.service.peer().is_transport_closed()
    }

    /// Whether it has said that its tools are others than those that were listed.
    pub(super) fn has_list_changed(&self) -> bool {
        self.list_changed.load(Ordering::Acquire)
    }

    /// All tools that it says it has, as far as anybody would read such a list.
    pub(super) async fn list(&self, spec: &ServerSpec) -> Result<Vec<Tool>, ConnectError> {
        // Before it is asked: what changes after that is in the next list.
        self.list_changed.store(false, Ordering::Release);
        let pages = async {
            let (mut tools, mut cursor) = (Vec::new(), None);
            for _ in 0..PAGES_MAX {
                let request = PaginatedRequestParams::default().with_cursor(cursor);
                let page = self.service.peer().list_tools(Some(request)).await?;
                tools.extend(page.tools);
                cursor = page.next_cursor;
                // One more than may be, so that somebody can say that there are too many.
                if cursor.is_none() || tools.len() > TOOLS_MAX {
                    break;
                }
            }
            Ok::<_, ServiceError>(tools)
        };
        match timeout(LIST_PATIENCE, pages).await {
            Ok(Ok(tools)) => Ok(tools),
            Ok(Err(error)) => {
                let reason = self.reason(&error);
                Err(failure(
                    spec,
                    ErrorClass::Disconnected,
                    &format!("it does not list its tools: {reason}"),
                ))
            }
            Err(_) => {
                let reason = format!("it did not list its tools within {LIST_PATIENCE:?}");
                Err(failure(spec, ErrorClass::Timeout, &reason))
            }
        }
    }

    /// Calls a tool. A call that is given up, or takes too long, is taken back at the server.
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
    ) -> Result<CallToolResult, ServiceError> {
        self.service.call_tool(request).await
    }

    /// What is known of an error beyond what it says itself.
    pub(super) fn reason(&self, error: &ServiceError) -> String {
        match (error, self.ending.get()) {
            (ServiceError::TransportClosed | ServiceError::TransportSend(_), Some(ending)) => {
                ending
            }
            (error, _) => error.to_string(),
        }
    }

    /// Ends it. Calls that are under way end with it.
    pub(super) fn close(&self) {
        self.service.cancellation_token().cancel();
    }
}

async fn begin(
    spec: &ServerSpec,
    place: Option<&Arc<dyn Place>>,
    ourselves: Ourselves,
    ending: &Ending,
) -> Result<RunningService<RoleClient, Ourselves>, ConnectError> {
    let served = match &spec.reach {
        Reach::Program {
            command,
            arguments,
            environment,
        } => {
            let place = place.ok_or_else(|| no_place(spec))?;
            let words = std::iter::once(command).chain(arguments).cloned();
            let request = ProgramRequest {
                environment: environment.clone(),
                stdin: ProgramStdin::Open,
                ..ProgramRequest::new(ProgramLine::Argv(words.collect()))
            };
            let started = place.start(request).await;
            let program = started.map_err(|error| not_started(spec, &error))?;
            let transport = ProgramTransport::new(program, ending.clone());
            ourselves.serve(Restrained::new(transport, ending)).await
        }
        Reach::Http { url, key } => {
            let client = BoundedClient::new();
            let client = client.map_err(|error| unreachable(spec, &error.without_url()))?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
            config.max_sse_event_size = MESSAGE_BYTES_MAX;
            if let Some(key) = key {
                config = config.auth_header(key.expose());
                config = config.custom_headers(http::key_headers(key));
            }
            let transport = StreamableHttpClientTransport::with_client(client, config);
            ourselves.serve(Restrained::new(transport, ending)).await
        }
        Reach::Events { url, key } => {
            let opened = EventsTransport::open(url, key.as_ref(), ending.clone()).await;
            let transport = opened.map_err(|error| unreachable(spec, &error))?;
            ourselves.serve(Restrained::new(transport, ending)).await
        }
    };
    served.map_err(|error| not_begun(spec, &error, ending))
}

fn no_place(spec: &ServerSpec) -> ConnectError {
    let reason = "there is no sandbox to start it in";
    failure(spec, ErrorClass::Unsupported, reason)
}

fn not_started(spec: &ServerSpec, error: &PlaceError) -> ConnectError {
    failure(spec, error.class, &error.message)
}

fn unreachable(spec: &ServerSpec, error: &dyn std::error::Error) -> ConnectError {
    failure(spec, ErrorClass::Disconnected, &chain(error))
}

fn not_begun(spec: &ServerSpec, error: &ClientInitializeError, ending: &Ending) -> ConnectError {
    let reason = ending.get().unwrap_or_else(|| match error {
        // The text holds the whole message, which may be large and is not ours.
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "it does not begin as the protocol asks".to_owned()
        }
        error => chain(error),
    });
    failure(spec, ErrorClass::Disconnected, &reason)
}

fn failure(spec: &ServerSpec, class: ErrorClass, reason: &str) -> ConnectError {
    ConnectError {
        class,
        message: format!("the MCP server `{}` cannot be used: {reason}", spec.name),
    }
}

/// Whether a message can be read without taking far more memory than it has bytes.
pub(super) fn is_readable(message: &[u8]) -> bool {
    JsonShape::of(message).values <= MESSAGE_VALUES_MAX
}

/// What is said of a message that is not.
pub(super) fn unreadable() -> String {
    format!("it sent a message of more than {MESSAGE_VALUES_MAX} values")
}

/// An error with its causes, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = causes.take(8).map(ToString::to_string).collect();
    texts.join(": ")
}
