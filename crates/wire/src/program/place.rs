//! [`Place`]: where programs can be started, whatever is behind it.

use zareba_protocol::ErrorClass;

use super::{ProgramConnection, ProgramRequest, StartProgramError};
use crate::BoxFuture;

/// Where programs are started; a sandbox is one.
pub trait Place: Send + Sync {
    /// Starts a program with streams of its own and returns once it runs. Dropping the connection
    /// ends the program.
    fn start(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, PlaceError>>;
}

/// Why a program could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlaceError {
    /// How that counts.
    pub class: ErrorClass,
    /// What was attempted, why it failed and what to do.
    pub message: String,
}

impl From<StartProgramError> for PlaceError {
    fn from(error: StartProgramError) -> Self {
        Self {
            class: error.class(),
            message: error.message,
        }
    }
}
