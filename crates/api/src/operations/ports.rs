//! Ports of a session.

use crate::{
    Access, Answer, Content, Deadline, ErrorCode, Method, Operation, Parameter, PortPage,
    SharedPort, operation::of,
};

const GROUP: &str = "ports";
const ITEM: &str = "/v1/sessions/{session}/ports/{port}";

/// Every operation of this group.
pub const ALL: &[&Operation] = &[&LIST, &SHARE, &UNSHARE, &CONNECT];

/// What a connection is upgraded to.
pub const UPGRADE_NAME: &str = "zareba-port";

/// Lists ports.
pub const LIST: Operation = Operation {
    id: "list_ports",
    method: Method::Get,
    path: "/v1/sessions/{session}/ports",
    access: Access::Session,
    deadline: Deadline::Long,
    group: GROUP,
    summary: "List ports",
    description: "Those that programs listen on, as far as that is known, and those that are \
                  shared, with their addresses.",
    parameters: &[],
    body: None,
    answers: &[Answer::with(
        200,
        "The ports.",
        Content::json(of::<PortPage>),
    )],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::GuardDenied,
        ErrorCode::Conflict,
        ErrorCode::BackendUnavailable,
    ],
};

/// Shares a port.
pub const SHARE: Operation = Operation {
    id: "share_port",
    method: Method::Post,
    path: ITEM,
    summary: "Share a port",
    description: "Gives an address that nobody can guess, at which the HTTP server on that port \
                  is reached, WebSockets included. Sharing twice gives the same address. It holds \
                  until it is taken back, the session is closed or the server ends.",
    answers: &[Answer::with(
        200,
        "Where it is shared.",
        Content::json(of::<SharedPort>),
    )],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::GuardDenied,
        ErrorCode::Conflict,
        ErrorCode::QuotaExceeded,
        ErrorCode::LogFull,
    ],
    ..LIST
};

/// Takes an address back.
pub const UNSHARE: Operation = Operation {
    id: "unshare_port",
    method: Method::Delete,
    summary: "Take a shared port back",
    description: "Its address is not known any more, and connections to it are closed.",
    answers: &[Answer::empty(204, "It is not shared.")],
    errors: &[ErrorCode::NotFound, ErrorCode::GuardDenied],
    ..SHARE
};

/// Connects to a port.
pub const CONNECT: Operation = Operation {
    id: "connect_port",
    path: "/v1/sessions/{session}/ports/{port}/connection",
    summary: "Connect to a port",
    description: "Takes the connection over: its bytes go to whatever listens on that port inside, \
                  and come from it. Nothing is shared by that.",
    parameters: &[
        Parameter::header("connection", "`upgrade`.").required(),
        Parameter::header("upgrade", "`zareba-port`.").required(),
    ],
    answers: &[Answer::empty(101, "It is connected; bytes follow.")],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::GuardDenied,
        ErrorCode::Conflict,
        ErrorCode::BadGateway,
        ErrorCode::Unsupported,
        ErrorCode::BackendUnavailable,
    ],
    ..LIST
};
