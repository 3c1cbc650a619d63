//! Servers as they were before streamable HTTP: a stream of events that first says where messages
//! are to be posted.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use eventsource_stream::Eventsource as _;
use futures_util::{StreamExt as _, stream::BoxStream};
use http::header;
use reqwest::Url;
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::time::timeout;

use super::{
    RemoteKey,
    connection::{Ending, is_readable, unreadable},
    http::{BoundedClient, EVENTS, bounded, key_headers, pieces},
};

/// How long a server may take to say where to post.
const ENDPOINT_PATIENCE: Duration = Duration::from_secs(10);

/// How long a message may take to be posted; its answer comes on the stream.
const POST_PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no such connection, or why it could not take a message.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventsError {
    #[error("the server cannot be reached")]
    Request(#[source] reqwest::Error),
    #[error("the server answers with {status}")]
    Status { status: http::StatusCode },
    #[error("the server did not say within {ENDPOINT_PATIENCE:?} where messages are to be posted")]
    NoEndpoint,
    #[error("the server wants messages posted to another host, `{endpoint}`")]
    OtherHost { endpoint: String },
    #[error("the message cannot be written")]
    Message(#[from] serde_json::Error),
    #[error("the server did not take a message within {POST_PATIENCE:?}")]
    Late,
}

impl From<reqwest::Error> for EventsError {
    /// Without the address, which may hold a key.
    fn from(error: reqwest::Error) -> Self {
        Self::Request(error.without_url())
    }
}

/// Such a connection.
pub(super) struct EventsTransport {
    post: Arc<Post>,
    events: BoxStream<'static, Result<eventsource_stream::Event, String>>,
    ending: Ending,
}

/// Where messages are posted.
struct Post {
    client: BoundedClient,
    url: Url,
    key: Option<RemoteKey>,
}

impl EventsTransport {
    /// Opens the stream and waits for the address that messages are posted to, which must be at
    /// the same host: the key goes there.
    pub(super) async fn open(
        url: &str,
        key: Option<&RemoteKey>,
        ending: Ending,
    ) -> Result<Self, EventsError> {
        let client = BoundedClient::new()?;
        let request = with_key(client.get(url), key).header(header::ACCEPT, EVENTS);
        let response = request.send().await?;
        let status = response.status();
        if !status.is_success() {
            return Err(EventsError::Status { status });
        }
        let base = response.url().clone();
        let events = bounded(pieces(response)).eventsource();
        let mut events = events
            .map(|event| event.map_err(|error| error.to_string()))
            .boxed();
        let first = timeout(ENDPOINT_PATIENCE, endpoint(&mut events)).await;
        let endpoint = first.ok().flatten().ok_or(EventsError::NoEndpoint)?;
        let url = base.join(&endpoint).ok();
        let url = url.filter(|url| url.origin() == base.origin());
        let url = url.ok_or(EventsError::OtherHost { endpoint })?;
        let post = Arc::new(Post {
            client,
            url,
            key: key.cloned(),
        });
        Ok(Self {
            post,
            events,
            ending,
        })
    }
}

async fn endpoint(
    events: &mut BoxStream<'static, Result<eventsource_stream::Event, String>>,
) -> Option<String> {
    while let Some(Ok(event)) = events.next().await {
        if event.event == "endpoint" {
            return Some(event.data.chars().take(2048).collect());
        }
    }
    None
}

fn with_key(request: reqwest::RequestBuilder, key: Option<&RemoteKey>) -> reqwest::RequestBuilder {
    let Some(key) = key else { return request };
    let request = request.bearer_auth(key.expose());
    key_headers(key)
        .into_iter()
        .fold(request, |request, (name, value)| {
            request.header(name, value)
        })
}

impl Transport<RoleClient> for EventsTransport {
    type Error = EventsError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), EventsError>> + Send + 'static {
        let post = Arc::clone(&self.post);
        async move {
            let body = Bytes::from(serde_json::to_vec(&message)?);
            let request = with_key(post.client.post(post.url.clone()), post.key.as_ref());
            let request = request.header(header::CONTENT_TYPE, "application/json");
            let sent = timeout(POST_PATIENCE, request.body(body).send()).await;
            let status = sent.map_err(|_| EventsError::Late)??.status();
            match status.is_success() {
                true => Ok(()),
                false => Err(EventsError::Status { status }),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.events.next().await {
                Some(Ok(event)) => {
                    if !is_readable(event.data.as_bytes()) {
                        self.ending.set(unreadable());
                        return None;
                    }
                    // What is no message is none of our business, pings above all.
                    if let Ok(message) = serde_json::from_str(&event.data) {
                        return Some(message);
                    }
                }
                Some(Err(error)) => {
                    self.ending.set(error);
                    return None;
                }
                None => {
                    self.ending
                        .set("the server has closed its stream".to_owned());
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), EventsError> {
        Ok(())
    }
}
