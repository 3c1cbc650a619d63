//! Requests to another server: limits on what comes back, no redirects, keys to one origin.

use std::{fmt, time::Duration};

use bytes::{Bytes, BytesMut};
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url, header::HeaderValue, redirect::Policy,
};
use serde_json::Value;
use zareba_protocol::ErrorClass;

use crate::link::{LinkError, Sent};

/// How long a transfer may make no progress.
pub(crate) const STALL: Duration = Duration::from_secs(300);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A document that is no observation.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What is shown of a refusal.
const DETAIL_CHARS_MAX: usize = 2000;

/// A secret that opens another server. It is sent and never shown.
#[derive(Clone)]
pub struct ApiKey(HeaderValue);

impl ApiKey {
    /// Takes a key over; `None` when it is empty or no header could carry it.
    pub fn new(key: &str) -> Option<Self> {
        let mut header = HeaderValue::from_str(key).ok()?;
        header.set_sensitive(true);
        (!key.is_empty()).then_some(Self(header))
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(..)")
    }
}

/// Why another server cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[error("`{address}` cannot be the address of a server: {problem}")]
pub struct InvalidAddress {
    /// What was given.
    pub address: String,
    /// What is wrong with it, or with our means to reach it.
    pub problem: String,
}

/// The means to send requests.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    /// For requests that say themselves how long they may take.
    pub(crate) requests: Client,
    /// For bodies of any size, which may not stall.
    pub(crate) transfers: Client,
}

impl Http {
    pub(crate) fn new() -> Result<Self, reqwest::Error> {
        provide_cryptography();
        Ok(Self {
            requests: builder().build()?,
            transfers: builder().read_timeout(STALL).build()?,
        })
    }
}

/// It follows nothing, unpacks nothing and asks the environment for nothing by itself.
fn builder() -> reqwest::ClientBuilder {
    Client::builder()
        .user_agent(concat!("zareba/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
}

/// The program chooses its cryptography before anything else; this is for those without it.
fn provide_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only when somebody else was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// An address that keys may be sent to: with TLS, or on this machine, or where the operator says
/// so by writing `http`.
pub(crate) fn address(text: &str) -> Result<Url, InvalidAddress> {
    let wrong = |problem: &str| InvalidAddress {
        address: text.to_owned(),
        problem: problem.to_owned(),
    };
    let mut url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must begin with `https://` or `http://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it must not contain a name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it must not contain `?` or `#`"));
    }
    // A base without a slash would lose its last part.
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

/// Sends a request and reads its whole answer within `deadline`.
pub(crate) async fn document(
    request: RequestBuilder,
    deadline: Duration,
    bytes_max: usize,
) -> Result<Bytes, LinkError> {
    let exchange = async {
        let response = request.send().await.map_err(broken)?;
        let response = accepted(response).await?;
        read(response, bytes_max).await
    };
    tokio::time::timeout(deadline, exchange)
        .await
        .unwrap_or(Err(LinkError::Timeout { waited: deadline }))
}

/// Turns an answer that is no success into an error.
pub(crate) async fn accepted(response: Response) -> Result<Response, LinkError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let document = read(response, DOCUMENT_BYTES_MAX).await.unwrap_or_default();
    Err(refused(status, &document))
}

async fn read(mut response: Response, bytes_max: usize) -> Result<Bytes, LinkError> {
    let mut document = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        if document.len() + piece.len() > bytes_max {
            return Err(LinkError::Nonsense {
                problem: format!("it is larger than the limit of {bytes_max} bytes"),
            });
        }
        document.extend_from_slice(&piece);
    }
    Ok(document.freeze())
}

pub(crate) fn broken(error: reqwest::Error) -> LinkError {
    // A path may say more than the log of another server should know.
    let place = error.url().map(|url| url.origin().ascii_serialization());
    let sent = if error.is_connect() {
        Sent::No
    } else {
        Sent::Perhaps
    };
    LinkError::Unreachable {
        place: place.unwrap_or_default(),
        sent,
        source: Box::new(error.without_url()),
    }
}

fn refused(status: StatusCode, document: &[u8]) -> LinkError {
    let document: Option<Value> = serde_json::from_slice(document).ok();
    let detail = document
        .as_ref()
        .and_then(|document| document.get("detail"));
    let detail = match detail {
        Some(Value::String(text)) => text.chars().take(DETAIL_CHARS_MAX).collect(),
        Some(other) => other.to_string().chars().take(DETAIL_CHARS_MAX).collect(),
        None => String::new(),
    };
    let class = class_of(status_behind(status.as_u16(), &detail));
    LinkError::Refused {
        status: status.as_u16(),
        class,
        detail,
    }
}

/// The contract puts the status that is meant before the text of a 500: `404: File not found`.
fn status_behind(status: u16, detail: &str) -> u16 {
    let meant = detail
        .split_once(": ")
        .and_then(|(code, _)| code.parse().ok());
    match (status, meant) {
        (500, Some(meant)) => meant,
        _ => status,
    }
}

fn class_of(status: u16) -> ErrorClass {
    match status {
        401 | 403 | 421 => ErrorClass::Permission,
        404 => ErrorClass::NotFound,
        405 | 501 => ErrorClass::Unsupported,
        408 => ErrorClass::Timeout,
        409 | 429 | 503 => ErrorClass::Busy,
        // The API's word for a sandbox that does not answer.
        502 | 504 => ErrorClass::Disconnected,
        300..=499 => ErrorClass::Invalid,
        _ => ErrorClass::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_web_addresses_without_secrets() {
        for (text, expected) in [
            ("https://a.example", Some("https://a.example/")),
            (
                "http://127.0.0.1:7070/api",
                Some("http://127.0.0.1:7070/api/"),
            ),
            ("ftp://a.example", None),
            ("https://user:password@a.example", None),
            ("https://a.example/?key=1", None),
            ("a.example", None),
            ("", None),
        ] {
            let found = address(text).ok().map(|url| url.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_key_never_shows() {
        assert_eq!(
            format!("{:?}", ApiKey::new("swordfish").unwrap()),
            "ApiKey(..)"
        );
        assert!(ApiKey::new("").is_none());
        assert!(ApiKey::new("a\nb").is_none());
    }

    #[test]
    fn refusals_have_the_class_that_is_meant() {
        for (status, detail, class) in [
            (500, "404: File not found", ErrorClass::NotFound),
            (500, "Internal server error: x", ErrorClass::Internal),
            (502, "", ErrorClass::Disconnected),
            (503, "", ErrorClass::Busy),
            (302, "", ErrorClass::Invalid),
        ] {
            let document = serde_json::json!({ "detail": detail }).to_string();
            let status = StatusCode::from_u16(status).unwrap();
            let error = refused(status, document.as_bytes());
            assert_eq!(error.class(), class, "{status} {detail}");
        }
    }
}
