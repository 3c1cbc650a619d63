//! Keys and tickets.

use crate::{
    Access, Answer, Content, CreateKey, CreateSessionKey, CreatedKey, Deadline, ErrorCode, KeyPage,
    Method, Operation, Ticket, operation::of,
};

const GROUP: &str = "keys";

/// Every operation of this group.
pub const ALL: &[&Operation] = &[&CREATE, &LIST, &DELETE, &CREATE_FOR_SESSION, &CREATE_TICKET];

/// Makes a key.
pub const CREATE: Operation = Operation {
    id: "create_key",
    method: Method::Post,
    path: "/v1/keys",
    access: Access::Admin,
    deadline: Deadline::Short,
    group: GROUP,
    summary: "Make a key",
    description: "The secret is shown in this answer and never again.",
    parameters: &[],
    body: Some(Content::json(of::<CreateKey>)),
    answers: &[Answer::with(
        201,
        "The key with its secret.",
        Content::json(of::<CreatedKey>),
    )],
    errors: &[ErrorCode::QuotaExceeded, ErrorCode::LogFull],
};

/// Lists keys.
pub const LIST: Operation = Operation {
    id: "list_keys",
    method: Method::Get,
    summary: "List keys",
    description: "Without their secrets, which nobody has.",
    body: None,
    answers: &[Answer::with(200, "The keys.", Content::json(of::<KeyPage>))],
    errors: &[],
    ..CREATE
};

/// Removes a key.
pub const DELETE: Operation = Operation {
    id: "delete_key",
    method: Method::Delete,
    path: "/v1/keys/{key}",
    summary: "Remove a key",
    description: "From now on it is not valid; streams that it opened end. Servers that share a \
                  database learn of it within seconds.",
    answers: &[Answer::empty(204, "It is gone.")],
    errors: &[ErrorCode::NotFound],
    ..LIST
};

/// Makes a key for one session.
pub const CREATE_FOR_SESSION: Operation = Operation {
    id: "create_session_key",
    path: "/v1/sessions/{session}/keys",
    access: Access::Session,
    summary: "Make a key for one session",
    description: "For whoever shall reach this session and no other. The secret is shown in this \
                  answer and never again. Keys for one session cannot make others.",
    body: Some(Content::json(of::<CreateSessionKey>)),
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::GuardDenied,
        ErrorCode::QuotaExceeded,
        ErrorCode::LogFull,
    ],
    ..CREATE
};

/// Makes a ticket.
pub const CREATE_TICKET: Operation = Operation {
    id: "create_ticket",
    path: "/v1/sessions/{session}/tickets",
    access: Access::Read,
    summary: "Make a ticket for one stream of a session",
    description: "For clients that cannot send headers: it stands for the key in the query of \
                  one stream, once, for a short time, on this server.",
    body: None,
    answers: &[Answer::with(
        201,
        "The ticket.",
        Content::json(of::<Ticket>),
    )],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::GuardDenied,
        ErrorCode::QuotaExceeded,
    ],
    ..CREATE
};
