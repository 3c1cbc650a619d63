//! What a sandbox has changed in its workspace: `diff`, `cp --changed`, the API and the tool.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    mcp::Client,
    serving::Serving,
    support::{Lasting, Place},
};

/// A script that makes a change of every kind.
const WORK: &str = "printf 'one\\n2\\n' > kept; rm gone; mkdir -p sub; mv moved sub/moved; \
                    printf '#!/bin/sh\\n' > run; chmod +x run; rm -r old; ln -s kept link; \
                    printf 'a\\0b' > binary; mkfifo pipe; printf x > \"$(printf 'new\\nline')\"; \
                    printf '\\ta\\r\\n' > tab";

/// What they are in a list.
const LISTED: [&str; 10] = [
    "A binary",
    "D gone",
    "M kept",
    "A link",
    "A new\nline",
    "D old/deep/file",
    "A pipe",
    "A run",
    "R moved -> sub/moved",
    "A tab",
];

/// The workspace that the script works in.
fn workspace(place: &Place) {
    let here = place.path("workspace");
    for (name, content) in [
        ("kept", "one\ntwo\n"),
        ("gone", "g\n"),
        ("moved", "m\n"),
        ("old/deep/file", "o\n"),
        ("same", "s\n"),
    ] {
        let path = here.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn told(place: &Place, arguments: &[&str]) -> String {
    let told = place.output(arguments);
    assert_eq!(
        (told.code, told.stderr.as_str()),
        (Some(0), ""),
        "{arguments:?}"
    );
    told.stdout
}

/// All files below a directory with their content, and links with their target.
fn tree(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(here) = left.pop() {
        for entry in fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().display().to_string();
            let kind = fs::symlink_metadata(&path).unwrap();
            if kind.is_dir() {
                left.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                found.insert(name, format!("-> {}", target.display()));
            } else {
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

fn expected(names: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = names.iter();
    pairs
        .map(|(name, content)| ((*name).into(), (*content).into()))
        .collect()
}

const AFTER: [(&str, &str); 7] = [
    ("kept", "one\n2\n"),
    ("link", "-> kept"),
    ("new\nline", "x"),
    ("run", "#!/bin/sh\n"),
    ("same", "s\n"),
    ("sub/moved", "m\n"),
    ("tab", "\ta\r\n"),
];

#[test]
fn changes_of_a_sandbox_are_listed_and_taken_out_as_a_patch_or_as_files() {
    let place = Place::new();
    workspace(&place);
    let _sandbox = Lasting::create(&place, &["--name", "box", "--workspace", "."]);
    assert_eq!(told(&place, &["diff", "box"]), "");
    told(&place, &["exec", "box", "--", WORK]);
    let lines = LISTED.map(|line| line.replace('\n', "\\n") + "\n").concat();
    assert_eq!(told(&place, &["diff", "box"]).replace("^J", "\\n"), lines);
    assert_eq!(told(&place, &["diff", "box", "sub"]), "A sub/moved\n");
    let document: Value =
        serde_json::from_str(&told(&place, &["diff", "-o", "json", "box", "run"])).unwrap();
    let run = json!({ "path": "run", "change": "added", "kind": "file", "size": 10,
        "executable": true });
    assert_eq!(document, run);

    let before = tree(&place.path("workspace"));
    let patch = place.output(&["diff", "--patch", "box"]);
    assert_eq!(patch.code, Some(1));
    let expected_words = "warning: not in the patch: binary: a binary file\n\
                          warning: not in the patch: pipe: a pipe, a socket or a device\n";
    assert_eq!(patch.stderr, expected_words);
    let copy = place.path("copy");
    let mut copying = Command::new("cp");
    copying
        .arg("-a")
        .args([place.path("workspace"), copy.clone()]);
    assert!(copying.status().unwrap().success());
    fs::write(place.path("patch"), &patch.stdout).unwrap();
    let mut apply = Command::new("git");
    apply
        .args(["apply", "--whitespace=nowarn", "-"])
        .current_dir(&copy);
    apply.stdin(fs::File::open(place.path("patch")).unwrap());
    assert!(apply.stderr(Stdio::inherit()).status().unwrap().success());
    assert_eq!(tree(&copy), expected(&AFTER));

    let copied = place.output(&["cp", "--changed", "box", "../files"]);
    assert_eq!(copied.code, Some(1), "{}", copied.stderr);
    assert!(
        copied.stderr.contains("cannot copy `pipe`"),
        "{}",
        copied.stderr
    );
    assert!(
        copied.stderr.contains("`--delete` removes it"),
        "{}",
        copied.stderr
    );
    let mut files = expected(&AFTER);
    files.remove("same");
    files.insert("binary".into(), "a\0b".into());
    assert_eq!(tree(&place.path("files")), files);
    assert_eq!(tree(&place.path("workspace")), before);

    let copied = place.output(&["cp", "--changed", "--delete", "box", "."]);
    assert_eq!(copied.code, Some(1), "{}", copied.stderr);
    let mut files = expected(&AFTER);
    files.insert("binary".into(), "a\0b".into());
    assert_eq!(tree(&place.path("workspace")), files);
    assert!(!place.path("workspace/old").exists());
}

#[test]
fn a_workspace_that_is_not_kept_apart_has_no_changes_to_tell() {
    let place = Place::new();
    let mode = ["--workspace", ".", "--workspace-mode", "read-write"];
    let _sandbox = Lasting::create(&place, &[&["--name", "box"], &mode[..]].concat());
    let told = place.output(&["diff", "box"]);
    assert_ne!(told.code, Some(0));
    assert!(
        told.stderr.contains("in the directory itself"),
        "{}",
        told.stderr
    );
}

#[test]
fn a_paused_sandbox_tells_its_changes_and_one_without_a_directory_all_its_files() {
    let place = Place::new();
    let _sandbox = Lasting::create(&place, &["--name", "box"]);
    told(&place, &["exec", "box", "--", "echo x > file"]);
    told(&place, &["pause", "box"]);
    assert_eq!(told(&place, &["diff", "box"]), "A file\n");
}

#[test]
fn changes_of_a_session_come_over_the_api_and_to_models() {
    let place = Place::new();
    let serving = Serving::start(&place, &[]).unwrap();
    let line = serving.line().unwrap();
    let made = json!({ "id": "shared" });
    line.ask("POST", "/v1/sessions", Some(&made)).unwrap();
    let url = format!("unix:{}", place.path("socket").display());
    told(
        &place,
        &[
            "--server",
            &url,
            "exec",
            "shared",
            "--",
            "printf '\\ta\\n' > file",
        ],
    );
    let list = line
        .ask("GET", "/v1/sessions/shared/changes", None)
        .unwrap();
    let change = json!({ "path": "file", "change": "added", "kind": "file", "size": 3,
        "executable": false });
    assert_eq!(list, json!({ "changes": [change], "unread": [] }));
    assert_eq!(
        told(&place, &["--server", &url, "diff", "shared"]),
        "A file\n"
    );
    let patch = "diff --git a/file b/file\nnew file mode 100644\n--- /dev/null\n+++ b/file\n\
                 @@ -0,0 +1 @@\n+\ta\n";
    assert_eq!(
        told(&place, &["--server", &url, "diff", "-p", "shared"]),
        patch
    );
    let mut client = Client::start(place.zareba(&["--server", &url, "mcp", "--session", "shared"]));
    assert_eq!(client.told("workspace_diff", json!({})), patch);
    assert_eq!(client.leave(), Some(0));
    // The note of a deed that only looks comes at the latest with the end.
    told(&place, &["--server", &url, "stop", "shared"]);
    let events = line.ask("GET", "/v1/sessions/shared/events", None).unwrap();
    let events = events["events"].as_array().unwrap();
    let deed = json!({ "kind": "changes", "path": ".", "patch": true });
    assert!(
        events.iter().any(|event| event["payload"]["deed"] == deed),
        "{events:#?}"
    );
    assert_eq!(serving.stop().unwrap(), Some(0));
}
