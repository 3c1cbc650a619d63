//! Why a session could not do what it was asked for.

use zareba_eventlog::LogError;
use zareba_protocol::{ErrorClass, SessionId};
use zareba_runtime::{RequestField, RuntimeError};
use zareba_tools::ToolError;

use crate::SessionState;

/// Why a session could not do what it was asked for. An action that fails is not among these:
/// that is an observation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is none with that name, or it is somebody else's.
    #[error("there is no session `{session}`")]
    NotFound {
        /// Which session.
        session: SessionId,
    },
    /// There is one with that name already.
    #[error("there is a session `{session}` already")]
    Exists {
        /// Which session.
        session: SessionId,
    },
    /// A session with that name was removed, and names are given once.
    #[error(
        "the name `{session}` was that of a session that was removed, and names are not given again; choose another"
    )]
    NameRemoved {
        /// Which name.
        session: SessionId,
    },
    /// It is in a state in which that cannot be done.
    #[error("the session `{session}` cannot {deed}: it is {}", state.as_str())]
    State {
        /// Which session.
        session: SessionId,
        /// What was attempted, as a verb phrase.
        deed: &'static str,
        /// How it is.
        state: SessionState,
    },
    /// Another server that shares the log has it.
    #[error("the session `{session}` is held by another server; ask that one")]
    HeldElsewhere {
        /// Which session.
        session: SessionId,
    },
    /// What its sandbox runs in does not answer at the moment.
    #[error("the sandbox of the session `{session}` cannot be reached yet; try again later")]
    Away {
        /// Which session.
        session: SessionId,
    },
    /// The server that it belonged to has ended, and this one has not taken it up yet.
    #[error(
        "the session `{session}` can only be read, because this server has not taken it up yet: {reason}"
    )]
    NotTakenUp {
        /// Which session.
        session: SessionId,
        /// What that waits for.
        reason: String,
    },
    /// It has secrets that this server does not know, and so could not hide.
    #[error(
        "the session `{session}` can only be read and closed: its secrets are known to the server that made it, and could not be hidden here"
    )]
    SecretsUnknown {
        /// Which session.
        session: SessionId,
    },
    /// Its secrets cannot be kept, and could not be hidden after the end of this server.
    #[error("the secrets of the session `{session}` cannot be kept in the state directory")]
    Secrets {
        /// Which session.
        session: SessionId,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The same idempotency key came with another action.
    #[error("the idempotency key was used for another action, number {sequence}")]
    KeyReused {
        /// The number of that action.
        sequence: u64,
    },
    /// There is no action with that number.
    #[error("there is no action number {sequence} in the session `{session}`")]
    NoAction {
        /// Which session.
        session: SessionId,
        /// Which number.
        sequence: u64,
    },
    /// A limit of the server or of the owner.
    #[error("{message}")]
    TooMany {
        /// Which limit, and what it is.
        message: String,
    },
    /// More is asked of the sandbox than the caller may have.
    #[error("{message}")]
    NotPermitted {
        /// Which part of the request.
        field: RequestField,
        /// What was asked for and what may be.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// A runtime, an image or a directory is asked for that the caller's key does not permit.
    #[error("{message}")]
    PartNotPermitted {
        /// The field of the request.
        field: &'static str,
        /// What was asked for.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// A limit in time is looser than the caller may make it.
    #[error("{message}")]
    LimitNotPermitted {
        /// Which limit.
        limit: &'static str,
        /// What was asked for.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The request makes no sense.
    #[error("{message}")]
    Invalid {
        /// What was wrong and what to do.
        message: String,
    },
    /// The runtime could not do it.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A tool could not be added or removed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The log could not be written or read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The server is ending.
    #[error("the server is shutting down")]
    ShuttingDown,
}

impl SessionError {
    /// The class that callers act on.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotFound { .. } | Self::NoAction { .. } => ErrorClass::NotFound,
            Self::Exists { .. }
            | Self::NameRemoved { .. }
            | Self::State { .. }
            | Self::HeldElsewhere { .. }
            | Self::Away { .. }
            | Self::SecretsUnknown { .. }
            | Self::TooMany { .. } => ErrorClass::Busy,
            Self::KeyReused { .. } | Self::Invalid { .. } => ErrorClass::Invalid,
            Self::NotPermitted { .. }
            | Self::PartNotPermitted { .. }
            | Self::LimitNotPermitted { .. } => ErrorClass::Permission,
            Self::Runtime(error) => error.class(),
            Self::Tool(error) => error.class(),
            Self::Log(error) => error.class(),
            Self::Secrets { .. } => ErrorClass::Internal,
            Self::NotTakenUp { .. } | Self::ShuttingDown => ErrorClass::Disconnected,
        }
    }
}

impl SessionState {
    /// Nothing can be done with it any more but to read its log.
    pub(crate) const fn has_ended(self) -> bool {
        match self {
            Self::Failed | Self::Lost | Self::Closed => true,
            Self::Starting | Self::Ready | Self::Paused => false,
        }
    }

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Paused => "paused",
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Closed => "closed",
        }
    }
}
