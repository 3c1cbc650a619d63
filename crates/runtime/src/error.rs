//! Why a runtime could not do what it was asked for.

use std::time::Duration;

use zareba_protocol::ErrorClass;
use zareba_wire::{files::FileError, program::StartProgramError, variables::InvalidVariable};

use crate::{RequestField, SandboxId};

/// Why a runtime could not do what it was asked for.
///
/// A command that fails is not among these: that is an observation. Each variant names what
/// was attempted and on what; the cause, when there is one, is the error's source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The sandbox could not be started.
    #[error("cannot start a sandbox with the runtime `{runtime}`")]
    Start {
        /// Which backend.
        runtime: &'static str,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It was not ready in time.
    #[error("the sandbox `{sandbox}` was not ready within {waited:?}")]
    NotReady {
        /// Which sandbox.
        sandbox: SandboxId,
        /// How long we waited.
        waited: Duration,
    },
    /// There is no such sandbox.
    #[error("there is no sandbox `{sandbox}`")]
    NotFound {
        /// Which sandbox.
        sandbox: SandboxId,
    },
    /// The executor cannot be reached, or went away in the middle.
    #[error("the executor of the sandbox `{sandbox}` is gone")]
    Disconnected {
        /// Which sandbox.
        sandbox: SandboxId,
        /// What went wrong, when that is known.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// An action was not answered in time.
    #[error("the action was not answered within {waited:?}")]
    Timeout {
        /// How long we waited.
        waited: Duration,
    },
    /// Something else has to end first.
    #[error("the sandbox `{sandbox}` cannot {deed} now: {reason}")]
    Busy {
        /// Which sandbox.
        sandbox: SandboxId,
        /// What was attempted, as a verb phrase.
        deed: &'static str,
        /// What is in the way.
        reason: String,
    },
    /// The image cannot be had.
    #[error("cannot use the image `{image}`")]
    Image {
        /// Which image.
        image: String,
        /// How the error counts.
        class: ErrorClass,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Its processes are frozen.
    #[error("the sandbox `{sandbox}` is paused; resume it first")]
    Paused {
        /// Which sandbox.
        sandbox: SandboxId,
    },
    /// Files could not be moved in or out.
    #[error("cannot copy `{path}`")]
    Copy {
        /// Which file or directory.
        path: String,
        /// How the error counts.
        class: ErrorClass,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A program could not be started.
    #[error(transparent)]
    Program(#[from] StartProgramError),
    /// The work on a file could not be done.
    #[error(transparent)]
    File(#[from] FileError),
    /// The backend cannot do that.
    #[error("the runtime `{runtime}` cannot {deed}")]
    Unsupported {
        /// Which backend.
        runtime: &'static str,
        /// What it was asked for, as a verb phrase.
        deed: &'static str,
    },
    /// A part of the request cannot be held.
    #[error("the runtime `{runtime}` cannot hold `{field}`: {reason}")]
    Unhonoured {
        /// Which backend.
        runtime: &'static str,
        /// Which part.
        field: RequestField,
        /// Why not.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// The request makes no sense.
    #[error("{message}")]
    Invalid {
        /// What was wrong and what to do.
        message: String,
    },
    /// The sandbox is closed.
    #[error("the sandbox `{sandbox}` is closed")]
    Closed {
        /// Which sandbox.
        sandbox: SandboxId,
    },
    /// The guard does not allow it.
    #[error("guard_denied: {reason}")]
    Denied {
        /// Why, for the client.
        reason: String,
    },
    /// It was not done, because that it begins could not be recorded.
    #[error("it was not done, because it could not be recorded")]
    Unrecorded {
        /// How the error counts.
        class: ErrorClass,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// We broke our own promise.
    #[error("cannot {deed}")]
    Internal {
        /// What was attempted, as a verb phrase.
        deed: &'static str,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl From<InvalidVariable> for RuntimeError {
    fn from(error: InvalidVariable) -> Self {
        Self::Invalid {
            message: error.message,
        }
    }
}

impl RuntimeError {
    /// The class that callers act on, the same over HTTP and in every SDK.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Start { .. } | Self::Internal { .. } => ErrorClass::Internal,
            Self::NotReady { .. } | Self::Timeout { .. } => ErrorClass::Timeout,
            Self::NotFound { .. } | Self::Closed { .. } => ErrorClass::NotFound,
            Self::Disconnected { .. } => ErrorClass::Disconnected,
            Self::Busy { .. } | Self::Paused { .. } => ErrorClass::Busy,
            Self::Copy { class, .. }
            | Self::Image { class, .. }
            | Self::Unrecorded { class, .. } => *class,
            Self::Denied { .. } => ErrorClass::Permission,
            Self::Program(error) => error.class(),
            Self::File(error) => error.class(),
            Self::Unsupported { .. } | Self::Unhonoured { .. } => ErrorClass::Unsupported,
            Self::Invalid { .. } => ErrorClass::Invalid,
        }
    }
}
