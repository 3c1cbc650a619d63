//! How traces travel: the program's own HTTP client, for an exporter that knows no runtime.

use std::{
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use reqwest::{Client, redirect::Policy};
use tokio::runtime::Handle;

use crate::error::chain;

/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What it may answer: the protocol knows of a few words about spans that were not taken.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Sends requests on a runtime, whichever thread asks.
#[derive(Debug)]
pub(super) struct Courier {
    client: Client,
    runtime: Handle,
    /// The last request failed, which was said.
    is_failing: AtomicBool,
}

impl Courier {
    pub(super) fn new(runtime: Handle) -> reqwest::Result<Self> {
        provide_cryptography();
        let client = Client::builder()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .timeout(PATIENCE)
            .build()?;
        Ok(Self {
            client,
            runtime,
            is_failing: AtomicBool::new(false),
        })
    }

    /// Says once that traces are lost, and once that they are not any more.
    fn note(&self, failure: Option<String>) {
        let was_failing = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(reason) if !was_failing => {
                tracing::warn!(reason, "traces cannot be sent and are dropped");
            }
            None if was_failing => tracing::info!("traces can be sent again"),
            _ => {}
        }
    }
}

type Sent<'sent> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sent>>;

impl HttpClient for Courier {
    fn send_bytes<'us, 'sent>(&'us self, request: Request<Bytes>) -> Sent<'sent>
    where
        'us: 'sent,
        Self: 'sent,
    {
        let client = self.client.clone();
        let sent = self.runtime.spawn(deliver(client, request));
        Box::pin(async move {
            // An error of the task means that the program ends.
            let sent = sent.await.map_err(HttpError::from).flatten();
            self.note(match &sent {
                Ok(answer) if answer.status().is_success() => None,
                Ok(answer) => Some(format!("the collector answers {}", answer.status())),
                Err(error) => Some(chain(error.as_ref())),
            });
            sent
        })
    }
}

async fn deliver(client: Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let mut answer = client.execute(request.try_into()?).await?;
    let mut body = BytesMut::new();
    while let Some(piece) = answer.chunk().await? {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err("the collector answers more than is read".into());
        }
        body.extend_from_slice(&piece);
    }
    let mut response = Response::new(body.freeze());
    *response.status_mut() = answer.status();
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    Ok(response)
}

/// The program chooses its cryptography before anything else; this is for those without it.
fn provide_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only when somebody else was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
