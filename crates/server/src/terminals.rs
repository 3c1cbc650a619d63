//! Terminals of a session over HTTP, and their WebSockets.

mod socket;

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header::LOCATION};
use zareba_api::{CreateTerminal, ErrorCode, TerminalExit, TerminalPage, WindowSize};
use zareba_session::{NewTerminal, Surface, TerminalEnd, TerminalError, TerminalInfo};
use zareba_wire::program::{ProgramExit, ProgramLine, TerminalSize};

use crate::{
    app::App,
    auth::Principal,
    error::ApiError,
    handlers::json,
    request::{Json, Place},
};

pub(crate) use socket::socket;

pub(crate) async fn open(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Json(create): Json<CreateTerminal>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let new = new_terminal(create)?;
    let sandbox = session.access(principal.requester(Surface::Api)).await?;
    let terminal = session.terminals().open(&sandbox, new).await?;
    let mut response = json(StatusCode::CREATED, &told(terminal.info()));
    let place = format!(
        "/v1/sessions/{}/terminals/{}",
        principal.name_of(&session),
        terminal.name()
    );
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let terminals = session.terminals().list();
    let page = TerminalPage {
        terminals: terminals.into_iter().map(told).collect(),
    };
    Ok(json(StatusCode::OK, &page))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place((session, terminal)): Place<(String, String)>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let terminal = session.terminals().get(&terminal)?;
    Ok(json(StatusCode::OK, &told(terminal.info())))
}

pub(crate) async fn close(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place((session, terminal)): Place<(String, String)>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let door = session.door(principal.requester(Surface::Api));
    session.terminals().close(&door, &terminal).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

impl From<TerminalError> for ApiError {
    fn from(error: TerminalError) -> Self {
        let message = error.to_string();
        let code = match error {
            TerminalError::Runtime(error) => return error.into(),
            TerminalError::NotFound { .. } => ErrorCode::NotFound,
            TerminalError::Exists { .. } => ErrorCode::Exists,
            TerminalError::TooMany => ErrorCode::QuotaExceeded,
            TerminalError::Ended { .. } => ErrorCode::Conflict,
            _ => ErrorCode::InvalidRequest,
        };
        Self::new(code, message)
    }
}

fn new_terminal(create: CreateTerminal) -> Result<NewTerminal, ApiError> {
    let program = match (create.argv, create.command) {
        (None, None) => None,
        (Some(words), None) => Some(ProgramLine::Argv(words)),
        (None, Some(line)) => Some(ProgramLine::Shell(line)),
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid("give either `argv` or `command`"));
        }
    };
    Ok(NewTerminal {
        name: create.name,
        program,
        directory: create.directory,
        environment: create.environment.into_iter().collect(),
        size: size(create.size)?,
    })
}

fn size(size: WindowSize) -> Result<TerminalSize, ApiError> {
    let invalid = || ApiError::invalid("a terminal has at least one row and one column");
    TerminalSize::new(size.rows, size.columns).ok_or_else(invalid)
}

fn told(info: TerminalInfo) -> zareba_api::Terminal {
    zareba_api::Terminal {
        name: info.name,
        created: info.created,
        size: WindowSize {
            columns: info.size.columns,
            rows: info.size.rows,
        },
        output_bytes: info.output_bytes,
        exit: info.end.map(exit),
    }
}

fn exit(end: TerminalEnd) -> TerminalExit {
    match end {
        TerminalEnd::Exit(ProgramExit::Code(code)) => TerminalExit {
            code: Some(code),
            ..TerminalExit::default()
        },
        TerminalEnd::Exit(ProgramExit::Signal(signal)) => TerminalExit {
            signal: Some(signal),
            ..TerminalExit::default()
        },
        TerminalEnd::Lost(reason) => TerminalExit {
            reason: Some(reason),
            ..TerminalExit::default()
        },
        TerminalEnd::Closed => TerminalExit {
            reason: Some("it was closed".to_owned()),
            ..TerminalExit::default()
        },
    }
}
