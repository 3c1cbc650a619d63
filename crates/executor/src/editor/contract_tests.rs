//! The editor's answers, row by row of the contract's tables.

use std::fs;

use serde_json::json;
use zareba_protocol::{EditFile, EditSource, Edited, Observation, ObservationKind, ReadSource};

use crate::files::fixture::{Fixture, insert, read_action, str_replace};

const CAT: &str = "Here's the result of running `cat -n` on";
const REVIEW: &str =
    "Review the changes and make sure they are as expected. Edit the file again if necessary.";
const REVIEW_INSERTED: &str = "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the file again if necessary.";
const FILE_CLIPPED: &str = "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to you. You should retry this tool after you have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";

fn numbers(count: usize) -> String {
    (1..=count).map(|line| format!("l{line}\n")).collect()
}

/// `cat -n` of `l1`, `l2`, ... with one empty line after the last.
fn listed(lines: std::ops::RangeInclusive<usize>) -> String {
    let end = lines.end() + 1;
    let mut out: String = lines.map(|line| format!("{line:6}\tl{line}\n")).collect();
    out.push_str(&format!("{end:6}\t\n"));
    out
}

#[test]
fn paths_are_checked_in_order() {
    let fixture = Fixture::new();
    let file = fixture.put("f.txt", "x");
    let document = fixture.put("d.DOCX", "x");
    let root = fixture.root();
    let root = root.to_str().unwrap();
    let check = |command: &str, path: &str, expected: &str| {
        assert_eq!(
            fixture.say(command, path),
            format!("ERROR:\n{expected}"),
            "{command} {path}"
        );
    };
    let absolute = "The path should be an absolute path, starting with `/`.";
    check(
        "view",
        "none",
        &format!("Invalid `path` parameter: none. {absolute}"),
    );
    check(
        "nonsense",
        "./f.txt",
        &format!("Invalid `path` parameter: f.txt. {absolute} Maybe you meant {file}?"),
    );
    check(
        "create",
        &file,
        &format!(
            "Invalid `path` parameter: {file}. File already exists at: {file}. Cannot overwrite files using command `create`."
        ),
    );
    check(
        "create",
        root,
        &format!(
            "Invalid `path` parameter: {root}. File already exists at: {root}. Cannot overwrite files using command `create`."
        ),
    );
    let none = fixture.path("none");
    for command in ["view", "str_replace", "insert", "undo_edit", "nonsense"] {
        check(
            command,
            &format!("{none}/"),
            &format!(
                "Invalid `path` parameter: {none}. The path {none} does not exist. Please provide a valid path."
            ),
        );
    }
    check(
        "insert",
        root,
        &format!(
            "Invalid `path` parameter: {root}. The path {root} is a directory and only the `view` command can be used on directories."
        ),
    );
    check(
        "str_replace",
        &document,
        &format!(
            "Invalid `path` parameter: {document}. The path {document} points to a binary file (.DOCX) and only the `view` command can be used on supported binary files."
        ),
    );
    check(
        "nonsense",
        &file,
        "Unrecognized command nonsense. The allowed commands for the oh_editor tool are: view, create, str_replace, insert, undo_edit",
    );
    check(
        "view",
        "/a\0b",
        "Invalid `path` parameter: /a\0b. the path contains a NUL byte.",
    );
}

#[test]
fn parameters_are_required() {
    let fixture = Fixture::new();
    let file = fixture.put("f.txt", "x");
    let check = |action: EditFile, name: &str, command: &str| {
        assert_eq!(
            fixture.editor.edit(&action).content,
            format!("ERROR:\nParameter `{name}` is required for command: {command}.")
        );
    };
    let action = |command: &str, path: &str| EditFile {
        path: path.to_owned(),
        command: command.to_owned(),
        ..Default::default()
    };
    check(
        action("create", &fixture.path("new")),
        "file_text",
        "create",
    );
    check(action("str_replace", &file), "old_str", "str_replace");
    check(action("insert", &file), "insert_line", "insert");
    check(
        EditFile {
            new_str: None,
            ..insert(&file, 0, "")
        },
        "new_str",
        "insert",
    );
}

#[test]
fn insert_line_may_be_text_that_holds_a_number() {
    let fixture = Fixture::new();
    let file = fixture.put("f.txt", "l1\nl2\n");
    let edit = |line| EditFile {
        insert_line: Some(line),
        ..insert(&file, 0, "x")
    };
    let wrong =
        |value: &str| format!("ERROR:\nInvalid insert_line value: '{value}'. Expected an integer.");
    assert_eq!(
        fixture.editor.edit(&edit(json!("abc"))).content,
        wrong("abc")
    );
    assert_eq!(fixture.editor.edit(&edit(json!(1.5))).content, wrong("1.5"));
    let elsewhere = EditFile {
        path: "relative".to_owned(),
        ..edit(json!(""))
    };
    assert_eq!(fixture.editor.edit(&elsewhere).content, wrong(""));
    assert!(
        fixture
            .editor
            .edit(&edit(json!(" 1 ")))
            .content
            .starts_with("The file ")
    );
    assert_eq!(fixture.get("f.txt"), "l1\nx\nl2\n");
}

#[test]
fn files_that_cannot_be_edited_are_refused() {
    let fixture = Fixture::new();
    let large = fixture.put("large", "");
    fs::File::options()
        .write(true)
        .open(&large)
        .unwrap()
        .set_len((10 << 20) + 1)
        .unwrap();
    let program = fixture.put("program", b"\x7fELF\0\0");
    let too_large = format!(
        "ERROR:\nFile validation failed for {large}: File is too large (10.0MB). Maximum allowed size is 10MB."
    );
    let binary = format!(
        "ERROR:\nFile validation failed for {program}: File appears to be binary and this file type cannot be read or edited by this tool."
    );
    for (path, expected) in [(large, too_large), (program, binary)] {
        assert_eq!(fixture.say("view", &path), expected);
        assert_eq!(fixture.str_replace(&path, "a", "b"), expected);
        assert_eq!(fixture.insert(&path, 0, "b"), expected);
        assert_eq!(fixture.say("undo_edit", &path), expected);
    }
}

#[test]
fn errors_of_the_kernel_are_told_as_python_tells_them() {
    let fixture = Fixture::new();
    let path = fixture.path("no/such/dir/f.txt");
    assert_eq!(
        fixture.create(&path, "x"),
        format!(
            "ERROR:\nRan into [Errno 2] No such file or directory: '{path}' while trying to write to {path}"
        )
    );
    assert_eq!(
        fixture.say("view", "/dev/null"),
        "ERROR:\nRan into '/dev/null' is a device, not a regular file while trying to read /dev/null"
    );
}

#[test]
fn views_of_files_are_numbered_and_cut() {
    let fixture = Fixture::new();
    let check = |content: &str, expected: &str| {
        let path = fixture.put("f.txt", content);
        assert_eq!(
            fixture.say("view", &path),
            format!("{CAT} {path}:\n{expected}")
        );
    };
    check("", "     1\t\n");
    check("a\n\tb", "     1\ta\n     2\t\tb\n");
    check("a\r\nb\r\n", "     1\ta\n     2\tb\n     3\t\n");
    let long = "x".repeat(16_001);
    check(
        &long,
        &format!("     1\t{}{FILE_CLIPPED}\n", &long[..16_000]),
    );
}

#[test]
fn view_ranges_follow_the_contract() {
    let fixture = Fixture::new();
    let path = fixture.put("f.txt", "l1\nl2\nl3\nl4\nl5\n");
    let shown = |range: &[i64], lines: &str| {
        assert_eq!(
            fixture.view_range(&path, range),
            format!("{CAT} {path}:\n{lines}")
        );
    };
    shown(&[2, 3], "     2\tl2\n     3\tl3\n");
    shown(&[4, -1], "     4\tl4\n     5\tl5\n");
    shown(&[5, 5], "     5\tl5\n");
    shown(&[], &listed(1..=5));
    assert_eq!(
        fixture.view_range(&path, &[5, 9]),
        format!(
            "NOTE: We only show up to 5 since there're only 5 lines in this file.\n{CAT} {path}:\n     5\tl5\n"
        )
    );
    let refused = |range: &[i64], why: &str| {
        assert_eq!(
            fixture.view_range(&path, range),
            format!("ERROR:\nInvalid `view_range` parameter: {range:?}. {why}")
        );
    };
    refused(&[1], "It should be a list of two integers.");
    refused(&[1, 2, 3], "It should be a list of two integers.");
    let first = "should be within the range of lines of the file: [1, 5].";
    refused(&[0, 2], &format!("Its first element `0` {first}"));
    refused(&[6, 7], &format!("Its first element `6` {first}"));
    refused(&[-3, 2], &format!("Its first element `-3` {first}"));
    let second = "should be greater than or equal to the first element";
    refused(&[3, 2], &format!("Its second element `2` {second} `3`."));
    refused(&[3, -2], &format!("Its second element `-2` {second} `3`."));
    let root = fixture.root();
    assert_eq!(
        fixture.view_range(root.to_str().unwrap(), &[1, 2]),
        "ERROR:\nInvalid `view_range` parameter: [1, 2]. The `view_range` parameter is not allowed when `path` points to a directory."
    );
}

#[test]
fn an_editor_read_of_a_binary_file_is_an_error() {
    let fixture = Fixture::new();
    let path = fixture.put("p.png", b"\x89PNG\r\n\x1a\n\0");
    let mut action = read_action(&path);
    action.impl_source = ReadSource::Editor;
    assert_eq!(
        fixture.editor.view_for_read(&action),
        Observation::error("ERROR_BINARY_FILE")
    );
}

#[test]
fn views_of_directories_show_two_levels() {
    let fixture = Fixture::new();
    let root = fixture.root();
    fs::create_dir_all(root.join("sub/deep/deeper")).unwrap();
    fs::create_dir(root.join(".git")).unwrap();
    fs::write(root.join("sub/.hidden"), "").unwrap();
    fs::write(root.join("sub/x"), "").unwrap();
    fixture.put("sub.txt", "");
    fixture.put(".env", "");
    std::os::unix::fs::symlink("sub", root.join("link")).unwrap();
    std::os::unix::fs::symlink("none", root.join("dangling")).unwrap();
    let root = root.to_str().unwrap();
    let paths = [
        "/",
        "/dangling",
        "/link/",
        "/link/deep/",
        "/link/x",
        "/sub/",
        "/sub.txt",
        "/sub/deep/",
        "/sub/x",
    ];
    let paths: Vec<String> = paths.iter().map(|path| format!("{root}{path}")).collect();
    let expected = format!(
        "Here's the files and directories up to 2 levels deep in {root}, excluding hidden items:\n{}\n\n2 hidden files/directories in this directory are excluded. You can use 'ls -la {root}' to see them.",
        paths.join("\n")
    );
    assert_eq!(fixture.say("view", root), expected);
    assert_eq!(fixture.say("view", &format!("{root}/")), expected);
}

#[test]
fn a_large_directory_is_cut() {
    let fixture = Fixture::new();
    for number in 0..600 {
        fixture.put(&format!("{number:030}"), "");
    }
    let said = fixture.say("view", fixture.root().to_str().unwrap());
    let notice = "<response clipped><NOTE>Due to the max output limit, only part of this directory has been shown to you. You should use `ls -la` instead to view large directories incrementally.</NOTE>";
    let list = said.split_once('\n').unwrap().1;
    assert_eq!(list.strip_suffix(notice).map(str::len), Some(16_000));
}

#[test]
fn replacements_show_four_lines_around_them() {
    let fixture = Fixture::new();
    let path = fixture.put("f.txt", numbers(20));
    let check = |old: &str, new: &str, snippet: String| {
        let said = fixture.str_replace(&path, old, new);
        let expected = format!(
            "The file {path} has been edited. {CAT} a snippet of {path}:\n{snippet}{REVIEW}"
        );
        assert_eq!(said, expected);
        fixture.put("f.txt", numbers(20));
    };
    check("l10", "X", listed(7..=14).replace("l10", "X"));
    check("l1\n", "X\nY\n", {
        "     1\tX\n     2\tY\n     3\tl2\n     4\tl3\n     5\tl4\n     6\tl5\n     7\tl6\n     8\t\n"
            .to_owned()
    });
    check(
        "l20\n",
        "",
        "    17\tl17\n    18\tl18\n    19\tl19\n    20\t\n".to_owned(),
    );
}

#[test]
fn insertions_show_four_lines_around_them() {
    let fixture = Fixture::new();
    let path = fixture.put("f.txt", numbers(20));
    let check = |line: i64, new: &str, snippet: &str| {
        let said = fixture.insert(&path, line, new);
        let expected = format!(
            "The file {path} has been edited. {CAT} a snippet of the edited file:\n{snippet}{REVIEW_INSERTED}"
        );
        assert_eq!(said, expected);
        fixture.put("f.txt", numbers(20));
    };
    check(
        10,
        "X\nY",
        "     7\tl7\n     8\tl8\n     9\tl9\n    10\tl10\n    11\tX\n    12\tY\n    13\tl11\n    14\tl12\n    15\tl13\n    16\tl14\n    17\t\n",
    );
    check(
        0,
        "X",
        "     1\tX\n     2\tl1\n     3\tl2\n     4\tl3\n     5\tl4\n     6\t\n",
    );
    check(
        20,
        "",
        "    17\tl17\n    18\tl18\n    19\tl19\n    20\tl20\n    21\t\n    22\t\n",
    );
}

#[test]
fn the_observation_carries_what_the_action_said() {
    let fixture = Fixture::new();
    let path = fixture.put("f.txt", "a\nb\n");
    let observation = fixture.editor.edit(&str_replace(&path, "b", "c"));
    assert_eq!(
        observation.kind,
        ObservationKind::Edit(Edited {
            path: path.clone(),
            prev_exist: false,
            old_content: Some("b".to_owned()),
            new_content: Some("c".to_owned()),
            impl_source: EditSource::Editor,
            diff: Some(format!("--- {path}\n+++ {path}\n@@ -2 +2 @@\n-b\n+c")),
            diff_cache: None,
        })
    );
}

#[test]
fn draft_edits_are_an_error_that_says_why() {
    let fixture = Fixture::new();
    let action = EditFile {
        path: fixture.path("f.txt"),
        content: "text".to_owned(),
        impl_source: EditSource::Draft,
        ..Default::default()
    };
    let observation = fixture.editor.edit(&action);
    assert_eq!(
        observation.kind,
        ObservationKind::Error {
            error_id: String::new()
        }
    );
    assert!(
        observation.content.contains("need a language model"),
        "{}",
        observation.content
    );
    assert_eq!(fixture.names("."), Vec::<String>::new());
}
