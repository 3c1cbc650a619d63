//! Mistakes are answered with the texts that clients of the original know.

use serde_json::{Value, json};
use zareba_protocol::{ActionEvent, DecodeError, ErrorClass, ObservationEvent};

use crate::fixtures;

#[track_caller]
fn check(action: Value, expected: &str) {
    let error = ActionEvent::from_value(action).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

/// What the HTTP API answers, as far as this crate decides it.
fn detail(action: Value) -> String {
    let refusal = match ActionEvent::from_value(action) {
        Ok(event) => event.action.require_executable().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    format!("Internal server error: {refusal}")
}

#[test]
fn every_recorded_refusal_of_an_action_has_its_text() {
    let calls = fixtures::load("http_endpoints.json");
    let mut checked = 0;
    for call in calls.as_array().unwrap() {
        let (request, response) = (&call["request"], &call["response"]);
        if request["path"] == "/execute_action" && response["status"] == 500 {
            assert_eq!(
                detail(request["json"]["action"].clone()),
                response["json"]["detail"]
            );
            checked += 1;
        }
    }
    assert_eq!(checked, 2);
}

#[test]
fn an_unknown_type_is_answered_with_all_known_ones() {
    let known = "dict_keys(['null', 'run', 'run_ipython', 'browse', 'browse_interactive', 'read', \
        'write', 'edit', 'think', 'finish', 'reject', 'delegate', 'recall', 'change_agent_state', \
        'message', 'system', 'condensation', 'condensation_request', 'call_tool_mcp', \
        'task_tracking', 'loop_recovery', 'glob', 'grep', 'call_tool'])";
    for (kind, shown) in [
        (json!("nope"), "'nope'"),
        (json!("it's"), "\"it's\""),
        (json!(5), "5"),
        (json!(null), "None"),
        (json!(["run"]), "['run']"),
        (json!("start"), "'start'"),
    ] {
        let expected =
            format!("'action['action']={shown}' is not defined. Available actions: {known}");
        check(json!({"action": kind, "args": {}}), &expected);
    }
}

#[test]
fn an_unknown_argument_is_named_before_a_missing_one() {
    check(
        json!({"action": "write", "args": {"zzz": 1.0, "yyy": [true, null]}, "timeout": 120.0}),
        "action={'action': 'write', 'args': {'zzz': 1.0, 'yyy': [True, None]}, 'timeout': 120.0} \
         has the wrong arguments: FileWriteAction.__init__() got an unexpected keyword argument 'zzz'",
    );
}

#[test]
fn mistakes_have_plain_words_as_well() {
    let words = |document: Value| ActionEvent::from_value(document).unwrap_err().in_words();
    assert!(
        words(json!({"action": "dance"}))
            .starts_with("there is no action `dance`; there are `run`, ")
    );
    assert_eq!(
        words(json!({"action": "run", "args": {"zzz": 1, "command": "a"}})),
        "the action `run` has no argument `zzz`"
    );
    assert_eq!(
        words(json!({"action": "write"})),
        "the action `write` needs `path` and `content` in `args`"
    );
    assert_eq!(words(json!({"args": {}})), "the field `action` is missing");
    assert_eq!(
        words(json!({"observation": "run", "content": ""})),
        "it is an observation, and an action is wanted"
    );
    assert_eq!(
        words(json!({"action": "run", "args": {"command": "a"}, "source": "moon"})),
        "`source` is `agent`, `user` or `environment`, not `moon`"
    );
}

#[test]
fn missing_arguments_are_counted_and_named() {
    check(
        json!({"action": "run", "args": {}}),
        "action={'action': 'run', 'args': {}} has the wrong arguments: \
         CmdRunAction.__init__() missing 1 required positional argument: 'command'",
    );
    check(
        json!({"action": "write"}),
        "action={'action': 'write'} has the wrong arguments: \
         FileWriteAction.__init__() missing 2 required positional arguments: 'path' and 'content'",
    );
    check(
        json!({"action": "write", "args": {"path": "a"}}),
        "action={'action': 'write', 'args': {'path': 'a'}} has the wrong arguments: \
         FileWriteAction.__init__() missing 1 required positional argument: 'content'",
    );
}

#[test]
fn every_class_is_named_as_the_original_names_it() {
    let classes = [
        ("null", "NullAction"),
        ("run", "CmdRunAction"),
        ("run_ipython", "IPythonRunCellAction"),
        ("browse", "BrowseURLAction"),
        ("browse_interactive", "BrowseInteractiveAction"),
        ("read", "FileReadAction"),
        ("write", "FileWriteAction"),
        ("edit", "FileEditAction"),
        ("think", "AgentThinkAction"),
        ("finish", "AgentFinishAction"),
        ("reject", "AgentRejectAction"),
        ("delegate", "AgentDelegateAction"),
        ("recall", "RecallAction"),
        ("change_agent_state", "ChangeAgentStateAction"),
        ("message", "MessageAction"),
        ("system", "SystemMessageAction"),
        ("condensation", "CondensationAction"),
        ("condensation_request", "CondensationRequestAction"),
        ("call_tool_mcp", "MCPAction"),
        ("task_tracking", "TaskTrackingAction"),
        ("loop_recovery", "LoopRecoveryAction"),
    ];
    for (kind, class) in classes {
        check(
            json!({"action": kind, "args": {"zzz": 1}}),
            &format!(
                "action={{'action': '{kind}', 'args': {{'zzz': 1}}}} has the wrong arguments: \
                 {class}.__init__() got an unexpected keyword argument 'zzz'"
            ),
        );
    }
}

#[test]
fn an_observation_is_no_action() {
    check(
        json!({"observation": "run", "content": ""}),
        "400: Invalid action type",
    );
}

#[test]
fn a_source_that_nobody_knows_is_shown() {
    check(
        json!({"action": "run", "args": {"command": "ls"}, "source": "martian"}),
        "'martian' is not a valid EventSource",
    );
    check(
        json!({"action": "null", "source": 5}),
        "5 is not a valid EventSource",
    );
}

#[test]
fn a_document_without_a_type_is_shown() {
    check(json!({}), "Unknown event type: {}");
    check(
        json!({"args": {"a": "b"}}),
        "Unknown event type: {'args': {'a': 'b'}}",
    );
}

#[test]
fn a_wrong_type_of_value_names_its_field() {
    let cases = [
        (
            json!({"action": "run", "args": {"command": 5}}),
            "field `command` of `run`: invalid type: integer `5`, expected a string",
        ),
        (
            json!({"action": "run", "args": {"command": "ls", "hidden": "yes"}}),
            "field `hidden` of `run`: invalid type: string \"yes\", expected a boolean",
        ),
        (
            json!({"action": "run", "args": {"command": null}}),
            "field `args` of `run`: missing field `command`",
        ),
        (
            json!({"action": "edit", "args": {"path": "/a", "insert_line": [1]}}),
            "field `insert_line` of `edit`: expected a number or a string, got [1]",
        ),
        (
            json!({"action": "recall", "args": {"recall_type": "dreams"}}),
            "field `recall_type` of `recall`: unknown variant `dreams`, expected \
             `workspace_context` or `knowledge`",
        ),
        (
            json!({"action": "null", "args": [1]}),
            "field `args` of `null`: expected an object, got an array",
        ),
        (
            json!({"action": "null", "timeout": "1"}),
            "field `timeout` of `null`: expected a number of seconds, got a string",
        ),
        (
            json!({"action": "null", "id": "x"}),
            "field `id` of `null`: expected an integer, got a string",
        ),
        (
            json!({"action": "null", "args": {"timestamp": 5}}),
            "field `timestamp` of `null`: expected a string, got a number",
        ),
        (
            json!({"action": "null", "shell": "../x"}),
            "field `shell` of `null`: a shell name has 1 to 64 characters out of letters, digits, \
             `_`, `.` and `-`",
        ),
        (
            json!({"action": "null", "once": "a b"}),
            "field `once` of `null`: such a name has 1 to 128 visible ASCII characters",
        ),
        (
            json!({"action": "condensation", "args": {}}),
            "field `forgotten_event_ids` of `condensation`: give either this list, or \
             forgotten_events_start_id and forgotten_events_end_id",
        ),
        (
            json!({"action": "condensation", "args": {"forgotten_event_ids": [], "summary": "s"}}),
            "field `summary` of `condensation`: give it together with summary_offset, or neither",
        ),
    ];
    for (action, expected) in cases {
        check(action, expected);
    }
}

#[test]
fn what_is_no_object_is_refused() {
    for (value, found) in [
        (json!(null), "null"),
        (json!(true), "a boolean"),
        (json!(1), "a number"),
        (json!("run"), "a string"),
        (json!([]), "an array"),
    ] {
        assert_eq!(
            ActionEvent::from_value(value.clone()),
            Err(DecodeError::NotAnObject { found })
        );
        assert_eq!(
            ObservationEvent::from_value(value),
            Err(DecodeError::NotAnObject { found })
        );
    }
}

#[test]
fn deep_nesting_is_refused_and_does_not_overflow() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let json =
        format!(r#"{{"action": "call_tool_mcp", "args": {{"name": "x", "arguments": {deep}}}}}"#);
    let error = ActionEvent::from_json(json.as_bytes()).unwrap_err();
    assert!(
        matches!(&error, DecodeError::Syntax { message } if message.contains("recursion limit"))
    );
    assert_eq!(error.class(), ErrorClass::Invalid);
}

#[test]
fn an_observation_needs_a_known_type_and_its_fields() {
    let cases = [
        (
            json!({"observation": "chat"}),
            "unknown observation type 'chat'",
        ),
        (
            json!({"action": "run"}),
            "Unknown event type: {'action': 'run'}",
        ),
        (
            json!({"observation": "run", "content": ""}),
            "field `extras` of `run`: missing field `command`",
        ),
        (
            json!({"observation": "read", "extras": {"path": 1}}),
            "field `path` of `read`: invalid type: integer `1`, expected a string",
        ),
        (
            json!({"observation": "success", "content": 1}),
            "field `content` of `success`: expected a string, got a number",
        ),
    ];
    for (observation, expected) in cases {
        let error = ObservationEvent::from_value(observation).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
