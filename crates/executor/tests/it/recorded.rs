//! What the original server was asked and answered, asked again here.

use std::{path::Path, time::Duration};

use serde_json::Value;
use zareba_protocol::{ActionEvent, ObservationEvent};

use crate::place::{Place, SLEEPER, exit_code};

/// A recording: the action that was sent and the observation that came back.
fn recording(name: &str) -> (ActionEvent, Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/fixtures/openhands/run_{name}.json"));
    let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let action = recorded["request"]["json"]["action"].clone();
    (
        ActionEvent::from_value(action).unwrap(),
        recorded["response"]["json"].clone(),
    )
}

/// The recorded observation as it would have been made here.
fn localised(mut answer: Value, place: &Place, background: i64) -> Value {
    let recorded_pid = "1065";
    if let Some(content) = answer["content"].as_str() {
        answer["content"] = content
            .replace(recorded_pid, &background.to_string())
            .into();
    }
    let Some(metadata) = answer["extras"]
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
    else {
        return answer;
    };
    if metadata["pid"] == 1065 {
        metadata["pid"] = background.into();
    }
    let ours = serde_json::to_value(place.metadata(&place.directory)).unwrap();
    for field in ["username", "hostname", "py_interpreter_path"] {
        if !metadata[field].is_null() {
            metadata[field] = ours[field].clone();
        }
    }
    if metadata["working_dir"] == "/workspace" {
        metadata["working_dir"] = ours["working_dir"].clone();
    }
    answer
}

async fn replay(place: &Place, name: &str, background: i64) {
    let (action, answer) = recording(name);
    let mut found = ObservationEvent::from(place.event(action).await).to_value();
    // Ours, and ignored by the client that the recordings were made with.
    if let Some(metadata) = found["extras"].get_mut("metadata") {
        metadata.as_object_mut().unwrap().remove("limits");
    }
    assert_eq!(found, localised(answer, place, background), "{name}");
}

#[tokio::test]
async fn commands_before_any_background_job_are_answered_as_recorded() {
    let place = Place::new().await;
    for name in [
        "simple",
        "exit_127",
        "static",
        "empty_without_previous",
        "input_without_previous",
        "multiple_commands_rejected",
    ] {
        replay(&place, name, -1).await;
    }
    place.start("cat", "").await;
    replay(&place, "ctrl_d", -1).await;
    // Time enough for the shell to start it.
    place.run_for(0.5, "sleep 30").await;
    replay(&place, "ctrl_z", -1).await;
}

#[tokio::test]
async fn commands_after_a_background_job_are_answered_as_recorded() {
    let place = Place::new().await;
    let (action, answer) = recording("background_job");
    let observation = place.event(action).await;
    let pid = crate::place::metadata(&observation).pid;
    assert_eq!(
        ObservationEvent::from(observation).to_value(),
        localised(answer, &place, pid)
    );
    for name in ["heredoc", "hidden", "unicode"] {
        replay(&place, name, pid).await;
    }
    place.start(SLEEPER, "here").await;
    assert_eq!(place.run_for(0.0, "").await.content, "here");
    replay(&place, "ctrl_c", pid).await;
}

#[tokio::test]
async fn a_command_that_outlasts_its_timeouts_is_answered_as_recorded() {
    let place = Place::new().await;
    replay(&place, "hard_timeout", -1).await;
    replay(&place, "continue_empty_command", -1).await;
    assert_eq!(exit_code(&place.input("C-c").await), 130);
}

#[tokio::test]
async fn a_command_that_asks_for_input_is_answered_as_recorded() {
    let place = Place::with(|options| options.no_change_timeout = Duration::from_secs(10)).await;
    let (_, started) = recording("background_job");
    assert_eq!(started["extras"]["metadata"]["pid"], 1065);
    let background = place.run("sleep 100 &").await;
    let pid = crate::place::metadata(&background).pid;
    replay(&place, "no_change_timeout", pid).await;
    replay(&place, "previous_still_running", pid).await;
    replay(&place, "input_to_process", pid).await;
}
