//! Why a tool could not be called, or what it failed with.

use std::time::Duration;

use zareba_protocol::ErrorClass;

use crate::{InvalidToolName, Origin, PlaceError, ToolName};

/// Why there is no result. The texts name the tool and say what can be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// There is no tool of that name.
    #[error("there is no tool `{name}`; {}", there_are(.known))]
    NotFound {
        /// What was asked for.
        name: String,
        /// Some of the names that there are.
        known: Vec<String>,
    },
    /// Another tool has the name.
    #[error("there is a tool `{name}` already, from {by}; remove that one first")]
    Taken {
        /// The name.
        name: ToolName,
        /// Whose it is.
        by: Origin,
    },
    /// A name that no tool can have.
    #[error(transparent)]
    Name(#[from] InvalidToolName),
    /// A definition that makes no sense.
    #[error("the tool `{tool}` cannot be added: {problem}")]
    Definition {
        /// Which.
        tool: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The arguments are not what its schema asks for.
    #[error("the arguments of `{tool}` are not what it takes: {}", problems.join("; "))]
    Invalid {
        /// The tool.
        tool: String,
        /// What is wrong, one sentence each.
        problems: Vec<String>,
    },
    /// It raised an exception, or a command ended with a failure.
    #[error("`{}` raised {}: {}", .0.tool, .0.kind, .0.message)]
    Raised(Box<Exception>),
    /// It returned what JSON cannot say.
    #[error("`{}` returned a value of the type `{}`, which is no JSON ({}); have it return text, numbers, lists or dictionaries", .0.tool, .0.kind, .0.message)]
    NotJson(Box<NotJson>),
    /// It took too long, and was stopped.
    #[error("`{tool}` was stopped: it took longer than {} s; give it a longer `timeout`", limit.as_secs_f64())]
    TimedOut {
        /// The tool.
        tool: String,
        /// How long it had.
        limit: Duration,
    },
    /// What ran it has died. Nobody knows how far it had come.
    #[error("the outcome of `{tool}` is unknown: {message}; the next call starts its host anew")]
    Gone {
        /// The tool.
        tool: String,
        /// What became of its host.
        message: String,
    },
    /// What would run it cannot be started.
    #[error("{message}")]
    Unavailable {
        /// What was attempted, why it failed and what to do.
        message: String,
        /// How that counts.
        class: ErrorClass,
    },
    /// Its arguments or its result are larger than what is carried.
    #[error("`{tool}`: {what} has {bytes} bytes, and the limit is {limit}; use a file")]
    TooLarge {
        /// The tool.
        tool: String,
        /// The arguments or the result.
        what: &'static str,
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        limit: usize,
    },
    /// It ended the interpreter that runs it, or tried to.
    #[error("`{}` asked its interpreter to exit ({}); let it return or raise instead", .0.tool, .0.message)]
    Exited(Box<Exception>),
    /// Too many calls are under way.
    #[error(
        "`{tool}` cannot be called now: {limit} calls are under way, which is the limit; wait for one to end"
    )]
    Busy {
        /// The tool.
        tool: String,
        /// How many there may be.
        limit: usize,
    },
}

/// An exception of a tool, and what it printed until then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exception {
    /// The tool.
    pub tool: String,
    /// The exception's class.
    pub kind: String,
    /// Its text.
    pub message: String,
    /// Where it came from, as Python prints it.
    pub traceback: String,
    /// What the tool printed.
    pub stdout: String,
    /// What it printed as errors.
    pub stderr: String,
    /// It printed more than is kept.
    pub is_truncated: bool,
}

/// A result that JSON cannot say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotJson {
    /// The tool.
    pub tool: String,
    /// The type of the result.
    pub kind: String,
    /// How the result describes itself.
    pub description: String,
    /// What the one said who was to write it down.
    pub message: String,
    /// What the tool printed.
    pub stdout: String,
    /// What it printed as errors.
    pub stderr: String,
    /// It printed more than is kept.
    pub is_truncated: bool,
}

impl ToolError {
    /// The class that callers act on.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotFound { .. } => ErrorClass::NotFound,
            Self::Taken { .. } | Self::Busy { .. } => ErrorClass::Busy,
            Self::Name(_)
            | Self::Definition { .. }
            | Self::Invalid { .. }
            | Self::Raised(_)
            | Self::NotJson(_)
            | Self::TooLarge { .. }
            | Self::Exited(_) => ErrorClass::Invalid,
            Self::TimedOut { .. } => ErrorClass::Timeout,
            Self::Gone { .. } => ErrorClass::Disconnected,
            Self::Unavailable { class, .. } => *class,
        }
    }

    /// The class of the exception that was raised, or a stable word of ours.
    pub fn kind(&self) -> &str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Taken { .. } => "taken",
            Self::Name(_) => "invalid_name",
            Self::Definition { .. } => "invalid_definition",
            Self::Invalid { .. } => "invalid_arguments",
            Self::Raised(exception) => &exception.kind,
            Self::NotJson(_) => "not_json",
            Self::TimedOut { .. } => "timed_out",
            Self::Gone { .. } => "gone",
            Self::Unavailable { .. } => "unavailable",
            Self::TooLarge { .. } => "too_large",
            Self::Exited(_) => "exited",
            Self::Busy { .. } => "busy",
        }
    }

    pub(crate) fn unavailable(deed: &str, error: &PlaceError) -> Self {
        Self::Unavailable {
            message: format!("{deed}: {error}"),
            class: error.class,
        }
    }
}

fn there_are(names: &[String]) -> String {
    match names {
        [] => "there are none here".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    }
}
