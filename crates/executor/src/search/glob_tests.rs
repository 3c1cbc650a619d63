//! What `glob` promises, one test per promise.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Instant,
};

use zareba_protocol::{FilesFound, FindFiles, Observation, ObservationKind};

use super::*;

/// A directory with these files, each holding its own name.
fn tree(files: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for file in files {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    root
}

/// A search that may reach everything.
fn glob(action: &FindFiles, cwd: &Path) -> Observation {
    super::glob(action, cwd, &Reach::WholeFilesystem)
}

fn ask(pattern: &str) -> FindFiles {
    FindFiles {
        pattern: pattern.to_owned(),
        ..FindFiles::default()
    }
}

fn expected(root: &Path, pattern: &str, files: &[&str]) -> Observation {
    let files: Vec<String> = files
        .iter()
        .map(|file| root.join(file).display().to_string())
        .collect();
    Observation {
        content: files.join("\n"),
        kind: ObservationKind::Glob(FilesFound {
            path: root.display().to_string(),
            pattern: pattern.to_owned(),
            files,
            truncated: false,
        }),
    }
}

#[test]
fn names_are_absolute_and_sorted_by_path() {
    let root = tree(&["b.rs", "a/z.rs", "a-b.rs", "a/b/c.rs", "a.txt"]);
    let found = glob(&ask("**/*.rs"), root.path());
    assert_eq!(
        found,
        expected(
            root.path(),
            "**/*.rs",
            &["a/b/c.rs", "a/z.rs", "a-b.rs", "b.rs"]
        )
    );
}

#[test]
fn ignore_files_are_respected_outside_a_git_repository() {
    let root = tree(&[
        "keep.rs",
        "target/out.rs",
        "old/x.rs",
        ".hidden/h.rs",
        "sub/gone.rs",
    ]);
    fs::write(root.path().join(".gitignore"), "target/\n").unwrap();
    fs::write(root.path().join(".ignore"), "/old\n").unwrap();
    fs::write(root.path().join("sub/.gitignore"), "gone.rs\n").unwrap();
    assert_eq!(
        glob(&ask("*.rs"), root.path()),
        expected(root.path(), "*.rs", &["keep.rs"])
    );
}

#[test]
fn ignore_files_of_the_directories_above_count() {
    let root = tree(&["src/a.rs", "src/b.gen.rs"]);
    fs::write(root.path().join(".gitignore"), "*.gen.rs\n").unwrap();
    let src = root.path().join("src");
    assert_eq!(glob(&ask("*.rs"), &src), expected(&src, "*.rs", &["a.rs"]));
}

#[test]
fn include_ignored_shows_hidden_and_ignored_files() {
    let root = tree(&["keep.rs", "target/out.rs", ".hidden/h.rs"]);
    fs::write(root.path().join(".gitignore"), "target/\n").unwrap();
    let action = FindFiles {
        include_ignored: true,
        ..ask("*.rs")
    };
    assert_eq!(
        glob(&action, root.path()),
        expected(
            root.path(),
            "*.rs",
            &[".hidden/h.rs", "keep.rs", "target/out.rs"]
        )
    );
}

#[test]
fn the_path_may_be_relative_and_may_climb() {
    let root = tree(&["src/a.rs", "b.rs"]);
    let src = root.path().join("src");
    let relative = FindFiles {
        path: Some("src".to_owned()),
        ..ask("*.rs")
    };
    assert_eq!(
        glob(&relative, root.path()),
        expected(&src, "*.rs", &["a.rs"])
    );
    let climbing = FindFiles {
        path: Some("../src/.".to_owned()),
        ..ask("*.rs")
    };
    assert_eq!(glob(&climbing, &src), expected(&src, "*.rs", &["a.rs"]));
}

#[test]
fn an_absolute_pattern_is_searched_where_it_points() {
    let root = tree(&["src/a.rs", "b.rs"]);
    let pattern = format!("{}/src/*.rs", root.path().display());
    let src = root.path().join("src");
    assert_eq!(
        glob(&ask(&pattern), Path::new("/proc")),
        expected(&src, &pattern, &["a.rs"])
    );
}

#[test]
fn links_are_listed_by_name_and_never_followed() {
    let root = tree(&["dir/a.rs"]);
    let outside = tree(&["secret.rs"]);
    symlink(outside.path(), root.path().join("out")).unwrap();
    symlink(root.path(), root.path().join("dir/loop")).unwrap();
    symlink("dir/a.rs", root.path().join("link.rs")).unwrap();
    assert_eq!(
        glob(&ask("*.rs"), root.path()),
        expected(root.path(), "*.rs", &["dir/a.rs", "link.rs"])
    );
}

#[test]
fn a_root_that_is_a_link_is_searched() {
    let root = tree(&["dir/a.rs"]);
    let link = root.path().join("link");
    symlink("dir", &link).unwrap();
    let action = FindFiles {
        path: Some("link".to_owned()),
        ..ask("*.rs")
    };
    assert_eq!(
        glob(&action, root.path()),
        expected(&link, "*.rs", &["a.rs"])
    );
}

#[test]
fn the_limit_keeps_the_first_paths_and_says_so() {
    let names: Vec<String> = (0..300)
        .map(|number| format!("d{}/f{number:03}.rs", number % 7))
        .collect();
    let root = tree(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut sorted: Vec<PathBuf> = names.iter().map(|name| root.path().join(name)).collect();
    sorted.sort();
    let first: Vec<String> = sorted[..5]
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    for _ in 0..20 {
        let found = glob(
            &FindFiles {
                limit: Some(5),
                ..ask("*.rs")
            },
            root.path(),
        );
        let content = format!(
            "{}\n(Truncated: only the first 5 files are shown. Narrow the pattern or the path, or raise the limit.)",
            first.join("\n")
        );
        let kind = ObservationKind::Glob(FilesFound {
            path: root.path().display().to_string(),
            pattern: "*.rs".to_owned(),
            files: first.clone(),
            truncated: true,
        });
        assert_eq!(found, Observation { content, kind });
    }
}

#[test]
fn exactly_the_limit_is_not_truncated() {
    let root = tree(&["a.rs", "b.rs"]);
    let found = glob(
        &FindFiles {
            limit: Some(2),
            ..ask("*.rs")
        },
        root.path(),
    );
    assert_eq!(found, expected(root.path(), "*.rs", &["a.rs", "b.rs"]));
}

#[test]
fn the_limit_has_a_default_a_floor_and_a_ceiling() {
    let limit = |asked| Bounds::starting_now(asked, GLOB_LIMIT_DEFAULT, GLOB_LIMIT_MAX).limit;
    assert_eq!(
        [limit(None), limit(Some(0)), limit(Some(u32::MAX))],
        [GLOB_LIMIT_DEFAULT, 1, GLOB_LIMIT_MAX]
    );
}

#[test]
fn no_match_is_a_sentence() {
    let root = tree(&["a.rs"]);
    let found = glob(&ask("*.zig"), root.path());
    let content = format!("No files match '*.zig' in {}.", root.path().display());
    assert_eq!(
        found,
        Observation {
            content,
            ..expected(root.path(), "*.zig", &[])
        }
    );
}

#[test]
fn a_search_whose_time_is_over_says_so() {
    let root = tree(&["a.rs"]);
    let bounds = Bounds {
        limit: 5,
        deadline: Instant::now(),
    };
    let found = glob_within(&ask("*.rs"), root.path(), &Reach::WholeFilesystem, bounds);
    let shown = root.path().display();
    let content = format!(
        "No files match '*.rs' in {shown}.\n(The search was stopped after 20 seconds; files may be missing. Narrow the path.)"
    );
    let kind = ObservationKind::Glob(FilesFound {
        path: shown.to_string(),
        pattern: "*.rs".to_owned(),
        files: Vec::new(),
        truncated: true,
    });
    assert_eq!(found, Observation { content, kind });
}

#[test]
fn what_cannot_be_searched_is_an_error_that_names_it() {
    let root = tree(&["a.rs"]);
    let shown = root.path().display();
    let cases = [
        (ask(""), "The pattern must not be empty.".to_owned()),
        (
            ask("src/[a"),
            "Invalid glob pattern 'src/[a': unclosed character class; missing ']'.".to_owned(),
        ),
        (
            FindFiles {
                path: Some("nope".to_owned()),
                ..ask("*")
            },
            format!("Path does not exist: '{shown}/nope'."),
        ),
        (
            FindFiles {
                path: Some("a.rs".to_owned()),
                ..ask("*")
            },
            format!("Path is not a directory: '{shown}/a.rs'."),
        ),
    ];
    for (action, text) in cases {
        assert_eq!(glob(&action, root.path()), Observation::error(text));
    }
}
