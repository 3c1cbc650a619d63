//! Sentences and texts that are derived from events beyond what the recordings show.

use serde_json::{Map, Value, json};
use std::time::Duration;
use zareba_protocol::{
    Action, ActionEvent, CallTool, CommandMetadata, CommandOutput, Condensation, Finish,
    Observation, Recall, RecallKind, Reject, RunCommand, Think, TrackTasks, UseTool,
};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[track_caller]
fn check(action: impl Into<Action>, expected: &str) {
    assert_eq!(action.into().message(), expected);
}

#[test]
fn a_thought_and_a_reason_are_told() {
    check(
        Finish {
            thought: "bye".to_owned(),
            ..Finish::default()
        },
        "bye",
    );
    check(
        Reject {
            outputs: object(json!({"reason": "too hard"})),
            ..Reject::default()
        },
        "Task is rejected by the agent. Reason: too hard",
    );
}

#[test]
fn a_long_query_is_cut() {
    let recall = Recall {
        recall_type: RecallKind::Knowledge,
        query: "é".repeat(60),
        thought: String::new(),
    };
    check(
        recall,
        &format!("Retrieving content for: {}", "é".repeat(50)),
    );
}

#[test]
fn tasks_are_counted() {
    let tasks = |count| TrackTasks {
        task_list: vec![Map::new(); count],
        ..TrackTasks::default()
    };
    check(tasks(0), "Clearing the task list.");
    check(tasks(1), "Managing 1 task item.");
    check(tasks(2), "Managing 2 task items.");
}

#[test]
fn a_condensation_tells_its_summary_or_its_events() {
    let range = |start, end| Condensation {
        forgotten_events_start_id: Some(start),
        forgotten_events_end_id: Some(end),
        ..Condensation::default()
    };
    check(
        range(3, 6),
        "Condenser is dropping the events: [3, 4, 5, 6].",
    );
    check(range(6, 3), "Condenser is dropping the events: [].");
    let summary = Some("short".to_owned());
    check(
        Condensation {
            summary,
            summary_offset: Some(1),
            ..range(3, 6)
        },
        "Summary: short",
    );
    let endless = Action::from(range(0, i64::MAX));
    assert!(endless.message().ends_with("998, 999, ...]."));
}

#[test]
fn arguments_of_a_tool_are_shown_as_python_shows_them() {
    check(
        CallTool::new("t", object(json!({"a": "it's", "b": [null, true]}))),
        "I am interacting with the MCP server with name:\n```\nt\n```\nand arguments:\n```\n\
         {'a': \"it's\", 'b': [None, True]}\n```",
    );
}

#[test]
fn the_agent_reads_the_output_in_its_frame() {
    let mut output = CommandOutput::new("ls");
    assert_eq!(
        Observation::run("out", output.clone()).text_for_agent(),
        "out"
    );
    output.metadata = CommandMetadata {
        exit_code: 1,
        working_dir: Some("/workspace".to_owned()),
        py_interpreter_path: Some("/usr/bin/python".to_owned()),
        prefix: "[before]\n".to_owned(),
        suffix: "\n[after]".to_owned(),
        ..CommandMetadata::default()
    };
    assert_eq!(
        Observation::run("out", output).text_for_agent(),
        "[before]\nout\n[after]\n[Current working directory: /workspace]\n\
         [Python interpreter: /usr/bin/python]\n[Command finished with exit code 1]"
    );
    assert_eq!(Observation::error("no").text_for_agent(), "no");
}

#[test]
fn only_some_actions_are_executed() {
    let run = Action::from(RunCommand::new("ls"));
    assert_eq!(
        (run.is_runnable(), run.require_executable()),
        (true, Ok(()))
    );
    let tool = Action::from(CallTool::new("t", Map::new()));
    let refusal = tool.require_executable().unwrap_err();
    assert!(tool.is_runnable());
    assert_eq!(
        refusal.to_string(),
        "'ActionExecutor' object has no attribute 'call_tool_mcp'"
    );
    let tool = Action::from(UseTool::new("t", Map::new()));
    assert!(tool.is_runnable() && !tool.is_executable());
    assert!(!Action::from(Think::new("x")).is_runnable());
}

#[test]
fn any_timeout_becomes_a_duration_without_a_panic() {
    let of = |seconds| {
        ActionEvent::from(Action::Null)
            .with_timeout(seconds)
            .hard_timeout()
    };
    assert_eq!(of(2.5), Some(Duration::from_millis(2_500)));
    assert_eq!(of(-1.0), Some(Duration::ZERO));
    assert_eq!(of(1e300), None);
    assert_eq!(of(f64::NAN), None);
    assert_eq!(ActionEvent::from(Action::Null).hard_timeout(), None);
}
