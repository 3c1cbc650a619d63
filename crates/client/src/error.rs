//! Why a request failed, in the classes that every surface tells apart.

use std::{error::Error as StdError, io, time::Duration};

use serde_json::Value;
use zareba_api::{ErrorBody, ErrorCode};
use zareba_protocol::ErrorClass;

use crate::transport::ReadError;

/// What is shown of an answer that is no error body of ours.
const SHOWN_CHARS_MAX: usize = 500;

/// Why a server gave no answer, or not the one that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server cannot be reached, or the connection broke.
    #[error("the server at `{place}` cannot be reached")]
    Unreachable {
        /// Where it should be.
        place: String,
        /// Whether the request may have arrived all the same.
        sent: Sent,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There was no complete answer in time.
    #[error("the server did not answer within {waited:?}")]
    Timeout {
        /// How long it was waited for.
        waited: Duration,
    },
    /// The server said no.
    #[error("the server refused with status {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its code, when this client knows it.
        code: Option<ErrorCode>,
        /// A sentence for people.
        message: String,
        /// What to do about it, when that is known.
        hint: Option<String>,
        /// The name of the request in the server's log.
        request_id: Option<String>,
    },
    /// The answer is not what the API says.
    #[error("the server's answer makes no sense: {problem}")]
    Nonsense {
        /// What is wrong with it.
        problem: String,
    },
    /// The request cannot be sent as it is.
    #[error("the request cannot be sent: {problem}")]
    Invalid {
        /// What is wrong with it.
        problem: String,
    },
}

/// Whether a request that got no answer was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Not a byte of it.
    No,
    /// It may have arrived.
    Perhaps,
}

impl ClientError {
    /// What kind of failure it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Unreachable { .. } => ErrorClass::Disconnected,
            Self::Timeout { .. } => ErrorClass::Timeout,
            Self::Refused {
                code: Some(code), ..
            } => code.class(),
            Self::Refused { status, .. } => class_of(*status),
            Self::Nonsense { .. } => ErrorClass::Internal,
            Self::Invalid { .. } => ErrorClass::Invalid,
        }
    }

    /// Whether the server may have acted although this error came back.
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::Unreachable { sent, .. } => *sent == Sent::Perhaps,
            Self::Timeout { .. } | Self::Nonsense { .. } => true,
            Self::Refused { status, .. } => *status >= 500 && *status != 503 && *status != 507,
            Self::Invalid { .. } => false,
        }
    }

    /// The server's code for it.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. } => *code,
            _ => None,
        }
    }

    pub(crate) fn refused(status: u16, document: &[u8]) -> Self {
        if let Ok(ErrorBody { error }) = serde_json::from_slice(document) {
            return Self::Refused {
                status,
                code: Some(error.code),
                message: error.message,
                hint: error.hint,
                request_id: Some(error.request_id),
            };
        }
        // A code from a later version, or a proxy in between.
        let document: Option<Value> = serde_json::from_slice(document).ok();
        let error = document.as_ref().and_then(|document| document.get("error"));
        let text = |key: &str| {
            let text = error?.get(key)?.as_str()?;
            Some(text.chars().take(SHOWN_CHARS_MAX).collect::<String>())
        };
        Self::Refused {
            status,
            code: None,
            message: text("message").unwrap_or_default(),
            hint: text("hint"),
            request_id: text("request_id"),
        }
    }

    pub(crate) fn broken(place: &str, error: reqwest::Error) -> Self {
        let sent = if error.is_connect() {
            Sent::No
        } else {
            Sent::Perhaps
        };
        Self::Unreachable {
            place: place.to_owned(),
            sent,
            source: cause_of(&error),
        }
    }

    pub(crate) fn unread(place: &str, error: ReadError) -> Self {
        match error {
            ReadError::Broken(error) => Self::broken(place, error),
            ReadError::TooLarge { .. } => Self::Nonsense {
                problem: error.to_string(),
            },
        }
    }
}

/// What the system or the other side said. What the HTTP client and its connector say above it
/// names only themselves.
fn cause_of(error: &reqwest::Error) -> Box<dyn StdError + Send + Sync> {
    let error: &(dyn StdError + 'static) = error;
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    let Some(deepest) = causes.last() else {
        return "the connection broke".into();
    };
    if is_plain_http(deepest) {
        return "it answers without TLS; use its address with `http://`".into();
    }
    deepest.to_string().into()
}

/// Whether a server was asked in TLS and answered with something else.
fn is_plain_http(error: &(dyn StdError + 'static)) -> bool {
    // The system's error may hold another one, which may hold that of TLS.
    if let Some(inner) = error.downcast_ref().and_then(io::Error::get_ref) {
        return is_plain_http(inner);
    }
    matches!(
        error.downcast_ref(),
        Some(rustls::Error::InvalidMessage(
            rustls::InvalidMessage::InvalidContentType
        ))
    )
}

fn class_of(status: u16) -> ErrorClass {
    match status {
        401 | 403 | 421 => ErrorClass::Permission,
        404 => ErrorClass::NotFound,
        405 | 501 => ErrorClass::Unsupported,
        408 | 504 => ErrorClass::Timeout,
        409 | 429 | 503 | 507 => ErrorClass::Busy,
        502 => ErrorClass::Disconnected,
        300..=499 => ErrorClass::Invalid,
        _ => ErrorClass::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_class_of_their_code_or_status() {
        let body = br#"{"error":{"code":"unsupported","message":"no","request_id":"r"}}"#;
        let error = ClientError::refused(422, body);
        assert_eq!(error.class(), ErrorClass::Unsupported);
        assert_eq!(error.code(), Some(ErrorCode::Unsupported));
        let later = br#"{"error":{"code":"from_the_future","message":"no","request_id":"r"}}"#;
        let error = ClientError::refused(429, later);
        assert_eq!((error.class(), error.code()), (ErrorClass::Busy, None));
        assert!(error.to_string().ends_with(": no"));
        let proxy = ClientError::refused(502, b"<html>Bad gateway</html>");
        assert_eq!(proxy.class(), ErrorClass::Disconnected);
    }

    #[test]
    fn only_what_was_refused_or_never_sent_is_known_not_to_have_happened() {
        for (status, may) in [
            (400, false),
            (409, false),
            (503, false),
            (500, true),
            (504, true),
        ] {
            let error = ClientError::refused(status, b"");
            assert_eq!(error.may_have_happened(), may, "{status}");
        }
    }
}
