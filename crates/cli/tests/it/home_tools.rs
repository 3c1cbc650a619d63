//! Programs in the user's home: what is said of those that a sandbox does not see, and how it sees them.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Lasting, Place, Told};

/// A home with a tool. Homes below `/tmp` are not shown.
fn home() -> TempDir {
    let home = TempDir::new_in("/var/tmp").unwrap();
    program(
        home.path(),
        ".cargo/bin/made-tool",
        "#!/bin/sh\necho made\n",
    );
    home
}

fn program(home: &Path, name: &str, text: &str) {
    let path = home.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn told(place: &Place, home: &TempDir, arguments: &[&str]) -> Told {
    let mut command = place.zareba(arguments);
    Told::from(command.env("HOME", home.path()).output().unwrap())
}

const NOT_SEEN: &str = "hint: `made-tool` is in `~/.cargo/bin`, which sandboxes do not see; ";

#[test]
fn a_tool_of_the_home_that_was_not_found_is_named_with_its_place() {
    let (place, home) = (Place::new(), home());
    let fresh = format!("{NOT_SEEN}`--home-tools` shows it, read-only\n");
    for command in [&["cd /tmp && made-tool x"][..], &["made-tool", "x"]] {
        let told = told(&place, &home, &[&["run", "--"][..], command].concat());
        assert_eq!(told.code, Some(127), "{}", told.stderr);
        assert!(told.stderr.ends_with(&fresh), "{}", told.stderr);
    }
    let unknown = told(&place, &home, &["run", "--", "no-such-tool"]);
    assert_eq!(unknown.code, Some(127));
    assert!(!unknown.stderr.contains("hint:"), "{}", unknown.stderr);
    let lasting = Lasting::create(&place, &[]);
    let existing = told(&place, &home, &["exec", lasting.id(), "made-tool"]);
    let hint = format!("{NOT_SEEN}`zareba create --home-tools` makes one that does, read-only\n");
    assert!(existing.stderr.ends_with(&hint), "{}", existing.stderr);
}

#[test]
fn with_the_flag_a_tool_runs_and_inspect_and_doctor_name_its_place() {
    let (place, home) = (Place::new(), home());
    let ran = told(&place, &home, &["run", "--home-tools", "--", "made-tool"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "made\n"));
    let created = told(&place, &home, &["create", "--home-tools"]);
    let lasting = Lasting::adopt(&place, created.stdout.trim_end());
    let inspected = told(&place, &home, &["inspect", "-o", "json", lasting.id()]);
    let document: Value = serde_json::from_str(&inspected.stdout).unwrap();
    let bin = home.path().join(".cargo/bin");
    assert_eq!(document["home_tools"], serde_json::json!([bin]));
    let doctor = told(&place, &home, &["doctor"]);
    let row = "home tools       ~/.cargo/bin: sandboxes see them with `native.home_tools = ";
    assert!(doctor.stdout.contains(row), "{}", doctor.stdout);
}

#[test]
fn an_environment_whose_interpreter_is_in_the_home_says_so() {
    let (place, home) = (Place::new(), home());
    program(home.path(), "pythons/3.12/bin/python3.12", "\x7fELF");
    program(home.path(), "pythons/3.12/lib/python3.12/os.py", "");
    let interpreter = home.path().join("pythons/3.12/bin/python3.12");
    let bin = place.path("workspace/.venv/bin");
    fs::create_dir_all(&bin).unwrap();
    symlink(&interpreter, bin.join("python")).unwrap();
    let words = ["run", "--workspace", ".", "--", ".venv/bin/python", "-V"];
    let told = told(&place, &home, &words);
    assert_eq!(told.code, Some(127), "{}", told.stderr);
    let link = format!(
        "cannot start `/workspace/.venv/bin/python`: it is a link to `{}`, which is not there",
        interpreter.display()
    );
    assert!(told.stderr.contains(&link), "{}", told.stderr);
    let hint = "hint: `.venv/bin/python` leads to `~/pythons/3.12/bin/python3.12`, which sandboxes do \
                not see; `--home-tools` shows it, read-only\n";
    assert!(told.stderr.ends_with(hint), "{}", told.stderr);
}
