//! A workspace with walls: what leads out is refused, what only looks like it is not.

use std::{fs, os::unix::fs::symlink};

use zareba_protocol::Observation;

use super::{FilePath, fixture::Fixture};

fn refused(fixture: &Fixture, path: &str) -> Observation {
    Observation::error(format!(
        "[Errno 13] Permission denied: '{path}' (outside the workspace {})",
        fixture.root().display()
    ))
}

#[test]
fn nothing_outside_is_read_written_or_listed() {
    let fixture = Fixture::enclosed();
    let secret = fixture.outside().join("secret");
    fs::write(&secret, "secret").unwrap();
    symlink(&secret, fixture.root().join("absolute")).unwrap();
    symlink("../secret", fixture.root().join("relative")).unwrap();
    symlink("..", fixture.root().join("up")).unwrap();
    let secret = secret.to_str().unwrap();
    let paths = [
        secret.to_owned(),
        "/etc/passwd".to_owned(),
        fixture.path("../secret"),
        fixture.path("absolute"),
        fixture.path("relative"),
        fixture.path("up/secret"),
    ];
    for path in &paths {
        assert_eq!(fixture.read(path), refused(&fixture, path));
        assert_eq!(fixture.write(path, "mine"), refused(&fixture, path));
        let said = fixture.str_replace(path, "secret", "mine");
        assert!(
            said.starts_with("ERROR:\nRan into [Errno 13] Permission denied: "),
            "{said}"
        );
        assert!(said.contains("(outside the workspace "), "{said}");
    }
    let outside = fixture.outside().join("new/file");
    let outside = outside.to_str().unwrap();
    assert_eq!(fixture.write(outside, "x"), refused(&fixture, outside));
    assert_eq!(
        fixture.write("up/new/file", "x"),
        refused(&fixture, &fixture.path("up/new/file"))
    );
    assert!(!fixture.outside().join("new").exists());
    assert_eq!(fixture.files.list(Some("/etc")), Vec::<String>::new());
    assert_eq!(fixture.files.list(Some("up")), Vec::<String>::new());
    assert_eq!(fixture.files.list(None), Vec::<String>::new());
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
}

#[test]
fn work_inside_goes_on_as_usual() {
    let fixture = Fixture::enclosed();
    fixture.write("sub/dir/file", "text");
    symlink(fixture.path("sub/dir"), fixture.root().join("absolute")).unwrap();
    symlink("dir/../dir/file", fixture.root().join("sub/relative")).unwrap();
    for path in [
        "sub/dir/file",
        "sub/../sub/dir/file",
        "absolute/file",
        "sub/relative",
    ] {
        assert_eq!(fixture.read(path).content, "text\n", "{path}");
    }
    fixture.write("absolute/file", "through the link");
    fixture.write("sub/relative", "and again");
    fixture.write("absolute/new/file", "made");
    assert_eq!(fixture.get("sub/dir/file"), "and again\n");
    assert_eq!(fixture.get("sub/dir/new/file"), "made\n");
    assert_eq!(fixture.files.list(None), ["absolute/", "sub/"]);
    assert_eq!(fixture.files.list(Some("absolute")), ["new/", "file"]);
    let said = fixture.str_replace(&fixture.path("absolute/file"), "again", "once more");
    assert!(said.starts_with("The file "), "{said}");
    assert_eq!(fixture.get("sub/dir/file"), "and once more\n");
}

#[test]
fn a_directory_view_does_not_look_outside() {
    let fixture = Fixture::enclosed();
    fs::create_dir(fixture.outside().join("private")).unwrap();
    fs::write(fixture.outside().join("private/key"), "").unwrap();
    symlink(
        fixture.outside().join("private"),
        fixture.root().join("link"),
    )
    .unwrap();
    let root = fixture.root();
    let root = root.to_str().unwrap();
    assert_eq!(
        fixture.say("view", root),
        format!(
            "Here's the files and directories up to 2 levels deep in {root}, excluding hidden items:\n{root}/\n{root}/link"
        )
    );
}

#[test]
fn a_path_that_turns_into_a_link_while_it_is_used_does_not_lead_out() {
    let fixture = Fixture::enclosed();
    fs::create_dir(fixture.root().join("dir")).unwrap();
    let path = FilePath::locate("dir/file", &fixture.root()).unwrap();
    let slot = fixture.files.workspace.slot(&path).unwrap();
    fs::rename(fixture.root().join("dir"), fixture.root().join("moved")).unwrap();
    symlink(fixture.outside(), fixture.root().join("dir")).unwrap();
    let target = super::Target::Absent(crate::owner::Owner::Ourselves);
    assert_eq!(slot.replace(b"x", target), Ok(super::Ownership::AsWanted));
    assert_eq!(fixture.get("moved/file"), "x");
    assert!(!fixture.outside().join("file").exists());
}
