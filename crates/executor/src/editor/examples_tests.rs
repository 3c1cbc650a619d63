//! The recorded answers of the original server, replayed.
//!
//! `/workspace` in the recordings stands for the test's own directory.

use std::fs;

use serde_json::Value;
use zareba_protocol::{Action, ActionEvent, ObservationEvent, ReadSource};

use crate::files::fixture::Fixture;

const TEST_FILE: &str = "This is a test file.\nThis file is for testing purposes.\n";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\xff\0\x01";

/// The recorded action and the recorded answer.
fn recording(fixture: &Fixture, name: &str) -> (Action, Value) {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/openhands");
    let text = fs::read_to_string(format!("{directory}/{name}.json")).unwrap();
    let text = text.replace("/workspace", fixture.root().to_str().unwrap());
    let recording: Value = serde_json::from_str(&text).unwrap();
    let action = ActionEvent::from_value(recording["request"]["json"]["action"].clone()).unwrap();
    (action.action, recording["response"]["json"].clone())
}

fn perform(fixture: &Fixture, action: &Action) -> Value {
    let observation = match action {
        Action::Edit(edit) => fixture.editor.edit(edit),
        Action::Write(write) => fixture.files.write(write, &fixture.root()),
        Action::Read(read) if read.impl_source == ReadSource::Editor => {
            fixture.editor.view_for_read(read)
        }
        Action::Read(read) => fixture.files.read(read, &fixture.root()),
        other => panic!("{other:?}"),
    };
    ObservationEvent::from(observation).to_value()
}

fn replay(name: &str, prepare: impl FnOnce(&Fixture)) -> Fixture {
    let fixture = Fixture::new();
    prepare(&fixture);
    let (action, expected) = recording(&fixture, name);
    assert_eq!(perform(&fixture, &action), expected, "{name}");
    fixture
}

fn nothing(_: &Fixture) {}

fn test_file(fixture: &Fixture) {
    fixture.put("test.txt", TEST_FILE);
}

#[test]
fn edits_answer_as_recorded() {
    let done = replay("edit_create", nothing);
    assert_eq!(done.get("new_file.txt"), "New file content");
    let done = replay("edit_str_replace", test_file);
    assert_eq!(
        done.get("test.txt"),
        TEST_FILE.replace("test file", "sample file")
    );
    let done = replay("edit_insert", |fixture| {
        fixture.put(
            "test.txt",
            "Stripped.\nThis file is for testing purposes.\n",
        );
    });
    assert_eq!(
        done.get("test.txt"),
        "Stripped.\nInserted line\nThis file is for testing purposes.\n"
    );
    let back = "Top\nStripped.\nstrline\nInserted line\nThis file is for testing purposes.\n";
    let done = replay("edit_undo", |fixture| {
        let path = fixture.put("test.txt", back);
        assert!(fixture.insert(&path, 1, "").starts_with("The file"));
    });
    assert_eq!(done.get("test.txt"), back);
    replay("edit_view_file", test_file);
    replay("edit_view_directory", test_file);
}

#[test]
fn refused_edits_answer_as_recorded() {
    replay("edit_bad_command", test_file);
    replay("edit_create_exists", test_file);
    replay("edit_create_missing_file_text", nothing);
    replay("edit_insert_invalid_line", |fixture| {
        fixture.put("test.txt", "1\n2\n3\n4\n");
    });
    replay("edit_path_not_exist", nothing);
    replay("edit_relative_path", test_file);
    replay("edit_str_replace_multiple", test_file);
    replay("edit_str_replace_not_found", test_file);
    replay("edit_str_replace_same", test_file);
    replay("edit_undo_no_history", |fixture| {
        fixture.put("new_file.txt", "");
    });
}

#[test]
fn reads_and_writes_answer_as_recorded() {
    replay("read_directory", nothing);
    replay("read_not_found", nothing);
    replay("read_not_utf8", |fixture| {
        fixture.put("latin1.txt", b"caf\xe9\n");
    });
    let numbers = |fixture: &Fixture| {
        fixture.put("n.txt", "l0\nl1\nNEW\nNEW2\n");
    };
    replay("read_oh_aci", numbers);
    replay("read_oh_aci_view_range", numbers);
    replay("read_oh_aci_missing", nothing);
    replay("read_image_relative", |fixture| {
        fixture.put("p.png", PNG);
    });
    replay("read_pdf", |fixture| {
        fixture.put("d.pdf", "%PDF-1.4\n1 0 obj\n");
    });
    replay("read_simple", |fixture| {
        fixture.put("hello.sh", "echo \"Hello, World!\"\n");
    });
    let done = replay("write_simple", nothing);
    assert_eq!(done.get("hello.sh"), "echo \"Hello, World!\"\n");
}

/// The one deliberate difference: the original could not read pictures by an absolute path.
#[test]
fn pictures_are_read_by_absolute_paths_too() {
    let fixture = Fixture::new();
    fixture.put("p.png", PNG);
    let (absolute, recorded) = recording(&fixture, "read_binary_absolute");
    let (_, relative) = recording(&fixture, "read_image_relative");
    assert_eq!(recorded["content"], "ERROR_BINARY_FILE");
    assert_eq!(perform(&fixture, &absolute), relative);
}
