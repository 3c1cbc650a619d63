//! What `grep` promises, one test per promise.

use std::{fs, os::unix::fs::symlink, path::Path, time::Instant};

use zareba_protocol::{MatchesFound, Observation, ObservationKind, SearchFiles};

use super::*;

fn tree(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (file, content) in files {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

/// A search that may reach everything.
fn grep(action: &SearchFiles, cwd: &Path) -> Observation {
    super::grep(action, cwd, &Reach::WholeFilesystem)
}

fn ask(pattern: &str) -> SearchFiles {
    SearchFiles {
        pattern: pattern.to_owned(),
        ..SearchFiles::default()
    }
}

/// The observation for these `file:line:text` lines.
fn expected(root: &Path, pattern: &str, lines: &[&str]) -> Observation {
    let shown = root.display();
    let full: Vec<String> = lines.iter().map(|line| format!("{shown}/{line}")).collect();
    let mut files: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split(':').next())
        .collect();
    files.dedup();
    Observation {
        content: full.join("\n"),
        kind: ObservationKind::Grep(MatchesFound {
            path: shown.to_string(),
            pattern: pattern.to_owned(),
            files: files.len() as u64,
            matches: lines.len() as u64,
            truncated: false,
        }),
    }
}

/// The same, cut short for the reason in the last line.
fn truncated(mut observation: Observation, reason: &str) -> Observation {
    observation.content = format!("{}\n{reason}", observation.content);
    if let ObservationKind::Grep(found) = &mut observation.kind {
        found.truncated = true;
    }
    observation
}

#[test]
fn matches_are_sorted_by_path_and_line() {
    let root = tree(&[
        ("b.txt", b"needle\n"),
        ("a/z.txt", b"no\nneedle 1\nno\nneedle 2"),
        ("a-b.txt", b"a needle\r\n"),
    ]);
    assert_eq!(
        grep(&ask("needle"), root.path()),
        expected(
            root.path(),
            "needle",
            &[
                "a/z.txt:2:needle 1",
                "a/z.txt:4:needle 2",
                "a-b.txt:1:a needle",
                "b.txt:1:needle"
            ]
        )
    );
}

#[test]
fn the_end_of_a_line_matches_before_a_carriage_return() {
    let root = tree(&[("a.txt", b"one\r\ntwo\r\n")]);
    assert_eq!(
        grep(&ask("two$"), root.path()),
        expected(root.path(), "two$", &["a.txt:2:two"])
    );
}

#[test]
fn anchors_are_about_each_line() {
    let root = tree(&[
        ("a.txt", b"one\ntwo\none more\nthe one\none\nend\n"),
        ("b.txt", b"zero\none"),
    ]);
    assert_eq!(
        grep(&ask("^one$"), root.path()),
        expected(
            root.path(),
            "^one$",
            &["a.txt:1:one", "a.txt:5:one", "b.txt:2:one"]
        )
    );
}

#[test]
fn ignored_and_hidden_files_are_skipped_unless_asked_for() {
    let root = tree(&[
        (".gitignore", b"skipped\n"),
        (".hidden", b"x\n"),
        ("kept", b"x\n"),
        ("skipped", b"x\n"),
    ]);
    assert_eq!(
        grep(&ask("^x"), root.path()),
        expected(root.path(), "^x", &["kept:1:x"])
    );
    let all = SearchFiles {
        include_ignored: true,
        ..ask("^x")
    };
    assert_eq!(
        grep(&all, root.path()),
        expected(
            root.path(),
            "^x",
            &[".hidden:1:x", "kept:1:x", "skipped:1:x"]
        )
    );
}

#[test]
fn include_narrows_the_files() {
    let root = tree(&[
        ("a.rs", b"x\n"),
        ("src/b.rs", b"x\n"),
        ("src/c.txt", b"x\n"),
    ]);
    let by_name = SearchFiles {
        include: Some("*.rs".to_owned()),
        ..ask("x")
    };
    assert_eq!(
        grep(&by_name, root.path()),
        expected(root.path(), "x", &["a.rs:1:x", "src/b.rs:1:x"])
    );
    let by_path = SearchFiles {
        include: Some("src/*".to_owned()),
        ..ask("x")
    };
    assert_eq!(
        grep(&by_path, root.path()),
        expected(root.path(), "x", &["src/b.rs:1:x", "src/c.txt:1:x"])
    );
}

#[test]
fn case_is_ignored_when_asked() {
    let root = tree(&[("a", "Straße ÄÖ\n".as_bytes())]);
    let none = Observation {
        content: format!("No matches for 'äö' in {}.", root.path().display()),
        ..expected(root.path(), "äö", &[])
    };
    assert_eq!(grep(&ask("äö"), root.path()), none);
    let action = SearchFiles {
        ignore_case: true,
        ..ask("äö")
    };
    assert_eq!(
        grep(&action, root.path()),
        expected(root.path(), "äö", &["a:1:Straße ÄÖ"])
    );
}

#[test]
fn one_file_can_be_searched_even_when_hidden() {
    let root = tree(&[(".env", b"KEY=1\n"), ("other", b"KEY=2\n")]);
    let file = root.path().join(".env");
    let action = SearchFiles {
        path: Some(".env".to_owned()),
        ..ask("KEY")
    };
    let found = grep(&action, root.path());
    let kind = ObservationKind::Grep(MatchesFound {
        path: file.display().to_string(),
        pattern: "KEY".to_owned(),
        files: 1,
        matches: 1,
        truncated: false,
    });
    assert_eq!(
        found,
        Observation {
            content: format!("{}:1:KEY=1", file.display()),
            kind
        }
    );
}

#[test]
fn binary_files_are_skipped_wherever_the_null_byte_is() {
    let mut late = vec![b'\n'; 300_000];
    late[..7].copy_from_slice(b"needle\n");
    late.push(0);
    let root = tree(&[
        ("early", b"\0\nneedle\n"),
        ("late", &late),
        ("text", b"needle\n"),
    ]);
    assert_eq!(
        grep(&ask("needle"), root.path()),
        expected(root.path(), "needle", &["text:1:needle"])
    );
}

#[test]
fn links_are_not_followed_and_pipes_are_not_opened() {
    let root = tree(&[("dir/a", b"needle\n")]);
    let outside = tree(&[("b", b"needle\n")]);
    symlink(outside.path(), root.path().join("out")).unwrap();
    symlink(outside.path().join("b"), root.path().join("link")).unwrap();
    symlink(root.path(), root.path().join("dir/loop")).unwrap();
    let pipe = root.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(
        grep(&ask("needle"), root.path()),
        expected(root.path(), "needle", &["dir/a:1:needle"])
    );
    let action = SearchFiles {
        path: Some("pipe".to_owned()),
        ..ask("needle")
    };
    let text = format!(
        "Path is neither a regular file nor a directory: '{}'.",
        pipe.display()
    );
    assert_eq!(grep(&action, root.path()), Observation::error(text));
}

#[test]
fn the_limit_keeps_the_first_matches_and_says_so() {
    let content = b"x1\nx2\nx3\n".repeat(40);
    let names: Vec<String> = (0..60)
        .map(|number| format!("d{}/f{number:02}", number % 5))
        .collect();
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), content.as_slice()))
        .collect();
    let root = tree(&files);
    for _ in 0..20 {
        let found = grep(
            &SearchFiles {
                limit: Some(3),
                ..ask("x2")
            },
            root.path(),
        );
        let lines = expected(
            root.path(),
            "x2",
            &["d0/f00:2:x2", "d0/f00:5:x2", "d0/f00:8:x2"],
        );
        let reason = "(Truncated: only the first 3 matches are shown. Narrow the pattern or the path, or raise the limit.)";
        assert_eq!(found, truncated(lines, reason));
    }
}

#[test]
fn exactly_the_limit_is_not_truncated() {
    let root = tree(&[("a", b"x\n"), ("b", b"x\n")]);
    let found = grep(
        &SearchFiles {
            limit: Some(2),
            ..ask("x")
        },
        root.path(),
    );
    assert_eq!(found, expected(root.path(), "x", &["a:1:x", "b:1:x"]));
}

#[test]
fn a_long_line_is_cut_at_a_character() {
    let long = "é".repeat(LINE_CHARS_MAX + 1);
    let fits = "é".repeat(LINE_CHARS_MAX);
    let root = tree(&[("fits", fits.as_bytes()), ("long", long.as_bytes())]);
    assert_eq!(
        grep(&ask("é"), root.path()),
        expected(
            root.path(),
            "é",
            &[
                &format!("fits:1:{fits}"),
                &format!("long:1:{fits} [line cut]")
            ]
        )
    );
}

#[test]
fn a_line_beyond_the_heap_limit_ends_that_file_and_is_said() {
    let mut huge = b"x first\n".to_vec();
    huge.resize(HEAP_BYTES_MAX + 100_000, b'y');
    let root = tree(&[("huge", &huge), ("small", b"x\n")]);
    let found = grep(&ask("x"), root.path());
    let mut wanted = expected(root.path(), "x", &["huge:1:x first", "small:1:x"]);
    wanted.content.push_str(
        "\n(1 entry was not searched to the end: not readable, or a line longer than 8 MiB.)",
    );
    assert_eq!(found, wanted);
}

#[test]
fn bytes_that_are_not_text_are_replaced() {
    let root = tree(&[("a", b"caf\xe9 x\n")]);
    assert_eq!(
        grep(&ask("x"), root.path()),
        expected(root.path(), "x", &["a:1:caf\u{fffd} x"])
    );
}

#[test]
fn a_search_whose_time_is_over_says_so() {
    let root = tree(&[("a", b"x\n")]);
    let bounds = Bounds {
        limit: 5,
        deadline: Instant::now(),
    };
    let reason =
        "(The search was stopped after 20 seconds; matches may be missing. Narrow the path.)";
    let nothing = |path: &Path| Observation {
        content: format!("No matches for 'x' in {}.", path.display()),
        ..expected(path, "x", &[])
    };
    let found = grep_within(&ask("x"), root.path(), &Reach::WholeFilesystem, bounds);
    assert_eq!(found, truncated(nothing(root.path()), reason));
    let one_file = SearchFiles {
        path: Some("a".to_owned()),
        ..ask("x")
    };
    let found = grep_within(&one_file, root.path(), &Reach::WholeFilesystem, bounds);
    assert_eq!(found, truncated(nothing(&root.path().join("a")), reason));
}

#[test]
fn what_cannot_be_searched_is_an_error_that_names_it() {
    let root = tree(&[("a", b"x\n")]);
    let missing = SearchFiles {
        path: Some("nope".to_owned()),
        ..ask("x")
    };
    let include = SearchFiles {
        include: Some("{a".to_owned()),
        ..ask("x")
    };
    let shown = root.path().display();
    let cases = [
        (ask(""), "The pattern must not be empty.".to_owned()),
        (missing, format!("Path does not exist: '{shown}/nope'.")),
        (
            include,
            "Invalid glob pattern '{a': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)."
                .to_owned(),
        ),
    ];
    for (action, text) in cases {
        assert_eq!(grep(&action, root.path()), Observation::error(text));
    }
    for pattern in ["(", "a\\nb", "(x{1000}){1000}"] {
        let found = grep(&ask(pattern), root.path());
        let start = format!("Invalid regular expression '{pattern}': ");
        assert!(found.content.starts_with(&start), "{found:?}");
        assert_eq!(found, Observation::error(found.content.clone()));
    }
}
