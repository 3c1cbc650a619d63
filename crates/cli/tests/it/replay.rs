//! `zareba replay`: what was recorded is done again, and what differs is shown.

use std::fs;

use serde_json::Value;

use crate::support::Place;

/// A recording of two commands, with the answer to the second one as given.
fn recording(place: &Place, second: &str) -> String {
    let events = [
        r#"{"id": 0, "action": "message", "args": {"content": "begin"}}"#.to_owned(),
        r#"{"id": 1, "action": "run", "args": {"command": "v=7; echo one"}}"#.to_owned(),
        r#"{"id": 2, "cause": 1, "observation": "run", "content": "one", "extras": {"metadata": {"exit_code": 0}}}"#.to_owned(),
        r#"{"id": 3, "action": "run", "args": {"command": "echo $v; false"}}"#.to_owned(),
        format!(r#"{{"id": 4, "cause": 3, "observation": "run", "content": "{second}", "extras": {{"metadata": {{"exit_code": 1}}}}}}"#),
    ];
    let path = place.path("recording.jsonl");
    fs::write(&path, events.join("\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_recording_that_still_holds_ends_well() {
    let place = Place::new();
    let told = place.output(&["replay", &recording(&place, "7")]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), ""),
        "{}",
        told.stderr
    );
    assert!(
        told.stderr
            .contains("2 actions performed: 2 as recorded, 0 different"),
        "{}",
        told.stderr
    );
}

#[test]
fn the_first_difference_is_shown_with_both_sides() {
    let place = Place::new();
    let file = recording(&place, "8");
    let told = place.output(&["replay", &file]);
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert_eq!(
        told.stdout,
        "event 3: run \"echo $v; false\"\n  content differs\n  recorded:\n    8\n  now:\n    7\n"
    );
    let told = place.output(&["replay", "-o", "json", &file]);
    let difference: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(
        (
            &difference["event"],
            &difference["recorded"],
            &difference["now"]
        ),
        (&3.into(), &"8".into(), &"7".into())
    );
}

#[test]
fn what_is_no_recording_is_refused() {
    let place = Place::new();
    let path = place.path("none");
    fs::write(&path, "hello").unwrap();
    let told = place.output(&["replay", path.to_str().unwrap()]);
    assert_eq!(told.code, Some(120), "{}", told.stderr);
    assert!(
        told.stderr.contains("line 1 is not JSON"),
        "{}",
        told.stderr
    );
    assert!(told.stderr.contains("zareba log export"), "{}", told.stderr);
}
