//! The host's end: a client of one executor, over TCP or a Unix socket.
//!
//! Connections are kept and used again. Nothing is ever sent twice on suspicion: a request goes
//! to a second connection only when the first is known not to have carried a byte of it, since
//! an action that ran may have changed the world.

mod error;
mod files;
mod output;
mod pool;
mod programs;
mod transfer;
mod variables;
mod worked;

use std::{path::Path, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header, response::Parts};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::{Value, json};
use zareba_protocol::{ActionEvent, ObservationEvent};

pub use error::ClientError;

use self::pool::{Carrier, Lease, Pool};
use crate::{
    Endpoint, SessionKey,
    files::{FileError, FileFailure, FileStatus},
    key::KEY_HEADER,
    program::{StartFailure, StartProgramError},
};

/// What a request may carry: a document, or a form that is read while it is sent.
type RequestBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// Beyond an action's own timeout: its answer still has to be written and sent.
const ACTION_GRACE: Duration = Duration::from_secs(5);
/// An action without a timeout of its own is waited for this long.
const ACTION_TIMEOUT: Duration = Duration::from_secs(120);
const ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// An observation. A file that is read travels whole, and JSON may double its size.
const OBSERVATION_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Any other document.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A client of one executor. Clones share their connections.
///
/// ```no_run
/// # async fn example() -> Result<(), zareba_wire::client::ClientError> {
/// use zareba_protocol::{Action, RunCommand};
/// use zareba_wire::{Endpoint, client::ExecutorClient};
///
/// let client = ExecutorClient::new(Endpoint::Unix("/run/executor.sock".into()), None);
/// let action = Action::Run(RunCommand::new("make test"));
/// let observation = client.execute(action.into()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ExecutorClient {
    pool: Pool,
    session_key: Option<SessionKey>,
}

/// What an executor says of itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ServerInfo {
    /// Seconds since it started.
    pub uptime: f64,
    /// Seconds since its last action began.
    pub idle_time: f64,
    /// What it uses.
    pub resources: Resources,
}

/// What an executor's process uses.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Resources {
    /// Share of one CPU since the last question.
    pub cpu_percent: f64,
    /// Its memory.
    pub memory: Memory,
    /// The root file system it sees.
    pub disk: Disk,
    /// What it has read and written.
    pub io: Io,
}

/// Memory of a process, in bytes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Memory {
    /// In RAM.
    pub rss: u64,
    /// Mapped.
    pub vms: u64,
    /// Share of the machine's RAM.
    pub percent: f64,
}

/// A file system, in bytes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Disk {
    /// Its size.
    pub total: u64,
    /// What is taken.
    pub used: u64,
    /// What users may still take.
    pub free: u64,
    /// Share taken of what users may have.
    pub percent: f64,
}

/// Bytes that reached or left the disk.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Io {
    /// Read.
    pub read_bytes: u64,
    /// Written.
    pub write_bytes: u64,
}

impl ExecutorClient {
    /// Connects when the first request is made.
    pub fn new(endpoint: Endpoint, session_key: Option<SessionKey>) -> Self {
        Self {
            pool: Pool::new(endpoint),
            session_key,
        }
    }

    /// Connects ahead of the next request, which is the faster for it. When that fails, the request
    /// tells.
    pub async fn connect_ahead(&self) {
        self.pool.connect_ahead().await;
    }

    /// Where the executor is.
    pub fn endpoint(&self) -> &Endpoint {
        self.pool.endpoint()
    }

    /// Succeeds once actions can run.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with 503 while the executor starts; otherwise whatever kept the
    /// answer from coming.
    pub async fn alive(&self) -> Result<(), ClientError> {
        let request = self.request(Method::GET, "/alive", None);
        self.document(request, ALIVE_TIMEOUT, DOCUMENT_BYTES_MAX)
            .await
            .map(drop)
    }

    /// How long the executor has been up and idle, and what it uses.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn server_info(&self) -> Result<ServerInfo, ClientError> {
        let request = self.request(Method::GET, "/server_info", None);
        let document = self
            .document(request, QUERY_TIMEOUT, DOCUMENT_BYTES_MAX)
            .await?;
        parse(&document)
    }

    /// Runs an action and waits for its observation, at most 5 s longer than the action's own
    /// timeout, or 120 s when it has none. Dropping the future closes the connection; what the
    /// action started goes on.
    ///
    /// # Errors
    /// Whatever kept the answer from coming. After a timeout or a broken connection the action
    /// may have run: [`ClientError::may_have_run`] says so.
    pub async fn execute(&self, action: ActionEvent) -> Result<ObservationEvent, ClientError> {
        let timeout = action.hard_timeout().unwrap_or(ACTION_TIMEOUT);
        let deadline = timeout.saturating_add(ACTION_GRACE);
        let body = format!("{{\"action\":{}}}", action.to_json());
        let request = self.request(Method::POST, "/execute_action", Some(body));
        let document = self
            .document(request, deadline, OBSERVATION_BYTES_MAX)
            .await?;
        ObservationEvent::from_json(&document).map_err(|error| ClientError::InvalidAnswer {
            problem: error.to_string(),
        })
    }

    /// Names in a directory, or in the working directory: directories first, with a slash.
    ///
    /// # Errors
    /// Whatever kept the answer from coming. A directory that does not exist is empty.
    pub async fn list_files(&self, path: Option<&Path>) -> Result<Vec<String>, ClientError> {
        let body = match path {
            Some(path) => json!({ "path": text_of(path)? }),
            None => json!({}),
        };
        let request = self.request(Method::POST, "/list_files", Some(body.to_string()));
        let document = self
            .document(request, QUERY_TIMEOUT, DOCUMENT_BYTES_MAX)
            .await?;
        parse(&document)
    }

    fn request(&self, method: Method, target: &str, json: Option<String>) -> Request<RequestBody> {
        let content_type = json.as_ref().map(|_| "application/json".to_owned());
        let body = Full::from(json.unwrap_or_default())
            .map_err(|never| match never {})
            .boxed_unsync();
        self.request_with(method, target, content_type, body)
    }

    fn request_with(
        &self,
        method: Method,
        target: &str,
        content_type: Option<String>,
        body: RequestBody,
    ) -> Request<RequestBody> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        // Targets are written by this module, so that one that cannot be read is not sent on.
        *request.uri_mut() = target.parse().unwrap_or_default();
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.pool.host());
        if let Some(value) = content_type.and_then(|text| text.try_into().ok()) {
            headers.insert(header::CONTENT_TYPE, value);
        }
        if let Some(key) = &self.session_key {
            headers.insert(KEY_HEADER, key.header());
        }
        request
    }

    /// Sends a request and reads its whole answer, all within `deadline`.
    async fn document(
        &self,
        request: Request<RequestBody>,
        deadline: Duration,
        bytes_max: usize,
    ) -> Result<Bytes, ClientError> {
        let exchange = async {
            let (response, lease) = self.pool.send(request, Carrier::Caller).await?;
            read_whole(response, lease, bytes_max).await
        };
        tokio::time::timeout(deadline, exchange)
            .await
            .unwrap_or(Err(ClientError::Timeout { waited: deadline }))
    }
}

/// Reads an answer to its end, gives the connection back and turns refusals into errors.
async fn read_whole(
    response: Response<Incoming>,
    lease: Lease,
    bytes_max: usize,
) -> Result<Bytes, ClientError> {
    let (_, document) = read_whole_response(response, lease, bytes_max).await?;
    Ok(document)
}

/// The same with the head of the answer.
async fn read_whole_response(
    response: Response<Incoming>,
    lease: Lease,
    bytes_max: usize,
) -> Result<(Parts, Bytes), ClientError> {
    let (head, body) = response.into_parts();
    let body = lease
        .wait_for(Limited::new(body, bytes_max).collect())
        .await;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            ClientError::AnswerTooLarge { limit: bytes_max }
        } else {
            ClientError::Disconnected { source: error }
        }
    })?;
    let document = body.to_bytes();
    lease.give_back();
    if head.status.is_success() {
        Ok((head, document))
    } else {
        Err(refused(head.status, &document))
    }
}

fn refused(status: StatusCode, document: &[u8]) -> ClientError {
    let document: Option<Value> = serde_json::from_slice(document).ok();
    let text = |key: &str| Some(document.as_ref()?.get(key)?.as_str()?.to_owned());
    let detail = text("detail")
        .or_else(|| text("status"))
        .unwrap_or_default();
    let code = text("code").unwrap_or_default();
    if let Some(reason) = StartFailure::from_code(&code) {
        return StartProgramError::new(reason, detail).into();
    }
    if let Some(reason) = FileFailure::from_code(&code) {
        let current = document
            .as_ref()
            .and_then(|document| document.get("current"));
        return ClientError::File(FileError {
            reason,
            message: detail,
            current: current.and_then(FileStatus::from_json).map(Box::new),
        });
    }
    ClientError::Refused {
        status: status.as_u16(),
        detail,
    }
}

fn parse<T: serde::de::DeserializeOwned>(document: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(document).map_err(|error| ClientError::InvalidAnswer {
        problem: error.to_string(),
    })
}

fn text_of(path: &Path) -> Result<&str, ClientError> {
    path.to_str().ok_or_else(|| ClientError::InvalidRequest {
        problem: format!("the path `{}` is not UTF-8", path.display()),
    })
}
