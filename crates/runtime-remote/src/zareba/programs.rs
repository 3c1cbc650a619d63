//! Programs at another server: what it is asked for, and why it refuses.

use zareba_client::{ClientError, Connection, ErrorCode, ProgramTerminal, StartProgram};
use zareba_wire::program::{
    ProgramConnection, ProgramLine, ProgramRequest, ProgramStdin, StartFailure, StartProgramError,
    follow,
};

/// What the other server is asked for.
pub(super) fn asked(request: ProgramRequest) -> StartProgram {
    let (argv, command) = match request.program {
        ProgramLine::Argv(words) => (Some(words), None),
        ProgramLine::Shell(line) => (None, Some(line)),
    };
    StartProgram {
        argv,
        command,
        cwd: request.directory,
        env: request.environment.into_iter().collect(),
        terminal: request.terminal.map(|size| ProgramTerminal {
            rows: size.rows,
            cols: size.columns,
        }),
        stdin: request.stdin == ProgramStdin::Open,
    }
}

/// Why the program cannot be started, when it is the program's own fault.
pub(super) fn fault(error: &ClientError) -> Option<StartProgramError> {
    let ClientError::Refused { code, message, .. } = error else {
        return None;
    };
    let reason = match (*code)? {
        ErrorCode::ProgramNotFound => StartFailure::NotFound,
        ErrorCode::ProgramNotExecutable => StartFailure::NotExecutable,
        ErrorCode::BadDirectory => StartFailure::Directory,
        ErrorCode::InvalidRequest => StartFailure::Invalid,
        _ => return None,
    };
    Some(StartProgramError::new(reason, message.clone()))
}

/// A program at the other end of a connection. A task carries its streams and ends with it.
pub(super) fn carried(connection: Connection) -> ProgramConnection {
    follow(connection, "server")
}
