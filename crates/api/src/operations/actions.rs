//! Running actions.

use crate::{
    Access, ActionAccepted, Answer, Content, Deadline, ErrorCode, IDEMPOTENCY_KEY, Method,
    Operation, Parameter, ParameterType, Payload, operation::of,
};

const GROUP: &str = "actions";

/// Every operation of this group.
pub const ALL: &[&Operation] = &[&RUN, &ANSWER];

const ACCEPTED: Answer = Answer::with(
    202,
    "It runs; `Location` is where its observation will be.",
    Content::json(of::<ActionAccepted>),
);

/// Runs an action.
pub const RUN: Operation = Operation {
    id: "run_action",
    method: Method::Post,
    path: "/v1/sessions/{session}/actions",
    access: Access::Session,
    deadline: Deadline::Long,
    group: GROUP,
    summary: "Run an action",
    description: "The action is recorded before it runs and its observation before it is \
                  answered. A command that fails, times out or is refused is answered 200: that \
                  is an observation. A client that goes away does not stop the action. Actions \
                  of one shell run in the order in which they came.",
    parameters: &[
        Parameter::query(
            "wait",
            ParameterType::Flag,
            "Whether to wait for the observation; true when left out. A wait that gets too long \
             ends with 202.",
        ),
        Parameter::header(
            IDEMPOTENCY_KEY,
            "The caller's name for the action, 1 to 255 visible ASCII characters: a second \
             request with the same one gets the first one's answer.",
        )
        .matching("^[!-~]{1,255}$"),
    ],
    body: Some(Content::json_of(Payload::Action)),
    answers: &[
        Answer::with(
            200,
            "What came of it.",
            Content::json_of(Payload::Observation),
        ),
        ACCEPTED,
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
};

/// Asks for an observation.
pub const ANSWER: Operation = Operation {
    id: "get_observation",
    method: Method::Get,
    path: "/v1/sessions/{session}/actions/{action}",
    access: Access::Read,
    summary: "What came of an action",
    description: "Also long after it has ended.",
    parameters: &[Parameter::query(
        "wait",
        ParameterType::Seconds,
        "How long to wait for it; not at all when left out.",
    )],
    body: None,
    errors: &[ErrorCode::NotFound],
    ..RUN
};
