//! Why a request to an executor failed, in the classes that every surface tells apart.

use std::{io, time::Duration};

use zareba_protocol::ErrorClass;

use crate::{Endpoint, files::FileError, program::StartProgramError};

/// Why an executor gave no answer, or not the one that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nothing was sent, because there is nobody to send it to.
    #[error("cannot connect to the executor at `{endpoint}`")]
    Connect {
        /// Where it should be.
        endpoint: Endpoint,
        /// What the system said.
        source: io::Error,
    },
    /// The connection broke with the request on its way or the answer unread.
    #[error("the connection to the executor broke before its answer was complete")]
    Disconnected {
        /// What broke.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There was no complete answer in time.
    #[error("the executor did not answer within {waited:?}")]
    Timeout {
        /// How long it was waited for.
        waited: Duration,
    },
    /// The executor answered with an error.
    #[error("the executor refused with status {}", refusal(*status, detail))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its `detail`, or nothing.
        detail: String,
    },
    /// The program could not be started.
    #[error(transparent)]
    Program(StartProgramError),
    /// The work on a file could not be done.
    #[error(transparent)]
    File(FileError),
    /// The answer is not what the contract says.
    #[error("the executor's answer makes no sense: {problem}")]
    InvalidAnswer {
        /// What is wrong with it.
        problem: String,
    },
    /// The answer is larger than this client takes.
    #[error("the executor's answer is larger than the limit of {limit} bytes")]
    AnswerTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The request cannot be sent as it is.
    #[error("the request cannot be sent: {problem}")]
    InvalidRequest {
        /// What is wrong with it.
        problem: String,
    },
}

impl ClientError {
    /// What kind of failure it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Connect { .. } | Self::Disconnected { .. } => ErrorClass::Disconnected,
            Self::Timeout { .. } => ErrorClass::Timeout,
            Self::Refused { status, detail } => class_of(status_behind(*status, detail)),
            Self::Program(error) => error.class(),
            Self::File(error) => error.class(),
            Self::InvalidRequest { .. } => ErrorClass::Invalid,
            Self::InvalidAnswer { .. } | Self::AnswerTooLarge { .. } => ErrorClass::Internal,
        }
    }

    /// Whether the executor may have acted although this error came back. Only when this is
    /// false is it safe to send an action again.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::InvalidRequest { .. }
            | Self::Program(_)
            | Self::File(_) => false,
            Self::Refused { status, .. } => *status >= 500 && *status != 503,
            Self::Disconnected { .. }
            | Self::Timeout { .. }
            | Self::InvalidAnswer { .. }
            | Self::AnswerTooLarge { .. } => true,
        }
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

/// The status that is meant, and the text to it.
fn refusal(status: u16, detail: &str) -> String {
    match status_behind(status, detail) {
        meant if meant != status => detail.to_owned(),
        _ => format!("{status}: {detail}"),
    }
}

fn class_of(status: u16) -> ErrorClass {
    match status {
        401 | 403 | 421 => ErrorClass::Permission,
        404 => ErrorClass::NotFound,
        405 | 501 => ErrorClass::Unsupported,
        408 | 504 => ErrorClass::Timeout,
        409 | 429 | 503 => ErrorClass::Busy,
        400..=499 => ErrorClass::Invalid,
        _ => ErrorClass::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_class_that_their_status_means() {
        for (status, detail, class) in [
            (403, "Invalid API Key", ErrorClass::Permission),
            (404, "Not Found", ErrorClass::NotFound),
            (405, "Method Not Allowed", ErrorClass::Unsupported),
            (413, "", ErrorClass::Invalid),
            (422, "", ErrorClass::Invalid),
            (503, "not initialized", ErrorClass::Busy),
            (500, "404: File not found", ErrorClass::NotFound),
            (
                500,
                "400: Path must be an absolute path",
                ErrorClass::Invalid,
            ),
            (500, "Internal server error: x", ErrorClass::Internal),
            (500, "", ErrorClass::Internal),
        ] {
            let error = ClientError::Refused {
                status,
                detail: detail.to_owned(),
            };
            assert_eq!(error.class(), class, "{status} {detail}");
        }
        let told = |status, detail: &str| {
            let detail = detail.to_owned();
            ClientError::Refused { status, detail }.to_string()
        };
        let meant = "the executor refused with status 404: File not found";
        assert_eq!(told(500, "404: File not found"), meant);
        assert_eq!(told(500, "x"), "the executor refused with status 500: x");
    }
}
