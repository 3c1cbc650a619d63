//! Servers of tools: the set is pushed, and clients reach it by a stream of events and posted
//! messages, as the original's proxy has it.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    body::Body,
    extract::{Query, Request, State},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf},
    sync::Mutex as Turn,
    time::{Interval, interval_at, timeout},
};

use super::{
    answer::{self, Refusal},
    body::read_json,
    handlers::Surface,
};
use crate::{
    key::KEY_HEADER,
    tool_servers::{ToolClient, ToolProgram},
};

/// Clients that are connected at once; each call of the original's client is one.
const CLIENTS_MAX: usize = 128;
/// Programs in one set.
const PROGRAMS_MAX: usize = 32;
/// How often a stream shows that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How long a message may wait until the server has read those before it.
const MESSAGE_PATIENCE: Duration = Duration::from_secs(30);

type Writer = Arc<Turn<WriteHalf<DuplexStream>>>;

/// The clients that are connected, by the names under which they post.
#[derive(Debug, Default)]
pub(super) struct ToolClients {
    writers: Mutex<HashMap<String, Writer>>,
}

/// How a client is told where to post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostAddress {
    /// By the whole path, as the original has it.
    Absolute,
    /// By a path next to the stream's, for routes that are below a path that nobody here knows.
    Relative,
}

impl ToolClients {
    fn writers(&self) -> MutexGuard<'_, HashMap<String, Writer>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, writer: WriteHalf<DuplexStream>) -> Option<String> {
        let mut writers = self.writers();
        if writers.len() >= CLIENTS_MAX {
            return None;
        }
        let name = format!("{:032x}", rand::random::<u128>());
        writers.insert(name.clone(), Arc::new(Turn::new(writer)));
        Some(name)
    }
}

#[derive(Deserialize)]
struct Pushed {
    name: String,
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: HashMap<String, String>,
}

/// The set of servers is replaced.
pub(super) async fn update(
    State(surface): State<Arc<Surface>>,
    request: Request,
) -> Result<Response, Refusal> {
    let body = read_json(request, &surface.limits).await?;
    let document: Value = serde_json::from_slice(&body).map_err(|_| Refusal::unexpected())?;
    if !document.is_array() {
        let detail = "Request must be a list of MCP tools to sync";
        return Ok(Refusal::new(StatusCode::BAD_REQUEST, detail).into_response());
    }
    let pushed: Vec<Pushed> =
        serde_json::from_value(document).map_err(|_| Refusal::unexpected())?;
    let programs: Vec<ToolProgram> = pushed.into_iter().map(program).collect();
    if programs.len() > PROGRAMS_MAX || programs.iter().any(|program| !is_sound(program)) {
        return Err(Refusal::unexpected());
    }
    let count = programs.len();
    let outcome = match surface.service.tool_servers() {
        Some(servers) => servers.replace(programs).await,
        None if count == 0 => Ok(()),
        None => Err(format!(
            "MCP is not available in this executor: {count} server(s) were not started"
        )),
    };
    Ok(answer::json(&json!({
        "detail": "MCP server updated successfully",
        "router_error_log": outcome.err().unwrap_or_default(),
    })))
}

fn program(pushed: Pushed) -> ToolProgram {
    ToolProgram {
        name: pushed.name,
        command: pushed.command,
        arguments: pushed.args,
        environment: pushed.env.into_iter().collect(),
    }
}

/// The contract's rules for names and commands.
fn is_sound(program: &ToolProgram) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !program.name.is_empty()
        && program.name.bytes().all(is_plain)
        && !program.command.is_empty()
        && !program.command.contains(' ')
}

/// A client's stream: first where to post, then what the servers say.
pub(super) async fn events(
    State(surface): State<Arc<Surface>>,
    request: Request,
) -> Result<Response, Response> {
    if !bears_its_key(request.headers()) {
        return Err(unauthorized());
    }
    let servers = surface.service.tool_servers();
    let client = servers.and_then(|servers| servers.connect());
    let Some(ToolClient { stream }) = client else {
        return Err(Refusal::new(StatusCode::NOT_FOUND, "Not Found").into_response());
    };
    let (reader, writer) = tokio::io::split(stream);
    let name = surface.tool_clients.admit(writer);
    let name = name.ok_or_else(|| Refusal::overloaded().into_response())?;
    let path = request.uri().path();
    let base = match surface.post_address {
        PostAddress::Absolute => path.strip_suffix("sse").unwrap_or("/mcp/"),
        PostAddress::Relative => "",
    };
    let first = format!("event: endpoint\ndata: {base}messages/?session_id={name}\n\n");
    let stay = Stay {
        surface: Arc::clone(&surface),
        name,
    };
    let mut response = Response::new(Body::from_stream(spoken(first, reader, stay)));
    let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// A client that is connected; dropped with its stream.
struct Stay {
    surface: Arc<Surface>,
    name: String,
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.surface.tool_clients.writers().remove(&self.name);
    }
}

struct Speaker {
    reader: BufReader<ReadHalf<DuplexStream>>,
    /// What came of a line whose rest did not come yet.
    partial: Vec<u8>,
    clock: Interval,
    first: Option<String>,
    _stay: Stay,
}

fn spoken(
    first: String,
    reader: ReadHalf<DuplexStream>,
    stay: Stay,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    let speaker = Speaker {
        reader: BufReader::new(reader),
        partial: Vec::new(),
        clock: interval_at(tokio::time::Instant::now() + SIGN_OF_LIFE, SIGN_OF_LIFE),
        first: Some(first),
        _stay: stay,
    };
    futures_util::stream::unfold(speaker, |mut speaker| async {
        let event = speaker.next().await?;
        Some((Ok(event), speaker))
    })
}

impl Speaker {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(Bytes::from(first));
        }
        tokio::select! {
            // What was read stays in `partial` when the clock is faster.
            read = self.reader.read_until(b'\n', &mut self.partial) => {
                if read.ok()? == 0 || !self.partial.ends_with(b"\n") {
                    return None;
                }
                let line = std::mem::take(&mut self.partial);
                Some([b"event: message\ndata: ", line.as_slice(), b"\n"].concat().into())
            }
            _ = self.clock.tick() => Some(Bytes::from_static(b": ping\n\n")),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Addressee {
    session_id: Option<String>,
}

/// A message of a client. What comes of it is said on its stream.
pub(super) async fn message(
    State(surface): State<Arc<Surface>>,
    Query(addressee): Query<Addressee>,
    request: Request,
) -> Result<Response, Response> {
    if !bears_its_key(request.headers()) {
        return Err(unauthorized());
    }
    let plain = |status, text: &'static str| (status, text).into_response();
    let Some(name) = addressee.session_id else {
        return Err(plain(StatusCode::BAD_REQUEST, "session_id is required"));
    };
    let writer = surface.tool_clients.writers().get(&name).cloned();
    let writer = writer.ok_or_else(|| plain(StatusCode::NOT_FOUND, "Could not find session"))?;
    let body = read_json(request, &surface.limits).await;
    let body = body.map_err(axum::response::IntoResponse::into_response)?;
    // Written anew, so that it is one line.
    let message: Value = serde_json::from_slice(&body)
        .map_err(|_| plain(StatusCode::BAD_REQUEST, "Could not parse message"))?;
    let line = format!("{message}\n");
    let written = async {
        let mut writer = writer.lock().await;
        writer.write_all(line.as_bytes()).await
    };
    match timeout(MESSAGE_PATIENCE, written).await {
        Ok(Ok(())) => Ok(plain(StatusCode::ACCEPTED, "Accepted")),
        Ok(Err(_)) => Err(plain(StatusCode::NOT_FOUND, "Could not find session")),
        Err(_) => Err(plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "The server does not read",
        )),
    }
}

/// Whoever shows the key to the gate must show it to the proxy as well, as in the original.
fn bears_its_key(headers: &HeaderMap) -> bool {
    let Some(key) = headers.get(KEY_HEADER) else {
        return true;
    };
    let offered = headers.get(header::AUTHORIZATION);
    let offered = offered.and_then(|offered| offered.as_bytes().strip_prefix(b"Bearer "));
    // Both come from the client, so that there is nothing to learn from how long it takes.
    offered == Some(key.as_bytes())
}

fn unauthorized() -> Response {
    let document = json!({
        "error": "invalid_token",
        "error_description": "Authentication required",
    });
    let mut response =
        answer::with_status(StatusCode::UNAUTHORIZED, document.to_string().into_bytes());
    let challenge = HeaderValue::from_static(
        "Bearer error=\"invalid_token\", error_description=\"Authentication required\"",
    );
    let headers = response.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, challenge);
    response
}
