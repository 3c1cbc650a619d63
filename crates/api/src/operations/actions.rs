//! Running actions.

use crate::{
    Access, ActionAccepted, Answer, Content, Deadline, ErrorCode, IDEMPOTENCY_KEY, LAST_EVENT_ID,
    Method, Operation, Parameter, ParameterType, Payload, operation::of,
};

const GROUP: &str = "actions";

/// Every operation of this group.
pub const ALL: &[&Operation] = &[&RUN, &ANSWER, &OUTPUT, &STOP];

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

/// Streams the output of an action.
pub const OUTPUT: Operation = Operation {
    id: "stream_output",
    path: "/v1/sessions/{session}/actions/{action}/output",
    access: Access::ReadOrTicket,
    summary: "Read what an action writes, as it comes",
    description: "Server-sent events. `output` has `text`: all texts joined are what a command \
                  wrote to its terminal while the action lasted, to the letter. `end` follows \
                  the last one; `whole` says whether nothing is missing but `skipped` bytes that \
                  were too many to keep. `id` is how many bytes of text there were until then: a \
                  stream that breaks off goes on there with `Last-Event-ID` or `from`. Silence is \
                  filled with comments. Output is kept for a while after the action, and no \
                  reader of it is recorded.",
    parameters: &[
        Parameter::query(
            "from",
            ParameterType::Count,
            "How many bytes of text the client has; 0 when left out.",
        ),
        Parameter::query(
            "wait",
            ParameterType::Seconds,
            "How long to wait for more; until the action ends when left out.",
        ),
        Parameter::query(
            "ticket",
            ParameterType::Text,
            "A ticket instead of a key, for clients that cannot send headers.",
        ),
        Parameter::header(LAST_EVENT_ID, "The `id` of the last event seen.")
            .matching("^[0-9]{1,19}$"),
    ],
    answers: &[Answer::with(
        200,
        "The output, until the action ends.",
        Content::other("text/event-stream", Payload::Text),
    )],
    errors: &[ErrorCode::NotFound, ErrorCode::Unsupported],
    ..ANSWER
};

/// Stops an action.
pub const STOP: Operation = Operation {
    id: "stop_action",
    path: "/v1/sessions/{session}/actions/{action}/stop",
    summary: "End an action before its time",
    description: "Its observation tells what came of it, as of any other action. An action that \
                  waits for its turn is not run; one that has ended stays as it is. A call of a \
                  tool is ended by either means.",
    parameters: &[Parameter::query(
        "means",
        ParameterType::OneOf(&["interrupt", "kill"]),
        "`interrupt`, when left out, presses Ctrl-C at its terminal, of which a program may take \
         no notice; `kill` kills its shell with everything in it.",
    )],
    body: None,
    answers: &[Answer::empty(204, "It was asked to end, or has ended.")],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::Conflict,
        ErrorCode::Unsupported,
    ],
    ..RUN
};
