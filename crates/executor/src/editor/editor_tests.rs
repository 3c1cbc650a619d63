//! What editing does to files, beyond its words: encodings, newlines, modes, undo, concurrency.

use std::{fs, os::unix::fs::PermissionsExt};

use proptest::prelude::*;

use crate::{
    files::fixture::{Fixture, str_replace},
    lint::Linting,
};

#[test]
fn windows_newlines_stay_and_match_plain_ones() {
    let fixture = Fixture::new();
    let path = fixture.put("f.txt", "one\r\ntwo\r\nthree\r\n");
    let said = fixture.str_replace(&path, "two\nthree", "2\n3");
    assert!(said.contains("     2\t2\n     3\t3\n"), "{said}");
    assert_eq!(fixture.get("f.txt"), "one\r\n2\r\n3\r\n");
    fixture.str_replace(&path, "one\r\n2", "1\r\n2");
    assert_eq!(fixture.get("f.txt"), "1\r\n2\r\n3\r\n");
    fixture.insert(&path, 1, "new\nlines");
    assert_eq!(fixture.get("f.txt"), "1\r\nnew\r\nlines\r\n2\r\n3\r\n");
    for expected in [
        "1\r\n2\r\n3\r\n",
        "one\r\n2\r\n3\r\n",
        "one\r\ntwo\r\nthree\r\n",
    ] {
        fixture.say("undo_edit", &path);
        assert_eq!(fixture.get("f.txt"), expected);
    }
}

#[test]
fn old_encodings_and_byte_order_marks_stay() {
    let fixture = Fixture::new();
    let path = fixture.put("latin1.txt", b"caf\xe9 cr\xe8me br\xfbl\xe9e\n");
    let said = fixture.str_replace(&path, "crème", "à la crème");
    assert!(said.contains("café à la crème brûlée"), "{said}");
    assert_eq!(
        fs::read(&path).unwrap(),
        b"caf\xe9 \xe0 la cr\xe8me br\xfbl\xe9e\n"
    );
    let said = fixture.str_replace(&path, "café", "咖啡");
    assert_eq!(
        said,
        format!(
            "ERROR:\nRan into 'windows-1252' codec can't encode character '\\u5496' in position 0: character maps to <undefined> while trying to write to {path}"
        )
    );
    assert_eq!(
        fs::read(&path).unwrap(),
        b"caf\xe9 \xe0 la cr\xe8me br\xfbl\xe9e\n"
    );
    let path = fixture.put("marked.txt", "\u{feff}one\n");
    fixture.str_replace(&path, "one", "two");
    assert_eq!(fixture.get("marked.txt"), "\u{feff}two\n");
    let path = fixture.put("utf16.txt", b"\xff\xfeo\0n\0e\0");
    fixture.str_replace(&path, "one", "é");
    assert_eq!(fs::read(&path).unwrap(), b"\xff\xfe\xe9\0");
}

#[test]
fn modes_survive_every_command() {
    let fixture = Fixture::new();
    let path = fixture.put("run.sh", "echo one\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    fixture.insert(&path, 0, "#!/bin/sh");
    assert_eq!(fixture.mode("run.sh"), 0o755);
    fixture.str_replace(&path, "one", "two");
    assert_eq!(fixture.mode("run.sh"), 0o755);
    fixture.say("undo_edit", &path);
    assert_eq!(
        (fixture.mode("run.sh"), fixture.get("run.sh").as_str()),
        (0o755, "#!/bin/sh\necho one\n")
    );
    assert_eq!(fixture.names("."), ["run.sh"]);
}

#[test]
fn create_writes_the_text_exactly() {
    let fixture = Fixture::new();
    let path = fixture.path("new.txt");
    assert_eq!(
        fixture.create(&path, "a\r\nb"),
        format!("File created successfully at: {path}")
    );
    assert_eq!(
        (fixture.get("new.txt").as_str(), fixture.mode("new.txt")),
        ("a\r\nb", 0o664)
    );
    let empty = fixture.path("empty.txt");
    fixture.create(&empty, "");
    assert_eq!(
        fixture.say("view", &empty),
        format!("Here's the result of running `cat -n` on {empty}:\n     1\t\n")
    );
}

#[test]
fn replacing_nothing_and_with_nothing() {
    let fixture = Fixture::new();
    let path = fixture.put("f.txt", "a\nb\nc\n");
    assert_eq!(
        fixture.str_replace(&path, "", "x"),
        "ERROR:\nNo replacement was performed. Multiple occurrences of old_str `` in lines [1, 2, 3, 4]. Please ensure it is unique."
    );
    fixture.str_replace(&path, "b\n", "");
    assert_eq!(fixture.get("f.txt"), "a\nc\n");
    let mut without_new = str_replace(&path, "c\n", "");
    without_new.new_str = None;
    fixture.editor.edit(&without_new);
    assert_eq!(fixture.get("f.txt"), "a\n");
}

#[test]
fn undo_goes_back_ten_edits_and_survives_a_restart() {
    let fixture = Fixture::new();
    let path = fixture.put("f.txt", "0\n");
    for number in 0..12 {
        fixture.str_replace(&path, &format!("{number}\n"), &format!("{}\n", number + 1));
    }
    let mut undo = str_replace(&path, "", "");
    undo.command = "undo_edit".to_owned();
    let editor = fixture.restarted(Linting::Off);
    for number in (2..12).rev() {
        let observation = editor.edit(&undo);
        let listing = format!(
            "Here's the result of running `cat -n` on {path}:\n     1\t{number}\n     2\t\n"
        );
        assert_eq!(
            observation.content,
            format!("Last edit to {path} undone successfully. {listing}")
        );
    }
    assert_eq!(
        editor.edit(&undo).content,
        format!("ERROR:\nNo edit history found for {path}.")
    );
    assert_eq!(fixture.get("f.txt"), "2\n");
}

#[test]
fn undo_after_create_brings_the_created_text_back() {
    let fixture = Fixture::new();
    let path = fixture.path("new.txt");
    fixture.create(&path, "made\n");
    fixture.put("new.txt", "changed by a program\n");
    let said = fixture.say("undo_edit", &path);
    assert!(
        said.starts_with(&format!("Last edit to {path} undone successfully. ")),
        "{said}"
    );
    assert_eq!(fixture.get("new.txt"), "made\n");
}

#[test]
fn a_damaged_history_is_dropped_and_named() {
    let fixture = Fixture::new();
    let path = fixture.put("f.txt", "old\n");
    fixture.str_replace(&path, "old", "new");
    for entry in fs::read_dir(fixture.outside().join("undo")).unwrap() {
        fs::write(entry.unwrap().path(), "nonsense").unwrap();
    }
    assert_eq!(
        fixture.say("undo_edit", &path),
        format!(
            "ERROR:\nNo edit history found for {path}. What was stored for it is damaged and has been dropped."
        )
    );
    assert_eq!(
        fixture.say("undo_edit", &path),
        format!("ERROR:\nNo edit history found for {path}.")
    );
    assert_eq!(fixture.get("f.txt"), "new\n");
}

#[test]
fn concurrent_edits_of_one_file_are_all_there() {
    let fixture = Fixture::new();
    let path = fixture.put("f.txt", "");
    std::os::unix::fs::symlink("f.txt", fixture.root().join("link.txt")).unwrap();
    let link = fixture.path("link.txt");
    std::thread::scope(|scope| {
        for (thread, path) in [&path, &link, &path, &link].into_iter().enumerate() {
            let fixture = &fixture;
            scope.spawn(move || {
                for number in 0..20 {
                    let said = fixture.insert(path, 0, &format!("{thread}-{number}"));
                    assert!(said.starts_with("The file "), "{said}");
                }
            });
        }
    });
    let content = fixture.get("f.txt");
    let mut lines: Vec<&str> = content.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 80);
}

#[test]
fn a_refused_edit_changes_nothing() {
    let fixture = Fixture::new();
    let path = fixture.put("f.txt", "text\n");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    fixture.str_replace(&path, "none", "x");
    fixture.insert(&path, 9, "x");
    fixture.say("undo_edit", &path);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    assert_eq!(fixture.names("."), ["f.txt"]);
    assert!(!fixture.outside().join("undo").exists());
}

#[test]
fn a_lint_report_stands_before_the_review() {
    let fixture = Fixture::new();
    let path = fixture.put("a.json", "{\"a\": 1}\n");
    let editor = fixture.restarted(Linting::On);
    let said = editor.edit(&str_replace(&path, "1", "2")).content;
    let clean = "     2\t\n\nNo linting issues found in the changes.\nReview the changes";
    assert!(said.contains(clean), "{said}");
    let said = editor.edit(&str_replace(&path, "2", "")).content;
    let found = "     2\t\n\nLinting issues found in the changes:\n- Line 1, Column 7: expected value\n\nReview the changes";
    assert!(said.contains(found), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn an_undo_restores_every_byte(
        before in proptest::collection::vec(prop_oneof!["[a-c]{0,3}\r\n", "[a-c]{0,3}\n", "é\r"], 0..8),
        line in 0_usize..8,
        new in "[xy\n]{0,4}",
    ) {
        let fixture = Fixture::new();
        let before = before.concat();
        let path = fixture.put("f.txt", &before);
        let count = crate::files::universal_newlines(&before).split_inclusive('\n').count();
        fixture.insert(&path, line.min(count) as i64, &new);
        prop_assert_ne!(fixture.get("f.txt"), before.clone());
        fixture.say("undo_edit", &path);
        prop_assert_eq!(fixture.get("f.txt"), before);
    }
}
