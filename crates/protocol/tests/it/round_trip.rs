//! Every recorded event is read and written back as it was.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zareba_protocol::{Action, ActionEvent, ObservationEvent, RunCommand, ShellName};

use crate::fixtures;

/// Compares texts, because values are equal whatever the order of their keys.
fn assert_same_text(place: &str, written: &str, original: &Value) {
    assert_eq!(written, serde_json::to_string(original).unwrap(), "{place}");
}

#[test]
fn every_recorded_action_is_written_back_as_it_was() {
    let recorded = fixtures::actions();
    for fixtures::Recorded { place, event } in &recorded {
        let decoded = ActionEvent::from_value(event.clone())
            .unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(&decoded.to_value(), event, "{place}");
        assert_same_text(place, &decoded.to_json(), event);
    }
    assert_eq!(recorded.len(), 79);
}

#[test]
fn every_recorded_observation_is_written_back_as_it_was() {
    let recorded = fixtures::observations();
    for fixtures::Recorded { place, event } in &recorded {
        let decoded = ObservationEvent::from_value(event.clone())
            .unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(&decoded.to_value(), event, "{place}");
        assert_same_text(place, &decoded.to_json(), event);
    }
    assert_eq!(recorded.len(), 77);
}

#[test]
fn the_recordings_hold_every_type_of_theirs() {
    let kinds = |recorded: Vec<fixtures::Recorded>, tag: &str| -> BTreeSet<String> {
        recorded
            .iter()
            .map(|each| each.event[tag].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(kinds(fixtures::actions(), "action").len(), 21);
    assert_eq!(kinds(fixtures::observations(), "observation").len(), 19);
}

#[test]
fn the_whole_envelope_of_an_action_is_kept() {
    let event = json!({
        "id": 3, "timestamp": "2025-11-28T12:00:00", "source": "user",
        "message": "Running command: ls", "cause": 2, "action": "run",
        "tool_call_metadata": {"function_name": "execute_bash", "total_calls_in_response": 1},
        "llm_metrics": {"accumulated_cost": 0.5},
        "args": {
            "command": "ls", "is_input": false, "thought": "", "blocking": true,
            "is_static": false, "cwd": null, "hidden": false,
            "confirmation_state": "awaiting_confirmation", "security_risk": 2,
        },
        "timeout": 2.5, "shell": "build", "once": "session/12",
    });
    let decoded = ActionEvent::from_value(event.clone()).unwrap();
    assert_same_text("event", &decoded.to_json(), &event);
}

#[test]
fn what_the_envelope_does_not_know_is_ignored() {
    let event = json!({"action": "run", "args": {"command": "ls"}, "zzz": 1, "message": 5});
    let plain = ActionEvent::from(Action::from(RunCommand::new("ls")));
    assert_eq!(ActionEvent::from_value(event), Ok(plain));
}

#[test]
fn nulls_and_the_negative_number_mean_absent() {
    let event = json!({
        "id": -1, "timestamp": null, "source": null, "cause": null, "timeout": null,
        "shell": null, "once": null, "action": "null", "args": null,
    });
    assert_eq!(
        ActionEvent::from_value(event),
        Ok(ActionEvent::from(Action::Null))
    );
}

#[test]
fn a_null_argument_takes_its_default() {
    let event =
        json!({"action": "run", "args": {"command": "ls", "thought": null, "hidden": null}});
    let plain = ActionEvent::from(Action::from(RunCommand::new("ls")));
    assert_eq!(ActionEvent::from_value(event), Ok(plain));
}

#[test]
fn shell_and_timeout_travel_at_the_top() {
    let event = ActionEvent::from(Action::from(RunCommand::input("C-c")))
        .with_timeout(3.0)
        .with_shell(ShellName::new("build").unwrap());
    let value = event.to_value();
    assert_eq!(
        (&value["timeout"], &value["shell"]),
        (&json!(3.0), &json!("build"))
    );
    assert_eq!(ActionEvent::from_value(value), Ok(event));
}

#[test]
fn an_unlimited_timeout_is_left_out() {
    let event = ActionEvent::from(Action::Null).with_timeout(f64::INFINITY);
    assert_eq!(
        event.to_value(),
        json!({"message": "No action", "action": "null", "args": {}})
    );
}
