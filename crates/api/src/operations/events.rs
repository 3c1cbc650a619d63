//! Reading what happened.

use crate::{
    Access, Answer, Content, Deadline, ErrorCode, Event, EventPage, LAST_EVENT_ID, Method,
    Operation, Parameter, ParameterType, Payload, operation::of,
};

const GROUP: &str = "events";

/// Every operation of this group.
pub const ALL: &[&Operation] = &[&PAGE, &STREAM, &SOCKET, &BLOB];

const FROM: Parameter = Parameter::query(
    "from",
    ParameterType::Count,
    "The number of the first event; 0 when left out.",
);
const TICKET: Parameter = Parameter::query(
    "ticket",
    ParameterType::Text,
    "A ticket instead of a key, for clients that cannot send headers.",
);

/// Reads some events.
pub const PAGE: Operation = Operation {
    id: "list_events",
    method: Method::Get,
    path: "/v1/sessions/{session}/events",
    access: Access::Read,
    deadline: Deadline::Short,
    group: GROUP,
    summary: "Read some events",
    description: "In order, from a number on; an empty page is the end for now.",
    parameters: &[
        FROM,
        Parameter::query("limit", ParameterType::Count, "How many at most."),
    ],
    body: None,
    answers: &[Answer::with(
        200,
        "A page of them.",
        Content::json(of::<EventPage>),
    )],
    errors: &[ErrorCode::NotFound, ErrorCode::LogIoError],
};

/// Streams events.
pub const STREAM: Operation = Operation {
    id: "stream_events",
    path: "/v1/sessions/{session}/events/stream",
    access: Access::ReadOrTicket,
    deadline: Deadline::Long,
    summary: "Read events as they come",
    description: "Server-sent events: `id` is the event's number, `event` its kind, `data` the \
                  event. A stream that breaks off goes on where it was with `Last-Event-ID` or \
                  `from`. Silence is filled with comments.",
    parameters: &[
        FROM,
        TICKET,
        Parameter::header(LAST_EVENT_ID, "The number of the last event seen.")
            .matching("^[0-9]{1,19}$"),
    ],
    answers: &[Answer::with(
        200,
        "Events without an end.",
        Content::other("text/event-stream", Payload::Text),
    )],
    ..PAGE
};

/// Streams events over a WebSocket.
pub const SOCKET: Operation = Operation {
    id: "events_socket",
    path: "/v1/sessions/{session}/events/socket",
    summary: "Read events as they come, over a WebSocket",
    description: "Each text message is one event. A connection that breaks off goes on where it \
                  was with `from`. Whoever does not answer pings is disconnected.",
    parameters: &[FROM, TICKET],
    answers: &[Answer::with(
        101,
        "A WebSocket of events.",
        Content::json(of::<Event>),
    )],
    ..STREAM
};

/// Reads a large part of an event.
pub const BLOB: Operation = Operation {
    id: "get_blob",
    path: "/v1/sessions/{session}/blobs/{digest}",
    deadline: Deadline::Long,
    summary: "Read what is too large for an event",
    description: "By the SHA-256 with which an event of this session refers to it, in \
                  hexadecimal.",
    parameters: &[Parameter::query(
        "event",
        ParameterType::Count,
        "The number of the event that refers to it.",
    )
    .required()],
    answers: &[Answer::with(
        200,
        "The bytes.",
        Content::other("application/octet-stream", Payload::Bytes),
    )],
    ..PAGE
};
