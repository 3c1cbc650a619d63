//! One sandbox: its action execution API, and its life by the remote runtime API.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::TryStreamExt as _;
use reqwest::{Body, Client, Method, RequestBuilder, Url, multipart};
use serde_json::json;
use zareba_client::BackOff;
use zareba_protocol::{ActionEvent, ObservationEvent};
use zareba_wire::{
    ArchiveFormat, BoxFuture, ByteStream, Download, TransferError, Upload, UploadTreatment,
    variables::VariableChanges,
};

use super::{
    OpenHandsOptions,
    api::{Api, JsonBody as _, Pod, parse},
    found::Found,
};
use crate::{
    ApiKey,
    http::{DOCUMENT_BYTES_MAX, STALL, accepted, broken, document},
    link::{Link, LinkError},
};

/// Beyond an action's own timeout: its answer still has to be written and sent.
const ACTION_GRACE: Duration = Duration::from_secs(5);
const ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// An observation. A file that is read travels whole, and JSON may double its size.
const OBSERVATION_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How often an action is sent to a server that runs it once however often it is sent.
const TRIES_MAX: usize = 4;
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The way to one sandbox.
pub(super) struct OpenHandsLink {
    api: Arc<Api>,
    runtime_id: String,
    url: Url,
    key: Option<ApiKey>,
    /// The server is one of ours: it runs an action once by its name, and takes tar archives.
    is_ours: bool,
    init_timeout: Duration,
    action_timeout: Duration,
}

impl OpenHandsLink {
    pub(super) fn new(api: Arc<Api>, found: Found, url: Url, options: &OpenHandsOptions) -> Self {
        Self {
            api,
            runtime_id: found.runtime_id,
            url,
            key: found.session_key,
            is_ours: found.is_ours,
            init_timeout: options.init_timeout,
            action_timeout: options.action_timeout,
        }
    }

    fn request(&self, client: &Client, method: Method, path: &str) -> RequestBuilder {
        // Paths are written by this module; one that cannot be joined leaves the base.
        let url = self.url.join(path).unwrap_or_else(|_| self.url.clone());
        let request = client.request(method, url);
        match &self.key {
            Some(key) => request.header("x-session-api-key", key.header()),
            None => request,
        }
    }

    async fn run(&self, mut action: ActionEvent) -> Result<ObservationEvent, LinkError> {
        if action.once.is_none() {
            action.once = Some(format!("remote-{:032x}", rand::random::<u128>()));
        }
        let timeout = action.hard_timeout().unwrap_or(self.action_timeout);
        let deadline = timeout.saturating_add(ACTION_GRACE);
        let body = format!("{{\"action\":{}}}", action.to_json());
        let send = || {
            self.request(&self.api.http.requests, Method::POST, "execute_action")
                .header("content-type", "application/json")
                .body(body.clone())
        };
        let mut back_off = BackOff::new(FIRST_WAIT, LONGEST_WAIT);
        let (mut tries, mut woken) = (1, false);
        loop {
            let error = match document(send(), deadline, OBSERVATION_BYTES_MAX).await {
                Ok(document) => return observation(&document),
                Err(error) => error,
            };
            match error {
                // It sleeps, and has not seen the action.
                LinkError::Refused { status: 503, .. } if !woken => {
                    woken = true;
                    self.wake().await?;
                }
                LinkError::Unreachable { .. }
                    if tries < TRIES_MAX && (self.is_ours || error.is_harmless()) =>
                {
                    tracing::debug!(%error, tries, "an action is asked for again");
                    tries += 1;
                    back_off.wait().await;
                }
                error => return Err(error),
            }
        }
    }

    async fn wake(&self) -> Result<(), LinkError> {
        self.api.resume(&self.runtime_id).await?;
        self.wait().await
    }

    /// The API has no way to be told, so that it is asked again and again.
    async fn wait(&self) -> Result<(), LinkError> {
        let waiting = async {
            let mut back_off = BackOff::new(FIRST_WAIT, LONGEST_WAIT);
            loop {
                match self.api.pod(&self.runtime_id).await? {
                    Pod::Ready if self.is_alive().await => return Ok(()),
                    Pod::Ready | Pod::NotYet => {}
                    Pod::Failed => {
                        return Err(LinkError::Nonsense {
                            problem: "the sandbox failed to start".to_owned(),
                        });
                    }
                }
                back_off.wait().await;
            }
        };
        let waited = self.init_timeout;
        tokio::time::timeout(waited, waiting)
            .await
            .unwrap_or(Err(LinkError::Timeout { waited }))
    }

    async fn is_alive(&self) -> bool {
        let request = self.request(&self.api.http.requests, Method::GET, "alive");
        document(request, ALIVE_TIMEOUT, DOCUMENT_BYTES_MAX)
            .await
            .is_ok()
    }

    /// Servers of OpenHands have no such request.
    async fn set(&self, changes: VariableChanges) -> Result<(), LinkError> {
        if !self.is_ours {
            return Err(LinkError::Unsupported);
        }
        let request = self
            .request(&self.api.http.requests, Method::POST, "variables")
            .json_body(&changes.to_json());
        let answered = document(request, QUERY_TIMEOUT, DOCUMENT_BYTES_MAX).await;
        match answered {
            Err(LinkError::Refused {
                status: 404 | 501, ..
            }) => Err(LinkError::Unsupported),
            answered => answered.map(drop),
        }
    }

    async fn names(&self, path: Option<String>) -> Result<Vec<String>, LinkError> {
        let body = match path {
            Some(path) => json!({ "path": path }),
            None => json!({}),
        };
        let request = self
            .request(&self.api.http.requests, Method::POST, "list_files")
            .json_body(&body);
        parse(&document(request, QUERY_TIMEOUT, DOCUMENT_BYTES_MAX).await?)
    }

    async fn send(&self, upload: Upload, content: ByteStream) -> Result<(), LinkError> {
        let destination = text_of(&upload.destination)?;
        let recursive = match upload.treatment {
            UploadTreatment::Store => "false",
            UploadTreatment::Unpack => "true",
        };
        let progress = Progress::default();
        let failure = Arc::default();
        let watched = Watched {
            content,
            progress: progress.clone(),
            failure: Arc::clone(&failure),
        };
        let part = multipart::Part::stream(Body::wrap_stream(watched));
        let form = multipart::Form::new().part("file", part.file_name(upload.file_name));
        let request = self
            .request(&self.api.http.requests, Method::POST, "upload_file")
            .query(&[("destination", destination), ("recursive", recursive)])
            .multipart(form);
        let exchange = async { accepted(request.send().await.map_err(broken)?).await };
        let sent = tokio::select! {
            sent = exchange => sent.map(drop),
            () = progress.stalled() => Err(LinkError::Timeout { waited: STALL }),
        };
        // The request only knows that it broke; the reason is on our side.
        let failure: Option<io::Error> = failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match failure {
            Some(source) => Err(LinkError::Transfer(TransferError::Io {
                message: "the upload broke off".to_owned(),
                source,
            })),
            None => sent,
        }
    }

    async fn fetch(&self, download: Download) -> Result<ByteStream, LinkError> {
        let path = text_of(&download.path)?;
        let mut request = self
            .request(&self.api.http.transfers, Method::GET, "download_files")
            .query(&[("path", path)]);
        if download.format == ArchiveFormat::Tar {
            request = request.query(&[("format", "tar")]);
        }
        let response = accepted(request.send().await.map_err(broken)?).await?;
        Ok(Box::pin(response.bytes_stream().map_err(io::Error::other)))
    }
}

impl Link for OpenHandsLink {
    fn execute(&self, action: ActionEvent) -> BoxFuture<'_, Result<ObservationEvent, LinkError>> {
        Box::pin(self.run(action))
    }

    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, LinkError>> {
        Box::pin(self.names(path))
    }

    fn set_variables(&self, changes: VariableChanges) -> BoxFuture<'_, Result<(), LinkError>> {
        Box::pin(self.set(changes))
    }

    fn upload(&self, upload: Upload, content: ByteStream) -> BoxFuture<'_, Result<(), LinkError>> {
        Box::pin(self.send(upload, content))
    }

    fn download(&self, download: Download) -> BoxFuture<'_, Result<ByteStream, LinkError>> {
        Box::pin(self.fetch(download))
    }

    fn archives(&self) -> ArchiveFormat {
        if self.is_ours {
            ArchiveFormat::Tar
        } else {
            ArchiveFormat::Zip
        }
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), LinkError>> {
        Box::pin(self.wait())
    }

    fn pause(&self) -> BoxFuture<'_, Result<(), LinkError>> {
        Box::pin(self.api.pause(&self.runtime_id))
    }

    fn resume(&self) -> BoxFuture<'_, Result<(), LinkError>> {
        Box::pin(self.wake())
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), LinkError>> {
        Box::pin(self.api.stop(&self.runtime_id))
    }
}

/// When something was last passed on.
#[derive(Clone)]
struct Progress(Arc<Mutex<Instant>>);

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Progress {
    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Ready once the last progress is too long ago.
    async fn stalled(&self) {
        loop {
            let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let deadline = last + STALL;
            if deadline <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(deadline.into()).await;
        }
    }
}

/// Content on its way out: notes its progress, and keeps the error that ended it.
struct Watched {
    content: ByteStream,
    progress: Progress,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Stream for Watched {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let polled = this.content.as_mut().poll_next(context);
        match &polled {
            Poll::Ready(Some(Err(_))) => {}
            Poll::Ready(_) => this.progress.note(),
            Poll::Pending => {}
        }
        polled.map_err(|error| {
            let kind = error.kind();
            *this.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            kind.into()
        })
    }
}

fn observation(document: &[u8]) -> Result<ObservationEvent, LinkError> {
    ObservationEvent::from_json(document).map_err(|error| LinkError::Nonsense {
        problem: error.to_string(),
    })
}

fn text_of(path: &std::path::Path) -> Result<&str, LinkError> {
    path.to_str().ok_or_else(|| LinkError::Invalid {
        problem: format!("the path `{}` is not UTF-8", path.display()),
    })
}
