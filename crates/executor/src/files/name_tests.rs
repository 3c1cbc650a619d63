//! Names that are not text, through every action that takes or gives one.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

use super::fixture::Fixture;

/// Written by one action, such a file is found under the same name by all others.
#[test]
fn a_name_that_is_not_text_is_written_listed_read_and_edited() {
    for fixture in [Fixture::new(), Fixture::enclosed()] {
        let at = |name: &[u8]| fixture.root().join(OsStr::from_bytes(name));
        let written = fixture.write("d\\xe9/caf\\xe9.txt", "one");
        assert_eq!(written.content, "");
        assert_eq!(fs::read(at(b"d\xe9/caf\xe9.txt")).unwrap(), b"one\n");
        assert_eq!(fixture.files.list(None), ["d\\xe9/"]);
        let listed = fixture.files.list(Some("d\\xe9"));
        assert_eq!(listed, ["caf\\xe9.txt"]);
        let path = fixture.path("d\\xe9/caf\\xe9.txt");
        assert_eq!(fixture.read("d\\xe9/caf\\xe9.txt").content, "one\n");
        assert_eq!(fixture.read(&path).content, "one\n");
        let said = fixture.str_replace(&path, "one", "two");
        assert!(said.starts_with("The file "), "{said}");
        assert_eq!(fs::read(at(b"d\xe9/caf\xe9.txt")).unwrap(), b"two\n");
        let said = fixture.say("undo_edit", &path);
        assert!(said.starts_with("Last edit to "), "{said}");
        let created = fixture.path("d\\xe9/new\\xff");
        assert_eq!(
            fixture.create(&created, "x"),
            format!("File created successfully at: {created}")
        );
        assert_eq!(fs::read(at(b"d\xe9/new\xff")).unwrap(), b"x");
        let root = fixture.path("d\\xe9");
        assert_eq!(
            fixture.say("view", &root),
            format!(
                "Here's the files and directories up to 2 levels deep in {root}, excluding hidden items:\n{root}/\n{path}\n{created}"
            )
        );
    }
}

#[test]
fn a_name_that_only_looks_escaped_is_another_file() {
    let fixture = Fixture::new();
    fs::write(fixture.root().join(OsStr::from_bytes(b"caf\xe9")), "bytes").unwrap();
    fs::write(fixture.root().join("caf\\xe9"), "letters").unwrap();
    let listed = fixture.files.list(None);
    assert_eq!(listed, ["caf\\x5cxe9", "caf\\xe9"]);
    assert_eq!(fixture.read("caf\\xe9").content, "bytes");
    assert_eq!(fixture.read("caf\\x5cxe9").content, "letters");
}

#[test]
fn backslashes_of_an_agent_that_never_saw_an_escape_stay() {
    let fixture = Fixture::new();
    for name in ["a\\b", "C:\\x64\\f", "\\x41", "\\x2e\\x2e"] {
        fixture.write(name, name);
        assert_eq!(fixture.get(name), format!("{name}\n"));
        assert_eq!(fixture.read(name).content, format!("{name}\n"));
    }
    let listed = fixture.files.list(None);
    assert_eq!(
        listed,
        ["\\x5cx2e\\x5cx2e", "\\x5cx41", "a\\b", "C:\\x5cx64\\x5cf"]
    );
    for name in listed {
        assert!(fixture.read(&name).content.ends_with('\n'), "{name}");
    }
}
