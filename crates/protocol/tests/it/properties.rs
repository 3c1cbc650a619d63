//! Nothing makes the decoder panic, and whatever is written is read back the same.

use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};
use zareba_protocol::{
    ActionEvent, ObservationEvent, python_repr,
    schema::{action_schema, observation_schema},
    truncate_middle,
};

use crate::{
    fixtures::{self, Recorded},
    strategies,
};

static ACTIONS: LazyLock<Vec<Recorded>> = LazyLock::new(fixtures::actions);
static OBSERVATIONS: LazyLock<Vec<Recorded>> = LazyLock::new(fixtures::observations);

/// A recorded event with one of its values, at any depth, replaced.
fn damaged(event: &Value, at: usize, value: &Value) -> Value {
    let mut paths = Vec::new();
    collect_paths(event, String::new(), &mut paths);
    let mut damaged = event.clone();
    if let Some(place) = damaged.pointer_mut(&paths[at % paths.len()]) {
        *place = value.clone();
    }
    damaged
}

fn collect_paths(value: &Value, path: String, paths: &mut Vec<String>) {
    if let Value::Object(object) = value {
        for (key, inner) in object {
            collect_paths(inner, format!("{path}/{key}"), paths);
        }
    }
    paths.push(path);
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = ActionEvent::from_json(&bytes);
        let _ = ObservationEvent::from_json(&bytes);
    }

    #[test]
    fn random_json_never_panics(value in strategies::json()) {
        let _ = python_repr::of(&value);
        let _ = ActionEvent::from_value(value.clone());
        let _ = ObservationEvent::from_value(value);
    }

    #[test]
    fn random_arguments_never_panic(
        kind in strategies::kind(),
        fields in strategies::object(),
        code in "print\\(file_editor\\(\\*\\*[\\[\\]{}()'\"\\\\a-z0-9:, \n]{0,40}\\)\\)",
    ) {
        let mut args = fields.clone();
        args.insert("translated_ipython_code".to_owned(), code.into());
        if let Err(error) = ActionEvent::from_value(json!({"action": kind, "args": args})) {
            prop_assert!(!error.to_string().is_empty());
        }
        let _ = ObservationEvent::from_value(json!({"observation": kind, "extras": fields}));
    }

    #[test]
    fn damaged_recordings_never_panic(
        event in any::<prop::sample::Index>(),
        at in any::<usize>(),
        value in strategies::json(),
    ) {
        let action = damaged(&event.get(&ACTIONS).event, at, &value);
        if let Ok(decoded) = ActionEvent::from_value(action) {
            prop_assert_eq!(ActionEvent::from_value(decoded.to_value()), Ok(decoded));
        }
        let observation = damaged(&event.get(&OBSERVATIONS).event, at, &value);
        if let Ok(decoded) = ObservationEvent::from_value(observation) {
            prop_assert_eq!(ObservationEvent::from_value(decoded.to_value()), Ok(decoded));
        }
    }

    #[test]
    fn any_action_is_read_back_as_it_was_written(event in strategies::action_event()) {
        let from_text = ActionEvent::from_json(event.to_json().as_bytes());
        prop_assert_eq!(from_text, Ok(event.clone()));
        prop_assert_eq!(ActionEvent::from_value(event.to_value()), Ok(event));
    }

    #[test]
    fn any_observation_is_read_back_as_it_was_written(event in strategies::observation_event()) {
        let from_text = ObservationEvent::from_json(event.to_json().as_bytes());
        prop_assert_eq!(from_text, Ok(event.clone()));
        prop_assert_eq!(ObservationEvent::from_value(event.to_value()), Ok(event));
    }

    #[test]
    fn truncation_is_bounded_and_idempotent(part in "\\PC{1,40}", times in 0usize..3_000) {
        let text = part.repeat(times);
        let once = truncate_middle(&text).into_owned();
        prop_assert!(once.chars().count() <= 30_047);
        prop_assert_eq!(truncate_middle(&once), once.as_str());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_written_keeps_to_the_schemas(
        actions in prop::collection::vec(strategies::action_event(), 8),
        observations in prop::collection::vec(strategies::observation_event(), 8),
    ) {
        let validator = Validator::new(&action_schema()).unwrap();
        for event in actions {
            prop_assert!(validator.is_valid(&event.to_value()), "{}", event.to_json());
        }
        let validator = Validator::new(&observation_schema()).unwrap();
        for event in observations {
            prop_assert!(validator.is_valid(&event.to_value()), "{}", event.to_json());
        }
    }
}
