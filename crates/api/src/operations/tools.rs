//! Tools of a session: functions that agents call.

use crate::{
    Access, ActionAccepted, AddTools, Answer, CallTool, Content, Deadline, ErrorCode,
    IDEMPOTENCY_KEY, Method, Operation, Parameter, ParameterType, Payload, ToolPage, ToolsAdded,
    operation::of,
};

const GROUP: &str = "tools";
const COLLECTION: &str = "/v1/sessions/{session}/tools";
const ITEM: &str = "/v1/sessions/{session}/tools/{tool}";

/// Every operation of this group.
pub const ALL: &[&Operation] = &[&ADD, &LIST, &CALL, &REMOVE, &RESET];

/// Adds tools.
pub const ADD: Operation = Operation {
    id: "add_tools",
    method: Method::Post,
    path: COLLECTION,
    access: Access::Session,
    deadline: Deadline::Long,
    group: GROUP,
    summary: "Add tools",
    description: "Functions and toolkits of Python are loaded by an interpreter in the session's \
                  sandbox, which goes on and keeps their state. They are there after a restart of \
                  the server, then with their first state. Entrypoints that cannot be loaded are \
                  told; when none can, nothing is added.",
    parameters: &[],
    body: Some(Content::json(of::<AddTools>)),
    answers: &[Answer::with(
        201,
        "What was added, and what could not be.",
        Content::json(of::<ToolsAdded>),
    )],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::Exists,
        ErrorCode::Conflict,
        ErrorCode::QuotaExceeded,
        ErrorCode::Unsupported,
        ErrorCode::BackendUnavailable,
        ErrorCode::LogFull,
    ],
};

/// Lists tools.
pub const LIST: Operation = Operation {
    id: "list_tools",
    method: Method::Get,
    access: Access::Read,
    deadline: Deadline::Short,
    summary: "List tools",
    description: "In the order in which they were added.",
    parameters: &[Parameter::query(
        "format",
        ParameterType::OneOf(&["full", "openai", "mcp"]),
        "In which form: everything that is known, as OpenAI's API takes it, or as MCP lists it.",
    )],
    body: None,
    answers: &[Answer::with(
        200,
        "All of them.",
        Content::json(of::<ToolPage>),
    )],
    errors: &[ErrorCode::NotFound],
    ..ADD
};

/// Calls a tool.
pub const CALL: Operation = Operation {
    id: "call_tool",
    path: ITEM,
    summary: "Call a tool",
    description: "The same as running the action `call_tool`: recorded, judged, and answered with \
                  an observation, also when the tool fails, times out or does not exist. A tool \
                  that is called `reset` is called by that action only.",
    parameters: &[
        Parameter::query(
            "wait",
            ParameterType::Flag,
            "Whether to wait for the observation; true when left out. A wait that gets too long \
             ends with 202.",
        ),
        Parameter::header(
            IDEMPOTENCY_KEY,
            "The caller's name for the call, 1 to 255 visible ASCII characters: a second request \
             with the same one gets the first one's answer.",
        )
        .matching("^[!-~]{1,255}$"),
    ],
    body: Some(Content::json(of::<CallTool>)),
    answers: &[
        Answer::with(
            200,
            "What came of it.",
            Content::json_of(Payload::Observation),
        ),
        Answer::with(
            202,
            "It runs; `Location` is where its observation will be.",
            Content::json(of::<ActionAccepted>),
        ),
    ],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::Conflict,
        ErrorCode::IdempotencyMismatch,
        ErrorCode::QuotaExceeded,
        ErrorCode::TooManyRequests,
        ErrorCode::LogFull,
        ErrorCode::Unsupported,
    ],
    ..ADD
};

/// Removes a tool.
pub const REMOVE: Operation = Operation {
    id: "remove_tool",
    method: Method::Delete,
    path: ITEM,
    summary: "Remove a tool",
    description: "Calls that are under way go on. An interpreter ends with its last tool.",
    body: None,
    answers: &[Answer::empty(204, "It is removed.")],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::GuardDenied,
        ErrorCode::Conflict,
        ErrorCode::LogFull,
    ],
    ..ADD
};

/// Puts tools back to their first state.
pub const RESET: Operation = Operation {
    id: "reset_tools",
    path: "/v1/sessions/{session}/tools/reset",
    summary: "Put all tools back to their first state",
    description: "Interpreters are ended and started again. Calls that are under way end with an \
                  unknown outcome.",
    body: None,
    answers: &[Answer::empty(204, "They begin anew.")],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::GuardDenied,
        ErrorCode::Conflict,
        ErrorCode::BackendUnavailable,
        ErrorCode::Unsupported,
    ],
    ..ADD
};
