//! Random documents and random events.

use proptest::{option, prelude::*, sample::select};
use serde_json::{Map, Value};
use zareba_protocol::{
    ActionEvent, AgentState, EventSource, Observation, ObservationEvent, RecallKind, ShellName,
};

mod actions;
mod observations;

/// Names that mean something somewhere in the contract.
const NAMES: &[&str] = &[
    "command",
    "code",
    "path",
    "content",
    "url",
    "name",
    "arguments",
    "thought",
    "security_risk",
    "is_confirmed",
    "images_urls",
    "keep_prompt",
    "timestamp",
    "insert_line",
    "view_range",
    "metadata",
    "exit_code",
    "command_id",
    "recall_type",
    "agent_state",
    "outputs",
    "zzz",
];

const KINDS: &[&str] = &[
    "null",
    "run",
    "run_ipython",
    "read",
    "write",
    "edit",
    "browse",
    "browse_interactive",
    "glob",
    "grep",
    "call_tool_mcp",
    "call_tool",
    "tool",
    "message",
    "think",
    "finish",
    "delegate",
    "recall",
    "condensation",
    "task_tracking",
    "error",
    "mcp",
    "agent_state_changed",
    "download",
    "nope",
];

pub(crate) fn kind() -> impl Strategy<Value = &'static str> {
    select(KINDS)
}

/// Any JSON value. Fractions are eighths, which every parser reads back exactly.
pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        eighths().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

pub(crate) fn object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((name(), json()), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

pub(crate) fn action_event() -> impl Strategy<Value = ActionEvent> {
    let shell = option::of("[A-Za-z0-9_.-]{1,64}".prop_map(|name| ShellName::new(name).unwrap()));
    (
        origin(),
        opaque(),
        opaque(),
        option::of(eighths()),
        (shell, option::of("[!-~]{1,128}")),
        actions::action(),
    )
        .prop_map(
            |(
                (id, timestamp, source, cause),
                tool_call_metadata,
                llm_metrics,
                timeout,
                (shell, once),
                action,
            )| {
                ActionEvent {
                    id,
                    timestamp,
                    source,
                    cause,
                    timeout,
                    tool_call_metadata,
                    llm_metrics,
                    shell,
                    once,
                    action,
                }
            },
        )
}

pub(crate) fn observation_event() -> impl Strategy<Value = ObservationEvent> {
    (
        origin(),
        opaque(),
        opaque(),
        text(),
        observations::observation_kind(),
    )
        .prop_map(
            |((id, timestamp, source, cause), tool_call_metadata, llm_metrics, content, kind)| {
                ObservationEvent {
                    id,
                    timestamp,
                    source,
                    cause,
                    tool_call_metadata,
                    llm_metrics,
                    observation: Observation { content, kind },
                }
            },
        )
}

type Origin = (
    Option<i64>,
    Option<String>,
    Option<EventSource>,
    Option<i64>,
);

fn origin() -> impl Strategy<Value = Origin> {
    let source = select(vec![
        EventSource::Agent,
        EventSource::User,
        EventSource::Environment,
    ]);
    let number = || option::of(0..=i64::MAX);
    (number(), option::of(text()), option::of(source), number())
}

fn opaque() -> impl Strategy<Value = Option<Value>> {
    option::of(object().prop_map(Value::Object))
}

fn text() -> impl Strategy<Value = String> + Clone {
    prop_oneof![Just(String::new()), any::<String>(), "[ -~\n]{0,20}"]
}

fn texts() -> impl Strategy<Value = Option<Vec<String>>> {
    option::of(prop::collection::vec(text(), 0..3))
}

fn name() -> impl Strategy<Value = String> + Clone {
    prop_oneof![4 => select(NAMES).prop_map(str::to_owned), 1 => any::<String>()]
}

fn eighths() -> impl Strategy<Value = f64> {
    any::<i32>().prop_map(|number| f64::from(number) / 8.0)
}

fn recall_kind() -> impl Strategy<Value = RecallKind> {
    select(vec![RecallKind::WorkspaceContext, RecallKind::Knowledge])
}

fn agent_state() -> impl Strategy<Value = AgentState> {
    select(vec![
        AgentState::Loading,
        AgentState::Running,
        AgentState::AwaitingUserInput,
        AgentState::Paused,
        AgentState::Stopped,
        AgentState::Finished,
        AgentState::Rejected,
        AgentState::Error,
        AgentState::AwaitingUserConfirmation,
        AgentState::UserConfirmed,
        AgentState::UserRejected,
        AgentState::RateLimited,
    ])
}
