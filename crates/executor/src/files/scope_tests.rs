//! A workspace with walls: what leads out is refused, what only looks like it is not.

use std::{fs, os::unix::fs::symlink};

use zareba_protocol::Observation;

use super::{FilePath, fixture::Fixture};

fn refused(fixture: &Fixture, path: &str) -> Observation {
    Observation::error(fixture.outside_refusal(path))
}

#[test]
fn nothing_outside_is_read_written_or_listed() {
    let fixture = Fixture::enclosed();
    let secret = fixture.outside().join("secret");
    fs::write(&secret, "secret").unwrap();
    symlink(&secret, fixture.root().join("absolute")).unwrap();
    symlink("../secret", fixture.root().join("relative")).unwrap();
    symlink("..", fixture.root().join("up")).unwrap();
    symlink("/proc/self/root", fixture.root().join("magic")).unwrap();
    fixture.put("file", "");
    let secret = secret.to_str().unwrap();
    let paths = [
        secret.to_owned(),
        "/etc/passwd".to_owned(),
        fixture.path("../secret"),
        fixture.path("absolute"),
        fixture.path("relative"),
        fixture.path("up/secret"),
        fixture.path("magic/etc/passwd"),
        "/proc/self/root/etc/passwd".to_owned(),
        format!("/proc/self/root{}", fixture.path("file")),
        format!("/proc/self/cwd/../../../../../..{}", fixture.path("file")),
    ];
    for path in &paths {
        assert_eq!(fixture.read(path), refused(&fixture, path));
        assert_eq!(fixture.write(path, "mine"), refused(&fixture, path));
        for said in [
            fixture.str_replace(path, "secret", "mine"),
            fixture.create(path, "mine"),
            fixture.say("view", path),
        ] {
            let reason = fixture.outside_refusal(path);
            let expected = format!("ERROR:\nRan into {reason} while trying to read {path}");
            assert_eq!(said, expected);
        }
    }
    let outside = fixture.outside().join("new/file");
    let outside = outside.to_str().unwrap();
    assert_eq!(fixture.write(outside, "x"), refused(&fixture, outside));
    assert_eq!(
        fixture.write("up/new/file", "x"),
        refused(&fixture, &fixture.path("up/new/file"))
    );
    assert!(!fixture.outside().join("new").exists());
    for path in ["/etc", "up", "..", "magic", "/proc/self/root", "/"] {
        assert_eq!(fixture.files.list(Some(path)), Vec::<String>::new());
    }
    assert_eq!(fixture.files.list(None), ["file"]);
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
}

#[test]
fn a_path_that_leads_out_behind_what_is_missing_makes_nothing() {
    let fixture = Fixture::enclosed();
    let path = "missing/deeper/../../../out/file";
    let expected = refused(&fixture, &fixture.path(path));
    assert_eq!(fixture.write(path, "x"), expected);
    assert_eq!(fixture.names(""), Vec::<String>::new());
    assert!(!fixture.outside().join("out").exists());
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
