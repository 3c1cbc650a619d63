//! Asking: one request by its operation, repeated only when that is harmless.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, RequestBuilder, Response, Url, header::HeaderMap};
use serde::{Serialize, de::DeserializeOwned};
use zareba_api::{Operation, operation};

use crate::{BackOff, Client, ClientError, transport::read_whole};

/// How long a request may take that waits for nothing.
pub(crate) const SHORT: Duration = Duration::from_secs(40);
/// A document that is no observation.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How often a request is sent at most.
pub(crate) const TRIES_MAX: usize = 5;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// When a request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Whenever it may succeed later: it looks, carries a name, or is the same when done twice.
    Always,
    /// Only when it has not arrived.
    Unsent,
}

/// One request.
pub(crate) struct Ask<'a> {
    operation: &'a Operation,
    url: Url,
    headers: HeaderMap,
    body: Option<Bytes>,
    repeat: Repeat,
    pub(crate) deadline: Duration,
    pub(crate) bytes_max: usize,
}

impl<'a> Ask<'a> {
    /// For an operation, with the parts of its path in order.
    pub(crate) fn new(
        client: &Client,
        operation: &'a Operation,
        parts: &[&str],
    ) -> Result<Self, ClientError> {
        let looks = operation.method == operation::Method::Get;
        Ok(Self {
            operation,
            url: client.url(operation.path, parts)?,
            headers: HeaderMap::new(),
            body: None,
            repeat: if looks {
                Repeat::Always
            } else {
                Repeat::Unsent
            },
            deadline: SHORT,
            bytes_max: DOCUMENT_BYTES_MAX,
        })
    }

    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.url.query_pairs_mut().append_pair(name, value);
        self
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| ClientError::Invalid {
            problem: error.to_string(),
        })?;
        self.body = Some(body.into());
        Ok(self)
    }

    pub(crate) fn text(mut self, json: String) -> Self {
        self.body = Some(json.into());
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Result<Self, ClientError> {
        let value = value.parse().map_err(|_| ClientError::Invalid {
            problem: format!("`{name}` cannot be sent as a header"),
        })?;
        self.headers.insert(name, value);
        Ok(self)
    }

    pub(crate) fn repeated(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }

    pub(crate) fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    pub(crate) fn at_most(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    fn may_repeat(&self, error: &ClientError) -> bool {
        let harmless = self.repeat == Repeat::Always || !error.may_have_happened();
        // A deadline was ours to set; another wait is for the caller to decide.
        let waited = matches!(error, ClientError::Timeout { .. });
        harmless && !waited && error.class().is_retryable() && !is_final(error)
    }
}

/// What the server says will not change by itself.
fn is_final(error: &ClientError) -> bool {
    use zareba_api::ErrorCode::{Conflict, Exists, QuotaExceeded};
    matches!(error.code(), Some(Conflict | Exists | QuotaExceeded))
}

/// An answer that was read whole.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) document: Bytes,
}

impl Answer {
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        parse(&self.document)
    }
}

impl Client {
    /// Sends a request until it is answered, as often as that is harmless.
    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Result<Answer, ClientError> {
        let mut back_off = BackOff::new(FIRST_WAIT, LONGEST_WAIT);
        let mut tries = 1;
        loop {
            match self.ask_once(&ask).await {
                Err(error) if tries < TRIES_MAX && ask.may_repeat(&error) => {
                    tracing::debug!(%error, tries, operation = ask.operation.id, "asking again");
                    tries += 1;
                    back_off.wait().await;
                }
                result => return result,
            }
        }
    }

    /// The same, for an answer that is a document of one type.
    pub(crate) async fn ask_for<T: DeserializeOwned>(
        &self,
        ask: Ask<'_>,
    ) -> Result<T, ClientError> {
        self.ask(ask).await?.parse()
    }

    async fn ask_once(&self, ask: &Ask<'_>) -> Result<Answer, ClientError> {
        let exchange = async {
            let request = self.request(ask);
            let response = self.send(request).await?;
            let status = response.status().as_u16();
            let document = read_whole(response, ask.bytes_max).await;
            let document = document.map_err(|error| ClientError::unread(self.place(), error))?;
            Ok(Answer { status, document })
        };
        tokio::time::timeout(ask.deadline, exchange)
            .await
            .unwrap_or(Err(ClientError::Timeout {
                waited: ask.deadline,
            }))
    }

    fn request(&self, ask: &Ask<'_>) -> RequestBuilder {
        let method = match ask.operation.method {
            operation::Method::Get => Method::GET,
            operation::Method::Post => Method::POST,
            operation::Method::Put => Method::PUT,
            operation::Method::Patch => Method::PATCH,
            operation::Method::Delete => Method::DELETE,
        };
        let request = self
            .keyed(method, ask.url.clone())
            .headers(ask.headers.clone());
        match &ask.body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(body.clone()),
            None => request,
        }
    }

    /// Sends a request and turns an answer that is no success into an error.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let broken = |error| ClientError::broken(self.place(), error);
        let response = request.send().await.map_err(broken)?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refusal(response).await)
    }

    /// What an answer that is no success means.
    pub(crate) async fn refusal(&self, response: Response) -> ClientError {
        let status = response.status().as_u16();
        let document = read_whole(response, DOCUMENT_BYTES_MAX).await;
        ClientError::refused(status, &document.unwrap_or_default())
    }
}

pub(crate) fn parse<T: DeserializeOwned>(document: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(document).map_err(|error| ClientError::Nonsense {
        problem: error.to_string(),
    })
}
