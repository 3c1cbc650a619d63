//! Why an image was not pulled: what was asked for, what came instead, and what to do.

use std::{fmt, io, path::PathBuf, time::Duration};

use super::Platform;
use crate::{Digest, ParseDigestError};

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What the system or the other side said. What the HTTP client and its connector say above it
/// names only themselves, or the address.
pub(super) fn cause_of(error: &reqwest::Error) -> Cause {
    let error: &(dyn std::error::Error + 'static) = error;
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    let deepest = causes.last().map(ToString::to_string);
    deepest
        .unwrap_or_else(|| "the connection broke".to_owned())
        .into()
}

/// What a request was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// What the image's name stands for.
    Manifest {
        image: String,
    },
    /// The manifest of one platform, of those that the image is there for.
    PlatformManifest {
        digest: Digest,
    },
    /// What the image says about running it.
    Configuration {
        digest: Digest,
    },
    Layer {
        digest: Digest,
    },
    /// The permission to read, from the service that the registry names.
    Token {
        service: String,
    },
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest { image } => write!(formatter, "manifest of `{image}`"),
            Self::PlatformManifest { digest } => write!(formatter, "manifest `{digest}`"),
            Self::Configuration { digest } => write!(formatter, "configuration `{digest}`"),
            Self::Layer { digest } => write!(formatter, "layer `{digest}`"),
            Self::Token { service } => write!(formatter, "token from `{service}`"),
        }
    }
}

/// Where credentials were looked for, and whether there were any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sought {
    /// Nobody has said where to look.
    Nowhere,
    /// The file has none for this registry, or there is no such file.
    NoneIn(PathBuf),
    /// They came from this file, and did not suffice.
    FoundIn(PathBuf),
}

impl fmt::Display for Sought {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => formatter.write_str(
                "no credentials were used; name a file like `~/.docker/config.json` that has them",
            ),
            Self::NoneIn(file) => write!(
                formatter,
                "`{}` has no credentials for it; log in to the registry, without a credential \
                 helper, or check the image's name",
                file.display()
            ),
            Self::FoundIn(file) => write!(
                formatter,
                "the credentials in `{}` do not suffice; log in again, or ask for access",
                file.display()
            ),
        }
    }
}

/// Why an image was not pulled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    #[error("cannot use the credentials file `{}`: {problem}", file.display())]
    Credentials { file: PathBuf, problem: String },
    #[error("cannot set up connections: {problem}")]
    SetUp { problem: String },
    #[error(
        "cannot get the {part}: nobody answers at `{host}`; check the name and the network, and \
         whether a proxy is needed"
    )]
    Unreachable {
        part: Part,
        host: String,
        source: Cause,
    },
    #[error("the connection broke {received} bytes into the {part}; try again")]
    Interrupted {
        part: Part,
        received: u64,
        source: Cause,
    },
    #[error("`{host}` does not let us read the {part} (status {status}): {sought}")]
    Unauthorized {
        part: Part,
        host: String,
        status: u16,
        sought: Sought,
    },
    #[error("`{host}` has no {part}; check repository and tag")]
    NotFound { part: Part, host: String },
    #[error("`{host}` has no time for the {part} (status {status}); {}", later(*retry_after))]
    Busy {
        part: Part,
        host: String,
        status: u16,
        /// What the registry asked for, whether it was waited for or not.
        retry_after: Option<Duration>,
    },
    #[error("`{host}` refused the {part} with status {status}: {message}")]
    Refused {
        part: Part,
        host: String,
        status: u16,
        /// What the registry said, shortened and without control characters.
        message: String,
    },
    #[error("the way to the {part} is not taken: {problem}")]
    Redirect { part: Part, problem: String },
    #[error("cannot get permission to read the {part}: {problem}")]
    Permission { part: Part, problem: String },
    #[error("the {part} has the digest `{actual}` instead of `{expected}`; it is not kept")]
    DigestMismatch {
        part: Part,
        expected: Digest,
        actual: Digest,
    },
    #[error("the {part} is announced with {declared} bytes and comes with {received}")]
    SizeMismatch {
        part: Part,
        declared: u64,
        /// At least, as nothing is read past what was announced.
        received: u64,
    },
    #[error("the {part} is larger than the limit of {limit} bytes")]
    TooLarge { part: Part, limit: u64 },
    #[error("the image has {size} bytes to transfer, more than the limit of {limit}")]
    ImageTooLarge { size: u64, limit: u64 },
    #[error("the {part} names content in a way that cannot be checked")]
    InvalidDigest {
        part: Part,
        source: ParseDigestError,
    },
    #[error("the {part} makes no sense: {problem}")]
    InvalidDocument { part: Part, problem: String },
    #[error("the {part} has the type `{media_type}`, which is not part of an image that can run")]
    UnsupportedMedia { part: Part, media_type: String },
    #[error(
        "the image is not there for {wanted}, only for {}",
        if present.is_empty() { "nothing that is named".to_owned() } else { present.join(", ") }
    )]
    NoPlatform {
        wanted: Platform,
        present: Vec<String>,
    },
    #[error("the image was not complete after {limit:?}; the registry or the network is too slow")]
    TooSlow { limit: Duration },
    #[error("cannot write `{}`", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl PullError {
    /// Whether the same request may succeed a little later, with nothing changed on this side.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Interrupted { .. } | Self::Busy { .. } => true,
            Self::Credentials { .. }
            | Self::SetUp { .. }
            | Self::Unauthorized { .. }
            | Self::NotFound { .. }
            | Self::Refused { .. }
            | Self::Redirect { .. }
            | Self::Permission { .. }
            | Self::DigestMismatch { .. }
            | Self::SizeMismatch { .. }
            | Self::TooLarge { .. }
            | Self::ImageTooLarge { .. }
            | Self::InvalidDigest { .. }
            | Self::InvalidDocument { .. }
            | Self::UnsupportedMedia { .. }
            | Self::NoPlatform { .. }
            | Self::TooSlow { .. }
            | Self::Write { .. } => false,
        }
    }

    /// How long the registry asked to be left alone.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

fn later(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(pause) => format!("it asks to try again in {pause:?}"),
        None => "try again later".to_owned(),
    }
}

/// Text from a registry as it may be shown: one short line.
pub(super) fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    let visible = text.chars().filter(|character| !character.is_control());
    visible.take(CHARACTERS_MAX).collect()
}
