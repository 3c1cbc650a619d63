//! Why an image was not built.

use std::{io, path::PathBuf, time::Duration};

use zareba_protocol::ErrorClass;
use zareba_runtime::RuntimeError;

use crate::{EngineError, image::class_of};

/// Why an image was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A file of the context cannot be read.
    #[error("cannot read `{path}` of the build context", path = path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The context cannot be kept while it is sent.
    #[error("cannot keep the build context in a file")]
    Keep(#[source] io::Error),
    /// The context is not one that is taken.
    #[error("the build context cannot be used: {reason}")]
    Context {
        /// What is wrong with it.
        reason: String,
    },
    /// The Dockerfile is not one that is taken.
    #[error("the Dockerfile cannot be used: {reason}")]
    Dockerfile {
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// What was asked for makes no sense.
    #[error("{reason}")]
    Invalid {
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The operator has not listed an image.
    #[error("the image `{image}` is not among the allowed images (`docker.allowed_images`)")]
    NotAllowed {
        /// Which.
        image: String,
    },
    /// The name is the operator's or another client's.
    #[error("the image `{image}` is there and was not built for you; choose another name")]
    NotYours {
        /// Which.
        image: String,
    },
    /// The name stands for an image of a registry, which others would get by it.
    #[error(
        "the image `{image}` is in its registry, from where others expect it; choose another name"
    )]
    InRegistry {
        /// Which.
        image: String,
    },
    /// The name may stand for an image of a registry.
    #[error(
        "it cannot be told whether the registry of the image `{image}` has it, and others would \
         get it from there; choose a name of a registry that answers, or have the operator set \
         `docker.pull` to `never`"
    )]
    RegistryUnsure {
        /// Which.
        image: String,
        /// Why it cannot be told.
        source: Box<BuildError>,
    },
    /// Too many builds wait already.
    #[error("too many builds wait already; try again when one of them is done")]
    Busy,
    /// An image that the build begins with is not there.
    #[error(
        "the Engine does not have the image `{image}`; fetch it, or allow fetching what is missing"
    )]
    Missing {
        /// Which.
        image: String,
    },
    /// A step failed.
    #[error("the build failed: {message}{}", after(output))]
    Failed {
        /// What the Engine said.
        message: String,
        /// The last lines that steps have written.
        output: String,
    },
    /// It took too long, and was ended.
    #[error("the build was not done within {waited:?}, and was ended")]
    TimedOut {
        /// How long it took.
        waited: Duration,
    },
    /// The Engine did something else than building.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// There is no Engine.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl BuildError {
    /// How it counts.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Read { .. }
            | Self::Context { .. }
            | Self::Dockerfile { .. }
            | Self::Invalid { .. } => ErrorClass::Invalid,
            Self::NotAllowed { .. }
            | Self::NotYours { .. }
            | Self::InRegistry { .. }
            | Self::RegistryUnsure { .. } => ErrorClass::Permission,
            Self::Busy => ErrorClass::Busy,
            Self::Missing { .. } => ErrorClass::NotFound,
            Self::TimedOut { .. } => ErrorClass::Timeout,
            Self::Keep(_) | Self::Failed { .. } => ErrorClass::Internal,
            Self::Engine(error) => class_of(error.fault),
            Self::Runtime(error) => error.class(),
        }
    }

    pub(super) fn context(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Context { reason }
    }

    pub(super) fn dockerfile(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Dockerfile { reason }
    }

    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Invalid { reason }
    }
}

fn after(output: &str) -> String {
    match output {
        "" => String::new(),
        output => format!("\n{output}"),
    }
}
