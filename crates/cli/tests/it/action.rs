//! `zareba action`: the example, JSON in and out, and lines that are no actions.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Place, snapshots};

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/first-steps.jsonl"
);

#[test]
fn the_example_plays_as_it_is_shown() {
    let place = Place::new();
    let copy = place.path("first-steps.jsonl");
    fs::copy(EXAMPLE, &copy).unwrap();
    let told = place.output(&["action", copy.to_str().unwrap()]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let _snapshots = snapshots();
    insta::assert_snapshot!("first-steps", without_chance(&told.stdout));
}

/// The play with times and the name of the fresh directory taken out.
fn without_chance(play: &str) -> String {
    let directory = play
        .lines()
        .find_map(|line| line.trim().strip_suffix("/workspace"));
    let play = play.replace(directory.unwrap(), "");
    let lines = play.lines().map(|line| match line.rsplit_once(" · ") {
        Some((before, _)) => format!("{before} · TIME\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn json_lines_come_in_and_go_out() {
    let place = Place::new();
    let input = [
        "# a remark",
        "",
        r#"{"id": 1, "action": "run", "args": {"command": "cd /; echo hi"}}"#,
        r#"{"id": 2, "action": "write", "args": {"path": "{{workspace}}/a", "content": "x"}}"#,
        r#"{"id": 3, "action": "read", "args": {"path": "{{workspace}}/a"}}"#,
        r#"{"id": 4, "action": "read", "args": {"path": "/none"}}"#,
        r#"{"id": 5, "action": "browse", "args": {"url": "http://localhost"}}"#,
    ]
    .join("\n");
    let told = place.output_with_input(&["action", "-o", "json", "-"], &input);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let answers: Vec<Value> = told
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let brief = |answer: &Value| json!([answer["cause"], answer["observation"], answer["content"]]);
    assert_eq!(
        answers.iter().map(brief).collect::<Vec<_>>(),
        [
            json!([1, "run", "hi"]),
            json!([2, "write", ""]),
            json!([3, "read", "x\n"]),
            json!([
                4,
                "error",
                "File not found: /none. Your current working directory is /."
            ]),
            json!([
                5,
                "error",
                "Browser functionality is not supported or disabled."
            ]),
        ]
    );
}

#[test]
fn a_line_that_is_no_action_is_named_and_ends_the_play() {
    let place = Place::new();
    let file = place.path("bad.jsonl");
    let lines = [
        r#"{"action": "run", "args": {"command": "echo one"}}"#,
        "",
        r#"{"action": "dance", "args": {}}"#,
        "not json",
        r#"{"action": "run", "args": {"command": "echo two"}}"#,
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let file = file.to_str().unwrap();
    let told = place.output(&["action", "-o", "json", file]);
    assert_eq!((told.code, told.stdout.lines().count()), (Some(1), 1));
    let line = format!("error: {file}:3: there is no action `dance`; there are `run`, ");
    assert!(told.stderr.contains(&line), "{}", told.stderr);
    assert!(
        told.stderr
            .ends_with("  hint: `--keep-going` goes on after such a line\n"),
        "{}",
        told.stderr
    );
    let told = place.output(&["action", "-o", "json", "--keep-going", file]);
    assert_eq!((told.code, told.stdout.lines().count()), (Some(1), 2));
    assert!(
        told.stderr
            .contains(&format!("error: {file}:4: not JSON: ")),
        "{}",
        told.stderr
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let place = Place::new();
    let told = place.output(&["action", "none.jsonl"]);
    assert_eq!(told.code, Some(120));
    insta::assert_snapshot!(told.stderr, @"
    error: cannot open `none.jsonl`
      caused by: No such file or directory (os error 2)
    ");
}
