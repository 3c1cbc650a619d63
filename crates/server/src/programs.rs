//! Programs of a session with streams of their own, on connections that are taken over.

mod masked;

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::{HeaderMap, Version};
use zareba_api::{ErrorCode, StartProgram, operations::programs::UPGRADE_NAME};
use zareba_runtime::{RuntimeError, Sandbox as _};
use zareba_session::Surface;
use zareba_wire::{
    program::{
        ProgramLine, ProgramRequest, ProgramStdin, StartFailure, StartProgramError, TerminalSize,
    },
    serving::{Takeover, TakeoverEnd, carry_program},
};

use self::masked::Masked;
use crate::{
    app::App,
    auth::Principal,
    error::ApiError,
    request::{Json, Open, Place},
    upgrade::{self, Leave},
};

/// Starts a program and takes the connection over for its streams. A program that cannot be
/// started is refused before that, like any other request.
pub(crate) async fn start(
    State(app): State<Arc<App>>,
    principal: Principal,
    place: Open,
    Place(session): Place<String>,
    version: Version,
    headers: HeaderMap,
    Json(start): Json<StartProgram>,
) -> Result<Response, ApiError> {
    upgrade::require(version, &headers, UPGRADE_NAME)?;
    let session = app.session(&principal, &session).await?;
    let request = request(start)?;
    request.check().map_err(|error| refused(&error))?;
    let sandbox = session.access(principal.requester(Surface::Api)).await?;
    let started = sandbox.start_program(request).await;
    let program = started.map_err(|error| match error {
        RuntimeError::Program(error) => refused(&error),
        error => error.into(),
    })?;
    let open = app.telemetry.stream("program");
    let voice = Masked::new(session.mask());
    let leave = Leave::new(&app, session, principal, place);
    // Until it is begun the answer holds the program, which ends if nobody takes the answer.
    let takeover = Takeover::new(TakeoverEnd::AtDrain, |connection| async move {
        let _open = open;
        tokio::select! {
            () = carry_program(connection, program, voice) => {}
            () = leave.over() => {}
        }
    });
    Ok(upgrade::switch(UPGRADE_NAME, takeover))
}

fn request(start: StartProgram) -> Result<ProgramRequest, ApiError> {
    let program = match (start.argv, start.command) {
        (Some(words), None) => ProgramLine::Argv(words),
        (None, Some(line)) => ProgramLine::Shell(line),
        _ => return Err(ApiError::invalid("give either `argv` or `command`")),
    };
    let terminal = start.terminal.map(|size| {
        TerminalSize::new(size.rows, size.cols)
            .ok_or_else(|| ApiError::invalid("a terminal has at least one row and one column"))
    });
    Ok(ProgramRequest {
        program,
        directory: start.cwd,
        environment: start.env.into_iter().collect(),
        terminal: terminal.transpose()?,
        stdin: match start.stdin {
            true => ProgramStdin::Open,
            false => ProgramStdin::Closed,
        },
    })
}

fn refused(error: &StartProgramError) -> ApiError {
    let code = match error.reason {
        StartFailure::NotFound => ErrorCode::ProgramNotFound,
        StartFailure::NotExecutable => ErrorCode::ProgramNotExecutable,
        StartFailure::Directory => ErrorCode::BadDirectory,
        StartFailure::Invalid => ErrorCode::InvalidRequest,
        StartFailure::Busy => ErrorCode::Conflict,
        StartFailure::Unsupported => ErrorCode::Unsupported,
        _ => {
            tracing::warn!(%error, "cannot start a program");
            ErrorCode::Internal
        }
    };
    ApiError::new(code, error.message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_are_those_of_the_executor() {
        assert_eq!(UPGRADE_NAME, zareba_wire::program::UPGRADE_NAME);
    }
}
