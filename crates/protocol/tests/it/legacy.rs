//! Old spellings are understood.

use serde_json::{Value, json};
use zareba_protocol::{
    Action, ActionEvent, CommandMetadata, CommandOutput, ConfirmationState, EditFile, Observation,
    ObservationEvent, ObservationKind, ReadFile, ReadSource, RunCommand, SecurityRisk, SendMessage,
};

#[track_caller]
fn check(action: Value, expected: impl Into<Action>) {
    assert_eq!(
        ActionEvent::from_value(action),
        Ok(ActionEvent::from(expected.into()))
    );
}

#[test]
fn a_timestamp_among_the_arguments_becomes_the_events() {
    let with_two = |outer: Option<&str>| json!({"action": "null", "args": {"timestamp": "2024-01-01"}, "timestamp": outer});
    let stamped = |timestamp: &str| ActionEvent {
        timestamp: Some(timestamp.to_owned()),
        ..ActionEvent::from(Action::Null)
    };
    assert_eq!(
        ActionEvent::from_value(with_two(None)),
        Ok(stamped("2024-01-01"))
    );
    assert_eq!(
        ActionEvent::from_value(with_two(Some("2025-02-02"))),
        Ok(stamped("2025-02-02"))
    );
}

#[test]
fn old_names_of_arguments_are_renamed() {
    check(
        json!({"action": "run", "args": {"command": "ls", "is_confirmed": "rejected"}}),
        RunCommand {
            confirmation_state: ConfirmationState::Rejected,
            ..RunCommand::new("ls")
        },
    );
    check(
        json!({"action": "message", "args": {"content": "hi", "images_urls": ["a"]}}),
        SendMessage {
            image_urls: Some(vec!["a".to_owned()]),
            ..SendMessage::new("hi")
        },
    );
    check(
        json!({"action": "run", "args": {"command": "ls", "is_confirmed": null}}),
        RunCommand::new("ls"),
    );
}

#[test]
fn arguments_that_meant_something_once_are_dropped() {
    check(
        json!({"action": "run", "args": {"command": "ls", "keep_prompt": false, "task_completed": 1}}),
        RunCommand::new("ls"),
    );
}

#[test]
fn a_risk_that_is_none_is_dropped() {
    for risk in [json!(7), json!(300), json!("high"), json!([]), json!(null)] {
        check(
            json!({"action": "run", "args": {"command": "ls", "security_risk": risk}}),
            RunCommand::new("ls"),
        );
    }
    check(
        json!({"action": "run", "args": {"command": "ls", "security_risk": 1}}),
        RunCommand {
            security_risk: SecurityRisk::Medium,
            ..RunCommand::new("ls")
        },
    );
}

#[test]
fn an_editor_call_in_python_is_merged() {
    let code = "print(file_editor(**{'command': 'view', 'path': '/a', 'view_range': [1, 5]}))";
    check(
        json!({"action": "read", "args": {
            "path": "/old", "impl_source": "oh_aci", "translated_ipython_code": code,
        }}),
        ReadFile {
            impl_source: ReadSource::Editor,
            view_range: Some(vec![1, 5]),
            ..ReadFile::new("/a")
        },
    );
    let code =
        r"print(file_editor(**{'command': 'str_replace', 'path': '/a', 'old_str': 'it\'s'}))";
    check(
        json!({"action": "edit", "args": {"path": "/a", "translated_ipython_code": code}}),
        EditFile {
            old_str: Some("it's".to_owned()),
            ..EditFile::new("/a", "str_replace")
        },
    );
}

#[test]
fn other_python_is_just_removed() {
    for code in [
        json!("print(1)"),
        json!(null),
        json!(5),
        json!("print(file_editor(**x))"),
    ] {
        check(
            json!({"action": "read", "args": {"path": "/a", "translated_ipython_code": code}}),
            ReadFile::new("/a"),
        );
    }
    check(
        json!({"action": "edit", "args": {"path": "/a", "command": "view"}}),
        EditFile::new("/a", "view"),
    );
}

#[test]
fn an_error_shows_the_arguments_as_they_were_understood() {
    let action = json!({"action": "run", "args": {
        "keep_prompt": true, "command": "ls", "is_confirmed": "confirmed", "zzz": 1, "timestamp": "t",
    }});
    assert_eq!(
        ActionEvent::from_value(action).unwrap_err().to_string(),
        "action={'action': 'run', 'args': {'command': 'ls', 'zzz': 1, 'confirmation_state': \
         'confirmed'}} has the wrong arguments: CmdRunAction.__init__() got an unexpected keyword \
         argument 'zzz'",
    );
}

#[test]
fn a_line_may_be_a_number_or_a_text() {
    for line in [json!(3), json!("3"), json!("x")] {
        check(
            json!({"action": "edit", "args": {"path": "/a", "command": "insert", "insert_line": line}}),
            EditFile {
                insert_line: Some(line),
                ..EditFile::new("/a", "insert")
            },
        );
    }
}

#[test]
fn old_extras_of_a_command_move_into_its_metadata() {
    let observation = json!({"observation": "run", "content": "out", "extras": {
        "command": "ls", "exit_code": 2, "command_id": "17", "formatted_output_and_error": "x",
    }});
    let metadata = CommandMetadata {
        exit_code: 2,
        pid: 17,
        ..CommandMetadata::default()
    };
    let output = CommandOutput {
        metadata,
        ..CommandOutput::new("ls")
    };
    let expected = ObservationEvent::from(Observation::run("out", output));
    assert_eq!(ObservationEvent::from_value(observation), Ok(expected));
}

#[test]
fn extras_that_nobody_knows_are_ignored() {
    let observation = json!({"observation": "error", "content": "no", "extras": {"hidden": true}});
    let expected = ObservationEvent::from(Observation::error("no"));
    assert_eq!(ObservationEvent::from_value(observation), Ok(expected));
}

#[test]
fn content_and_extras_may_be_missing() {
    let expected = Observation {
        content: String::new(),
        kind: ObservationKind::Condense,
    };
    assert_eq!(
        ObservationEvent::from_value(json!({"observation": "condense"})),
        Ok(ObservationEvent::from(expected))
    );
}

#[test]
fn a_null_in_the_extras_takes_the_default() {
    let observation = json!({"observation": "browse", "extras": {"url": "http://x", "focused_element_bid": null}});
    let decoded = ObservationEvent::from_value(observation).unwrap();
    assert_eq!(decoded.to_value()["extras"]["focused_element_bid"], "");
}
