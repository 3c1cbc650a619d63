//! Searches in a workspace with walls, and through trees that change under them.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Mutex,
};

use rustix::fs::{CWD, Mode, mkfifoat};
use zareba_protocol::{FindFiles, MatchesFound, Observation, ObservationKind, SearchFiles};

use super::{
    bounds::Bounds,
    glob, grep,
    root::Root,
    walk::{Entry, Next, Scope, Walked, walk},
};
use crate::files::fixture::Fixture;

/// An enclosed workspace with a file, and ways out of it.
fn enclosed() -> Fixture {
    let fixture = Fixture::enclosed();
    fs::create_dir_all(fixture.outside().join("out/deep")).unwrap();
    fs::write(fixture.outside().join("out/deep/secret"), "needle").unwrap();
    symlink("../out", fixture.root().join("relative")).unwrap();
    symlink(
        fixture.outside().join("out"),
        fixture.root().join("absolute"),
    )
    .unwrap();
    symlink("/proc/self/root", fixture.root().join("magic")).unwrap();
    fs::create_dir(fixture.root().join("sub")).unwrap();
    fixture.put("sub/file", "needle");
    fixture
}

fn globbed(fixture: &Fixture, path: Option<&str>, pattern: &str) -> Observation {
    let action = FindFiles {
        pattern: pattern.to_owned(),
        path: path.map(str::to_owned),
        ..FindFiles::default()
    };
    glob(&action, &fixture.root(), &fixture.reach)
}

fn grepped(fixture: &Fixture, path: Option<&str>) -> Observation {
    let action = SearchFiles {
        pattern: "needle".to_owned(),
        path: path.map(str::to_owned),
        ..SearchFiles::default()
    };
    grep(&action, &fixture.root(), &fixture.reach)
}

fn found(observation: &Observation) -> Vec<&str> {
    match &observation.kind {
        ObservationKind::Glob(found) => found.files.iter().map(String::as_str).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_outside_is_searched() {
    let fixture = enclosed();
    let out = fixture.outside().join("out");
    let whole = |path: &Path| path.to_str().unwrap().to_owned();
    for path in [
        "..".to_owned(),
        "sub/../..".to_owned(),
        "relative".to_owned(),
        "relative/deep".to_owned(),
        "absolute".to_owned(),
        "absolute/deep/secret".to_owned(),
        "magic".to_owned(),
        "magic/etc".to_owned(),
        "/".to_owned(),
        "/etc".to_owned(),
        "/nothing/there".to_owned(),
        "/proc/self/root".to_owned(),
        format!("/proc/self/root{}", fixture.path("sub")),
        whole(&out),
        whole(&out.join("deep/secret")),
    ] {
        let shown = whole(&fixture.root().join(&path));
        let refused = Observation::error(fixture.outside_refusal(&shown));
        assert_eq!(globbed(&fixture, Some(&path), "*"), refused, "{path}");
        assert_eq!(grepped(&fixture, Some(&path)), refused, "{path}");
    }
    for pattern in [format!("{}/**", out.display()), "/**/secret".to_owned()] {
        let directory = if pattern == "/**/secret" {
            "/"
        } else {
            &whole(&out)
        };
        let refused = Observation::error(fixture.outside_refusal(directory));
        assert_eq!(globbed(&fixture, None, &pattern), refused, "{pattern}");
    }
    let elsewhere = FindFiles {
        pattern: "*".to_owned(),
        ..FindFiles::default()
    };
    assert_eq!(
        glob(&elsewhere, &out, &fixture.reach),
        Observation::error(fixture.outside_refusal(&whole(&out)))
    );
}

#[test]
fn searches_inside_go_on_as_usual() {
    let fixture = enclosed();
    symlink("sub", fixture.root().join("inside")).unwrap();
    symlink(fixture.path("sub"), fixture.root().join("by-name")).unwrap();
    let links = [
        "absolute", "by-name", "inside", "magic", "relative", "sub/file",
    ];
    let links = links.map(|name| fixture.path(name));
    assert_eq!(found(&globbed(&fixture, None, "*")), links);
    for path in ["inside", "by-name", "sub/../sub", &fixture.path("sub")] {
        let shown = match path {
            "inside" | "by-name" => fixture.path(path),
            _ => fixture.path("sub"),
        };
        let expected = Observation {
            content: format!("{shown}/file:1:needle"),
            kind: ObservationKind::Grep(MatchesFound {
                path: shown,
                pattern: "needle".to_owned(),
                files: 1,
                matches: 1,
                truncated: false,
            }),
        };
        assert_eq!(grepped(&fixture, Some(path)), expected, "{path}");
    }
    let pattern = fixture.path("sub/*");
    assert_eq!(
        found(&globbed(&fixture, None, &pattern)),
        [fixture.path("sub/file")]
    );
}

#[test]
fn ignore_files_outside_the_walls_do_not_count_and_links_are_no_ignore_files() {
    let fixture = enclosed();
    fs::write(fixture.outside().join(".gitignore"), "file\n").unwrap();
    fs::write(fixture.outside().join("rules"), "file\n").unwrap();
    symlink("../rules", fixture.root().join(".ignore")).unwrap();
    symlink("../../rules", fixture.root().join("sub/.gitignore")).unwrap();
    let all = globbed(&fixture, None, "file");
    assert_eq!(found(&all), [fixture.path("sub/file")]);
    fixture.put(".gitignore", "/sub/file\n");
    let below = globbed(&fixture, Some("sub"), "file");
    assert_eq!(found(&below), Vec::<&str>::new());
}

/// The second directory becomes a link to the outside after it was listed and before it is
/// entered, as a command that runs at the same time can make it.
#[test]
fn a_directory_that_turns_into_a_link_is_not_entered() {
    let fixture = enclosed();
    fixture.put("first", "");
    let root = Root::find(None, &fixture.root(), &fixture.reach).unwrap();
    let seen: Mutex<Vec<PathBuf>> = Mutex::default();
    let bounds = Bounds::starting_now(None, 10, 10);
    let walked = walk(&root, &fixture.reach, Scope::Everything, bounds, || {
        |entry: Entry<'_>| {
            let below = entry.path.strip_prefix(fixture.root()).unwrap();
            seen.lock().unwrap().push(below.to_owned());
            if below == Path::new("sub") {
                fs::rename(entry.path, fixture.root().join("moved")).unwrap();
                symlink("../out", entry.path).unwrap();
            }
            Next::Enter
        }
    });
    assert_eq!(walked, Walked::default());
    let mut seen = seen.into_inner().unwrap();
    // Whether the listing still meets the new name is the file system's choice.
    seen.retain(|path| !path.starts_with("moved"));
    seen.sort();
    let expected = ["absolute", "first", "magic", "relative", "sub"].map(PathBuf::from);
    assert_eq!(seen, expected);
}

#[test]
fn pipes_and_huge_files_in_the_place_of_ignore_files_do_no_harm() {
    let fixture = Fixture::new();
    for name in [".ignore", ".gitignore"] {
        mkfifoat(CWD, fixture.root().join(name), Mode::RWXU).unwrap();
    }
    fs::create_dir(fixture.root().join("sub")).unwrap();
    fixture.put("sub/kept-1", "");
    fixture.put("sub/gone", "");
    // The last rule that fits is cut in the middle and must not count as a shorter one.
    let mut rules = "gone\n".to_owned();
    rules.push_str(&"#".repeat(128 * 1024 - rules.len() - "\nkept".len()));
    rules.push_str("\nkept-1-and-more\nkept-1\n");
    fixture.put("sub/.gitignore", rules);
    assert_eq!(
        found(&globbed(&fixture, None, "*")),
        [fixture.path("sub/kept-1")]
    );
}

#[test]
fn rules_bring_back_what_others_left_out() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.root().join("sub/.git/info")).unwrap();
    fixture.put(".gitignore", "*.log\n");
    fixture.put("sub/.gitignore", "!kept.log\n!.shown\n");
    fixture.put("sub/.ignore", "never.log\n");
    fixture.put("sub/.git/info/exclude", "excluded\n");
    for name in [
        "kept.log",
        "never.log",
        "gone.log",
        ".shown",
        ".hidden",
        "excluded",
    ] {
        fixture.put(&format!("sub/{name}"), "");
    }
    assert_eq!(
        found(&globbed(&fixture, None, "*")),
        [fixture.path("sub/.shown"), fixture.path("sub/kept.log")]
    );
}

#[test]
fn names_that_are_not_text_are_found_in_a_form_that_can_be_used() {
    let fixture = Fixture::new();
    let name = std::os::unix::ffi::OsStrExt::from_bytes(b"caf\xe9");
    let directory = fixture.root().join::<&std::ffi::OsStr>(name);
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("f"), "needle").unwrap();
    let shown = fixture.path("caf\\xe9/f");
    assert_eq!(found(&globbed(&fixture, None, "*")), [shown.as_str()]);
    assert_eq!(
        found(&globbed(&fixture, Some("caf\\xe9"), "*")),
        [shown.as_str()]
    );
    let line = format!("{shown}:1:needle");
    assert_eq!(grepped(&fixture, None).content, line);
    assert_eq!(grepped(&fixture, Some(&shown)).content, line);
    assert_eq!(fixture.read(&shown).content, "needle");
}
