//! HTTP to servers elsewhere, with a bound on everything that comes back.

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, stream::BoxStream};
use http::{HeaderName, HeaderValue, StatusCode, header};
use reqwest::{Client, RequestBuilder, Response, redirect};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Error as SseError, Sse, SseStream};

use super::{
    RemoteKey,
    connection::{MESSAGE_BYTES_MAX, is_readable, unreadable},
};

/// How long a host may take to answer the telephone.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const SESSION_KEY: &str = "x-session-api-key";
const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

type Failed = StreamableHttpError<reqwest::Error>;

/// A client for servers that may send anything. Addresses are the operator's choice, so nobody is
/// sent on to another one.
#[derive(Clone, Debug)]
pub(super) struct BoundedClient(Client);

impl BoundedClient {
    pub(super) fn new() -> Result<Self, reqwest::Error> {
        // Whoever comes first sets it for the whole process; a second one changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder().connect_timeout(CONNECT_PATIENCE);
        let client = builder.redirect(redirect::Policy::none()).build()?;
        Ok(Self(client))
    }

    pub(super) fn get(&self, url: &str) -> RequestBuilder {
        self.0.get(url)
    }

    pub(super) fn post(&self, url: reqwest::Url) -> RequestBuilder {
        self.0.post(url)
    }
}

/// A key in the header where our own and OpenHands' servers look for it, beside the usual one.
pub(super) fn key_headers(key: &RemoteKey) -> HashMap<HeaderName, HeaderValue> {
    let value = HeaderValue::from_str(key.expose()).ok();
    let value = value.map(|mut value| {
        value.set_sensitive(true);
        (HeaderName::from_static(SESSION_KEY), value)
    });
    value.into_iter().collect()
}

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        key: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let has_session = session.is_some();
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        let request = dressed(self.0.post(uri.as_ref()), session, key, headers);
        let request = request.header(header::ACCEPT, format!("{EVENTS}, {JSON}"));
        let request = request.header(header::CONTENT_TYPE, JSON);
        let response = request.body(serde_json::to_vec(&message)?).send().await;
        let response = response.map_err(client_failed)?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            StatusCode::NOT_FOUND if has_session => return Err(Failed::SessionExpired),
            status if !status.is_success() => return refused(response).await,
            _ if !is_request => return Ok(StreamableHttpPostResponse::Accepted),
            _ => {}
        }
        let session = response.headers().get(SESSION);
        let session = session.and_then(|name| Some(name.to_str().ok()?.to_owned()));
        match content_type(&response).as_deref() {
            Some(kind) if kind.starts_with(EVENTS) => {
                let events = events(response);
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            Some(kind) if kind.starts_with(JSON) => {
                let body = read(response).await?;
                let message = serde_json::from_slice(&body)?;
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            other => Err(Failed::UnexpectedContentType(other.map(str::to_owned))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        key: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let request = dressed(self.0.delete(uri.as_ref()), Some(session), key, headers);
        let response = request.send().await.map_err(client_failed)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(Failed::ServerDoesNotSupportDeleteSession),
            status if status.is_success() => Ok(()),
            status => Err(unexpected(status, &[])),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        key: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let mut request = dressed(self.0.get(uri.as_ref()), session, key, headers);
        request = request.header(header::ACCEPT, EVENTS);
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT, last_event);
        }
        let response = request.send().await.map_err(client_failed)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(Failed::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(unexpected(status, &[])),
            _ => match content_type(&response) {
                Some(kind) if kind.starts_with(EVENTS) => Ok(events(response)),
                other => Err(Failed::UnexpectedContentType(other)),
            },
        }
    }
}

fn dressed(
    request: RequestBuilder,
    session: Option<Arc<str>>,
    key: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> RequestBuilder {
    let mut request = request;
    if let Some(session) = session {
        request = request.header(SESSION, session.as_ref());
    }
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    headers.into_iter().fold(request, |request, (name, value)| {
        request.header(name, value)
    })
}

fn content_type(response: &Response) -> Option<String> {
    let kind = response.headers().get(header::CONTENT_TYPE)?;
    Some(kind.to_str().ok()?.to_owned())
}

/// A refusal may hold an error of the protocol, which says more than its status.
async fn refused(response: Response) -> Result<StreamableHttpPostResponse, Failed> {
    let status = response.status();
    let is_json = content_type(&response).is_some_and(|kind| kind.starts_with(JSON));
    let is_about_keys = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let body = read(response).await?;
    if is_json
        && !is_about_keys
        && let Ok(error @ ServerJsonRpcMessage::Error(_)) = serde_json::from_slice(&body)
    {
        return Ok(StreamableHttpPostResponse::Json(error, None));
    }
    Err(unexpected(status, &body))
}

fn unexpected(status: StatusCode, body: &[u8]) -> Failed {
    let text = String::from_utf8_lossy(body.get(..200).unwrap_or(body));
    let text = format!("HTTP {status} {}", text.trim());
    Failed::UnexpectedServerResponse(Cow::Owned(text.trim().to_owned()))
}

/// Without the address, which may hold a key.
fn client_failed(error: reqwest::Error) -> Failed {
    Failed::Client(error.without_url())
}

/// What comes of a body, with errors that do not tell the address either.
pub(super) fn pieces(
    response: Response,
) -> impl Stream<Item = Result<Bytes, reqwest::Error>> + Send + 'static {
    let pieces = response.bytes_stream();
    pieces.map(|piece| piece.map_err(reqwest::Error::without_url))
}

/// A whole body, unless it is larger than any message may be.
async fn read(response: Response) -> Result<Bytes, Failed> {
    let mut whole = BytesMut::new();
    let mut pieces = pieces(response);
    while let Some(piece) = pieces.next().await {
        whole.extend_from_slice(&piece.map_err(client_failed)?);
        if whole.len() > MESSAGE_BYTES_MAX {
            return Err(Failed::Io(too_large()));
        }
    }
    match is_readable(&whole) {
        true => Ok(whole.freeze()),
        false => Err(Failed::Io(std::io::Error::other(unreadable()))),
    }
}

fn events(response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let events = SseStream::from_bytes_stream(bounded(pieces(response)));
    let checked = events.map(|event| {
        let event = event?;
        let data = event.data.as_deref().unwrap_or_default();
        match is_readable(data.as_bytes()) {
            true => Ok(event),
            false => Err(SseError::Body(unreadable().into())),
        }
    });
    checked.boxed()
}

/// The bytes of a stream of events, which end with an error where one event is too large.
pub(super) fn bounded<E: std::error::Error + Send + Sync + 'static>(
    bytes: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    let mut gauge = Gauge::default();
    let checked = bytes.map(move |piece| {
        let piece = piece.map_err(std::io::Error::other)?;
        match gauge.admits(&piece) {
            true => Ok(piece),
            false => Err(too_large()),
        }
    });
    // Nothing follows a failure.
    let mut has_failed = false;
    checked.take_while(move |piece| {
        let goes_on = !has_failed;
        has_failed = piece.is_err();
        std::future::ready(goes_on)
    })
}

/// How much came since the last blank line, where an event ends.
#[derive(Debug, Default)]
struct Gauge {
    bytes: usize,
    is_at_line_start: bool,
}

impl Gauge {
    fn admits(&mut self, piece: &[u8]) -> bool {
        for byte in piece {
            self.bytes += 1;
            match byte {
                b'\n' if self.is_at_line_start => self.bytes = 0,
                b'\n' => self.is_at_line_start = true,
                b'\r' => {}
                _ => self.is_at_line_start = false,
            }
            if self.bytes > MESSAGE_BYTES_MAX {
                return false;
            }
        }
        true
    }
}

fn too_large() -> std::io::Error {
    let message = format!("the server sent a message of more than {MESSAGE_BYTES_MAX} bytes");
    std::io::Error::other(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_may_be_many_but_none_too_large() {
        let event = format!("data: {}\r\n\r\n", "x".repeat(1024 * 1024));
        let mut gauge = Gauge::default();
        assert!((0..20).all(|_| gauge.admits(event.as_bytes())));
        let line = format!("data: {}\n", "x".repeat(1024 * 1024));
        assert!(!(0..9).all(|_| gauge.admits(line.as_bytes())));
    }
}
