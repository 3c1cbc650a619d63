//! Terminals of a session.

use crate::{
    Access, Answer, Content, CreateTerminal, Deadline, ErrorCode, Method, Operation, Parameter,
    ParameterType, Terminal, TerminalNotice, TerminalPage, operation::of,
};

const GROUP: &str = "terminals";
const COLLECTION: &str = "/v1/sessions/{session}/terminals";
const ITEM: &str = "/v1/sessions/{session}/terminals/{terminal}";

/// Every operation of this group.
pub const ALL: &[&Operation] = &[&OPEN, &LIST, &GET, &CLOSE, &SOCKET];

/// Opens a terminal.
pub const OPEN: Operation = Operation {
    id: "open_terminal",
    method: Method::Post,
    path: COLLECTION,
    access: Access::Session,
    deadline: Deadline::Long,
    group: GROUP,
    summary: "Open a terminal",
    description: "Starts a shell, or another program, on a terminal that the session keeps. It \
                  goes on when nobody looks, and ends with its program, with the session or with \
                  the server.",
    parameters: &[],
    body: Some(Content::json(of::<CreateTerminal>)),
    answers: &[Answer::with(
        201,
        "The terminal.",
        Content::json(of::<Terminal>),
    )],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::GuardDenied,
        ErrorCode::Exists,
        ErrorCode::Conflict,
        ErrorCode::QuotaExceeded,
        ErrorCode::Unsupported,
        ErrorCode::BackendUnavailable,
    ],
};

/// Lists terminals.
pub const LIST: Operation = Operation {
    id: "list_terminals",
    method: Method::Get,
    access: Access::Read,
    deadline: Deadline::Short,
    summary: "List terminals",
    description: "Also those whose program has ended.",
    body: None,
    answers: &[Answer::with(
        200,
        "All of them.",
        Content::json(of::<TerminalPage>),
    )],
    errors: &[ErrorCode::NotFound],
    ..OPEN
};

/// Shows a terminal.
pub const GET: Operation = Operation {
    id: "get_terminal",
    path: ITEM,
    summary: "Show a terminal",
    description: "",
    answers: &[Answer::with(
        200,
        "The terminal.",
        Content::json(of::<Terminal>),
    )],
    ..LIST
};

/// Closes a terminal.
pub const CLOSE: Operation = Operation {
    id: "close_terminal",
    method: Method::Delete,
    access: Access::Session,
    summary: "Close a terminal",
    description: "Ends its program and forgets it.",
    answers: &[Answer::empty(204, "It is closed.")],
    errors: &[ErrorCode::NotFound, ErrorCode::GuardDenied],
    ..GET
};

/// Looks at a terminal and types into it.
pub const SOCKET: Operation = Operation {
    id: "terminal_socket",
    path: "/v1/sessions/{session}/terminals/{terminal}/socket",
    access: Access::ReadOrTicket,
    deadline: Deadline::Long,
    summary: "Look at a terminal and type into it, over a WebSocket",
    description: "Binary messages are bytes: output one way, input the other, for which the key \
                  must be one that may use sessions. Text messages are JSON: the client may ask \
                  for another size with `resize`, the server says `cursor`, `exit` and `error`. \
                  Whoever reads too slowly is told a cursor and disconnected, and comes back with \
                  it as `from`.",
    parameters: &[
        Parameter::query(
            "from",
            ParameterType::Count,
            "The number of the first byte; as far back as it is kept when left out.",
        ),
        Parameter::query(
            "ticket",
            ParameterType::Text,
            "A ticket instead of a key, for clients that cannot send headers.",
        ),
    ],
    answers: &[Answer::with(
        101,
        "A WebSocket.",
        Content::json(of::<TerminalNotice>),
    )],
    errors: &[ErrorCode::NotFound, ErrorCode::GuardDenied],
    ..GET
};
