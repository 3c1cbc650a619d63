//! Whole plays, as they are printed.

use zareba_protocol::{CommandOutput, Edited};

use super::*;

fn action(json: &str) -> ActionEvent {
    ActionEvent::from_json(json.as_bytes()).unwrap()
}

fn command(content: &str, exit_code: i64, suffix: &str) -> ObservationEvent {
    let mut output = CommandOutput::new("ignored");
    output.metadata.exit_code = exit_code;
    output.metadata.suffix = suffix.to_owned();
    Observation::run(content, output).into()
}

fn check(action: &str, observation: &ObservationEvent, took: Duration, expected: &str) {
    let play = Play::new(Style::Plain);
    let action = play.action(&self::action(action));
    assert_eq!(action + &play.observation(observation, took), expected);
}

#[test]
fn a_command_is_shown_with_its_output_its_end_and_its_time() {
    check(
        r#"{"action": "run", "args": {"command": "echo hi\necho ho"}, "timeout": 2.5, "shell": "b"}"#,
        &command("hi\nho\n", 0, "\n[The command completed with exit code 0.]"),
        Duration::from_micros(420),
        "▶ run: echo hi  (shell b, timeout 2.5 s)\n  echo ho\n  hi\n  ho\n  ✓ exit code 0 · 0.42 ms\n",
    );
}

#[test]
fn a_command_that_runs_on_says_so() {
    check(
        r#"{"action": "run", "args": {"command": "cat"}}"#,
        &command(
            "a",
            -1,
            "\n[The command timed out after 1.0 seconds. You may wait.]",
        ),
        Duration::from_secs(1),
        "▶ run: cat\n  a\n  [The command timed out after 1.0 seconds. …]\n  … still running · 1.00 s\n",
    );
}

#[test]
fn an_edit_is_shown_as_a_diff() {
    let edited = Edited {
        diff: Some("@@ -1 +1 @@\n-a\n+b\n".to_owned()),
        ..Edited::default()
    };
    check(
        r#"{"action": "edit", "args": {"path": "/a", "command": "str_replace", "old_str": "a", "new_str": "b"}}"#,
        &Observation::edit("The file /a has been edited.", edited).into(),
        Duration::from_millis(3),
        "▶ edit: str_replace /a\n  @@ -1 +1 @@\n  -a\n  +b\n  ✓ edit · 3.0 ms\n",
    );
    check(
        r#"{"action": "edit", "args": {"path": "/a", "command": "undo_edit"}}"#,
        &Observation::edit("ERROR:\nNo edit history.", Edited::default()).into(),
        Duration::from_millis(3),
        "▶ edit: undo_edit /a\n  ERROR:\n  No edit history.\n  ✗ refused · 3.0 ms\n",
    );
}

#[test]
fn failures_are_marked() {
    check(
        r#"{"action": "run", "args": {"command": "C-c", "is_input": true}}"#,
        &command("", 130, ""),
        Duration::from_millis(12),
        "▶ input: C-c\n  ✗ exit code 130 · 12 ms\n",
    );
    check(
        r#"{"action": "read", "args": {"path": "/none"}}"#,
        &Observation::error("File not found: /none.").into(),
        Duration::from_secs(200),
        "▶ read: /none\n  File not found: /none.\n  ✗ error · 200 s\n",
    );
}

#[test]
fn what_a_command_wrote_cannot_order_the_terminal_about() {
    check(
        r#"{"action": "read", "args": {"path": "/a\u001b[2J"}}"#,
        &command("a\u{1b}]0;b\u{7}\tc\u{202e}", 0, ""),
        Duration::from_secs(1),
        "▶ read: /a\\u{1b}[2J\n  a\\u{1b}]0;b\\u{7}\tc\\u{202e}\n  ✓ exit code 0 · 1.00 s\n",
    );
}
