//! What the server tells of itself.

use crate::{
    Access, Answer, Content, Deadline, Health, Limits, Method, Operation, Payload, Readiness,
    RuntimePage, ServerStatus, operation::of,
};

const GROUP: &str = "service";

/// Every operation of this group.
pub const ALL: &[&Operation] = &[
    &HEALTH, &READY, &STATUS, &RUNTIMES, &LIMITS, &OPENAPI, &METRICS,
];

/// Says that the server answers.
pub const HEALTH: Operation = Operation {
    id: "health",
    method: Method::Get,
    path: "/v1/health",
    access: Access::Public,
    deadline: Deadline::Short,
    group: GROUP,
    summary: "Whether the server answers",
    description: "Needs no key, says always the same and is answered under overload.",
    parameters: &[],
    body: None,
    answers: &[Answer::with(200, "It does.", Content::json(of::<Health>))],
    errors: &[],
};

/// Says whether sessions can be made and used.
pub const READY: Operation = Operation {
    id: "ready",
    path: "/v1/ready",
    access: Access::Read,
    summary: "Whether sessions can be made and used",
    description: "503 while the event log cannot be written or the server is ending.",
    answers: &[
        Answer::with(200, "They can.", Content::json(of::<Readiness>)),
        Answer::with(503, "They cannot.", Content::json(of::<Readiness>)),
    ],
    ..HEALTH
};

/// Says how the server is.
pub const STATUS: Operation = Operation {
    id: "status",
    path: "/v1/status",
    access: Access::Read,
    summary: "How the server is",
    description: "Counts are of everyone's sessions. Keys for one session are refused.",
    answers: &[Answer::with(
        200,
        "The status.",
        Content::json(of::<ServerStatus>),
    )],
    ..HEALTH
};

/// Lists the runtimes.
pub const RUNTIMES: Operation = Operation {
    id: "list_runtimes",
    path: "/v1/runtimes",
    access: Access::Read,
    summary: "Where sessions can run",
    description: "With what each runtime can promise on this machine.",
    answers: &[Answer::with(
        200,
        "The runtimes.",
        Content::json(of::<RuntimePage>),
    )],
    ..HEALTH
};

/// Lists the limits.
pub const LIMITS: Operation = Operation {
    id: "limits",
    path: "/v1/limits",
    access: Access::Read,
    summary: "What may be asked for at most",
    description: "",
    answers: &[Answer::with(
        200,
        "The limits.",
        Content::json(of::<Limits>),
    )],
    ..HEALTH
};

/// Gives this description.
pub const OPENAPI: Operation = Operation {
    id: "openapi",
    path: "/v1/openapi.json",
    access: Access::Read,
    summary: "This document",
    description: "",
    answers: &[Answer::with(
        200,
        "An OpenAPI 3.1 document.",
        Content::json_of(Payload::AnyJson),
    )],
    ..HEALTH
};

/// Gives counters.
pub const METRICS: Operation = Operation {
    id: "metrics",
    path: "/metrics",
    access: Access::Read,
    summary: "Counters for Prometheus",
    description: "Keys for one session are refused.",
    answers: &[Answer::with(
        200,
        "Text exposition format 0.0.4.",
        Content::other("text/plain; version=0.0.4", Payload::Text),
    )],
    ..HEALTH
};
