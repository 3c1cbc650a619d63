//! The committed JSON schemas are those of the code, and the recordings keep to them.

use std::{env, fs, path::Path};

use jsonschema::Validator;
use serde_json::{Value, json};
use zareba_protocol::{
    ActionEvent,
    schema::{action_schema, observation_schema},
};

use crate::fixtures::{self, Recorded};

/// Set to 1 to write the schemas instead of comparing them.
const UPDATE: &str = "ZAREBA_UPDATE_SCHEMA";

fn check_committed(name: &str, schema: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../schema")
        .join(name);
    let generated = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if env::var(UPDATE).is_ok_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{name} is out of date: run the tests with {UPDATE}=1"
    );
}

fn check_valid(schema: &Value, recorded: &[Recorded]) {
    let validator = Validator::new(schema).unwrap();
    for Recorded { place, event } in recorded {
        let errors: Vec<_> = validator
            .iter_errors(event)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{place}");
    }
    assert!(!recorded.is_empty());
}

#[test]
fn the_committed_schemas_are_up_to_date() {
    check_committed("action.schema.json", &action_schema());
    check_committed("observation.schema.json", &observation_schema());
}

#[test]
fn the_schemas_are_schemas() {
    for schema in [action_schema(), observation_schema()] {
        assert_eq!(
            jsonschema::meta::validate(&schema).map_err(|error| error.to_string()),
            Ok(())
        );
    }
}

#[test]
fn every_recorded_event_keeps_to_its_schema() {
    check_valid(&action_schema(), &fixtures::actions());
    check_valid(&observation_schema(), &fixtures::observations());
}

#[test]
fn terse_actions_keep_to_the_schema() {
    let validator = Validator::new(&action_schema()).unwrap();
    for action in [
        json!({"action": "null"}),
        json!({"action": "run", "args": {"command": "ls"}, "shell": "build", "timeout": 1}),
        json!({"action": "null", "once": "~"}),
        json!({"action": "edit", "args": {"path": "/a", "insert_line": "3"}}),
        json!({"action": "glob", "args": {"pattern": "**/*.rs", "limit": 5}}),
        json!({"action": "call_tool", "args": {"name": "add", "positional": [1, 2]}, "timeout": 5}),
    ] {
        assert!(validator.is_valid(&action), "{action}");
        assert!(ActionEvent::from_value(action).is_ok());
    }
}

#[test]
fn what_the_decoder_refuses_breaks_the_schema() {
    let validator = Validator::new(&action_schema()).unwrap();
    for action in [
        json!({}),
        json!({"action": "nope", "args": {}}),
        json!({"action": "null", "args": {"zzz": 1}}),
        json!({"action": "run"}),
        json!({"action": "run", "args": {}}),
        json!({"action": "run", "args": {"command": 5}}),
        json!({"action": "run", "args": {"command": "ls", "zzz": 1}}),
        json!({"action": "null", "source": "martian"}),
        json!({"action": "null", "shell": "../x"}),
        json!({"action": "null", "once": ""}),
        json!({"action": "null", "once": "a b"}),
        json!({"action": "null", "once": "x".repeat(129)}),
        json!({"action": "edit", "args": {"path": "/a", "insert_line": [1]}}),
    ] {
        assert!(!validator.is_valid(&action), "{action}");
        assert!(ActionEvent::from_value(action).is_err());
    }
}
