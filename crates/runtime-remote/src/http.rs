//! Requests of the OpenHands contract, and what their refusals mean.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use zareba_client::transport::{self, ReadError};
use zareba_protocol::ErrorClass;

use crate::link::{LinkError, Sent};

/// How long a transfer may make no progress.
pub(crate) const STALL: Duration = Duration::from_secs(300);
/// A document that is no observation.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What is shown of a refusal.
const DETAIL_CHARS_MAX: usize = 2000;

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
        Ok(Self {
            requests: transport::builder().build()?,
            transfers: transport::builder().read_timeout(STALL).build()?,
        })
    }
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

async fn read(response: Response, bytes_max: usize) -> Result<Bytes, LinkError> {
    let read = transport::read_whole(response, bytes_max).await;
    read.map_err(|error| match error {
        ReadError::Broken(error) => broken(error),
        ReadError::TooLarge { .. } => LinkError::Nonsense {
            problem: error.to_string(),
        },
    })
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
