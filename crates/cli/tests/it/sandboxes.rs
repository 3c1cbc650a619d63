//! Sandboxes that live on: `create`, `ps`, `exec`, `inspect`, `pause`, `resume`, `stop`, `rm`,
//! `gc`.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    path::{Path, PathBuf},
    process::Stdio,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{
        CWD, FileType,
        inotify::{self, CreateFlags, WatchFlags},
    },
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde_json::Value;

use crate::support::{Lasting, PATIENCE, Place, ends_within};

/// What is left of sandboxes.
fn directories(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.path("state/native")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != ".lock").collect()
}

#[test]
fn a_sandbox_lives_on_until_it_is_stopped() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &["--name", "build"]);
    assert_eq!(sandbox.id(), "build");
    let told = place.output(&["exec", "build", "--", "echo kept > file"]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    let told = place.output(&["exec", "build", "--", "cat", "file"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "kept\n"));

    let told = place.output(&["ps"]);
    let lines: Vec<Vec<&str>> = told
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let headings = [
        "ID",
        "RUNTIME",
        "STATE",
        "IMAGE",
        "NETWORK",
        "WORKSPACE",
        "CREATED",
        "COMMAND",
    ];
    assert_eq!(lines[0], headings);
    let row = ["build", "native", "running", "-", "none", "-"];
    assert_eq!(lines[1][..6], row);
    assert_eq!(lines.len(), 2, "{}", told.stdout);
    assert_eq!(place.output(&["ps", "-q"]).stdout, "build\n");

    let told = place.output(&["stop", "build"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "build\n"));
    assert_eq!(place.output(&["ps", "-q"]).stdout, "");
    assert_eq!(directories(&place), [""; 0]);
    assert_eq!(place.temporary_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_sandbox_without_walls_lives_on_as_well() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &["--runtime", "local", "-o", "json"]);
    let id = sandbox.id();
    let parts: Vec<&str> = id.split('-').collect();
    assert_eq!(parts.len(), 3, "{id}");
    let told = place.output(&["ps", "-o", "json"]);
    let row: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(
        (row["id"].as_str(), row["state"].as_str()),
        (Some(id), Some("running"))
    );
    let told = place.output(&["exec", id, "--", "exit 4"]);
    assert_eq!(told.code, Some(4), "{}", told.stderr);
    let told = place.output(&["pause", id]);
    assert_eq!(told.code, Some(125));
    assert!(
        told.stderr
            .contains("the runtime `local` cannot pause a sandbox"),
        "{}",
        told.stderr
    );
}

#[test]
fn a_detached_program_goes_on_and_its_output_is_kept() {
    let place = Place::new();
    let told = place.output(&[
        "run",
        "-d",
        "--name",
        "web",
        "echo out; echo err >&2; exec sleep 1000",
    ]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "web\n"),
        "{}",
        told.stderr
    );
    let web = Lasting::adopt(&place, "web");
    // The follower ends with the sandbox, so all that was written is in what it has shown.
    let mut follower = place
        .zareba(&["logs", "-f", "web"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut first: Vec<String> = lines.by_ref().take(2).map(Result::unwrap).collect();
    first.sort();
    assert_eq!(first, ["err", "out"]);
    assert_eq!(
        place.output(&["exec", "-d", "web", "echo more"]).code,
        Some(0)
    );
    assert_eq!(lines.next().unwrap().unwrap(), "more");
    let told = place.output(&["logs", "--tail", "1", "web"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "more\n"));
    let told = place.output(&["exec", "-d", "web", "no-such-program", "x"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(127), ""));
    assert!(
        told.stderr
            .starts_with("error: cannot find `no-such-program`"),
        "{}",
        told.stderr
    );
    drop(web);
    assert!(lines.next().is_none());
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}

#[test]
fn a_detached_program_may_take_its_sandbox_with_it() {
    let place = Place::new();
    let fifo = place.path("workspace/fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, 0o666.into(), 0).unwrap();
    let told = place.output(&[
        "run",
        "-d",
        "--rm",
        "--name",
        "short",
        "--workspace",
        ".",
        "--workspace-mode",
        "read-write",
        "read line < fifo",
    ]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert_eq!(place.output(&["ps", "-q"]).stdout, "short\n");
    let removals = Removals::of(&place.path("state/native"));
    // It opens when the program reads, which ends with the line.
    fs::write(&fifo, "line\n").unwrap();
    removals.wait_for("short");
    assert_eq!(place.output(&["ps", "-q"]).stdout, "");
    let told = place.output(&["run", "-d", "--name", "none", "no-such-program", "x"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(127), ""));
    let names = place.output(&["ps", "-q"]).stdout;
    assert!(!names.contains("none"), "{names}");
}

/// What goes from a directory, from now on.
struct Removals {
    directory: PathBuf,
    notices: OwnedFd,
}

impl Removals {
    fn of(directory: &Path) -> Self {
        let notices = inotify::init(CreateFlags::CLOEXEC).unwrap();
        let gone = WatchFlags::DELETE | WatchFlags::MOVED_FROM;
        inotify::add_watch(&notices, directory, gone).unwrap();
        Self {
            directory: directory.to_owned(),
            notices,
        }
    }

    fn wait_for(&self, name: &str) {
        let mut room = [0; 4096];
        while self.directory.join(name).exists() {
            let patience = Timespec::try_from(PATIENCE).unwrap();
            let mut source = [PollFd::new(&self.notices, PollFlags::IN)];
            let ready = poll(&mut source, Some(&patience)).unwrap();
            assert_eq!(ready, 1, "`{name}` does not go");
            rustix::io::read(&self.notices, &mut room).unwrap();
        }
    }
}

#[test]
fn a_sandbox_is_found_by_the_beginning_of_its_name() {
    let place = Place::new();
    let one = Lasting::create(&place, &["--name", "alpha-one"]);
    let two = Lasting::create(&place, &["--name", "alpha-two"]);
    let told = place.output(&["exec", "alpha-o", "echo", "found"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "found\n"));
    let told = place.output(&["stop", "alpha"]);
    assert_eq!(told.code, Some(120));
    insta::assert_snapshot!(told.stderr, @"
    error: several sandboxes begin with `alpha`: `alpha-one`, `alpha-two`
      hint: type more of the name
    ");
    let told = place.output(&["stop", "alpha-t"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "alpha-two\n"));
    drop((one, two));
}

#[test]
fn what_a_sandbox_was_made_with_is_told() {
    let place = Place::new();
    let arguments = [
        "--name",
        "made",
        "--workspace",
        ".",
        "--allow",
        "a.example",
        "-e",
        "KEY=secret",
    ];
    let sandbox = Lasting::create(&place, &arguments);
    let told = place.output(&["inspect", sandbox.id()]);
    let workspace = place.path("workspace");
    for line in [
        format!(
            "  workspace         {} (copy-on-write)",
            workspace.display()
        ),
        "  variables         KEY".to_owned(),
        "  network           filtered".to_owned(),
        "    allowed         a.example".to_owned(),
    ] {
        assert!(
            told.stdout.lines().any(|told| told == line),
            "{line}: {}",
            told.stdout
        );
    }
    assert!(!told.stdout.contains("secret"), "{}", told.stdout);
}

#[test]
fn what_cannot_be_created_is_refused() {
    let place = Place::new();
    let told = place.output(&["create", "--name", "a/b"]);
    assert_eq!(told.code, Some(120));
    insta::assert_snapshot!(told.stderr, @"
    error: `a/b` is no name for a sandbox
      hint: use 1 to 64 letters, digits, `-` and `_`
    ");
    let told = place.output(&["create", "--runtime", "cli"]);
    assert_eq!(told.code, Some(120));
    insta::assert_snapshot!(told.stderr, @"
    error: a sandbox of the runtime `cli` cannot outlive its command
      hint: use `--runtime native`, or `local`, which does not isolate
    ");
    let _sandbox = Lasting::create(&place, &["--name", "one"]);
    let told = place.output(&["create", "--name", "one"]);
    assert_eq!(told.code, Some(120));
    assert!(
        told.stderr.contains("there is a sandbox `one` already"),
        "{}",
        told.stderr
    );
    assert_eq!(place.output(&["ps", "-q"]).stdout, "one\n");
}

#[test]
fn a_program_has_our_streams_and_we_have_its_exit_code() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &[]);
    let id = sandbox.id();
    let told = place.output(&["exec", id, "--", "echo out; echo err >&2; exit 7"]);
    let streams = (told.stdout.as_str(), told.stderr.as_str());
    assert_eq!((told.code, streams), (Some(7), ("out\n", "err\n")));
    let told = place.output(&[
        "exec",
        "-w",
        "/tmp",
        "-e",
        "NAME=a b",
        id,
        "--",
        "sh",
        "-c",
        "pwd; echo \"$NAME\"",
    ]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "/tmp\na b\n"));
    let told = place.output_with_input(&["exec", "-i", id, "--", "tr", "a-z", "A-Z"], "hello\n");
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "HELLO\n"));
    // Without being asked to, nothing of ours is passed on.
    let told = place.output_with_input(&["exec", id, "--", "cat", "-"], "hello\n");
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), ""));
    let told = place.output(&[
        "exec",
        "-t",
        id,
        "--",
        "test -t 0 && test -t 1 && stty size",
    ]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "24 80\r\n"));
    let told = place.output(&["exec", id, "--", "no-such-program", "x"]);
    assert_eq!(told.code, Some(127), "{}", told.stderr);
    let told = place.output(&["exec", "-o", "json", id, "--", "true"]);
    assert_eq!(told.code, Some(120));
}

#[test]
fn a_signal_ends_the_program_and_not_the_sandbox() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &[]);
    let mut child = place
        .zareba(&["exec", sandbox.id(), "--", "echo begun; exec sleep 1000"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut begun = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut begun).unwrap();
    rustix::process::kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let told = place.output(&["exec", sandbox.id(), "--", "echo on"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "on\n"));
}

#[test]
fn the_walls_are_told_layer_by_layer() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &["--name", "walled", "--pids", "99"]);
    let told = place.output(&["inspect", sandbox.id()]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    for line in [
        "  state             running",
        "    capabilities    none, and no program can give it any",
        "    seccomp         1 filter",
        "    network         a loopback of its own, and nothing else",
    ] {
        assert!(
            told.stdout.lines().any(|told| told == line),
            "{line}: {}",
            told.stdout
        );
    }
    let told = place.output(&["inspect", "-o", "json", sandbox.id()]);
    let document: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(document["id"], "walled");
    assert_eq!(document["enforcement"]["capabilities"], 0);
    assert_eq!(document["enforcement"]["no_new_privileges"], true);
    assert!(document["pid"].as_u64().is_some(), "{document}");
}

#[test]
fn what_does_not_hold_is_told_by_inspect_also_without_walls() {
    let place = Place::new();
    let sandbox = Lasting::create(
        &place,
        &[
            "--runtime",
            "local",
            "--memory",
            "64M",
            "--network",
            "none",
            "--best-effort",
        ],
    );
    let told = place.output(&["inspect", sandbox.id()]);
    let row = "  not held          network, memory";
    assert!(
        told.stdout.lines().any(|line| line == row),
        "{}",
        told.stdout
    );
    let told = place.output(&["inspect", "-o", "json", sandbox.id()]);
    let document: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(
        document["not_held"],
        serde_json::json!(["network", "memory"])
    );
}

#[test]
fn what_nothing_here_would_keep_or_read_is_refused_by_its_name() {
    let place = Place::new();
    for (words, named, remedy) in [
        (
            &["create", "--life-max", "1h"][..],
            "`--life-max`",
            "`--server`",
        ),
        (
            &["run", "--label", "a=b", "--", "true"],
            "`--label`",
            "`--server`",
        ),
        (
            &["mcp", "--when-idle", "close"],
            "`--when-idle`",
            "`--server`",
        ),
        (
            &[
                "run",
                "--runtime",
                "local",
                "--set",
                "native.system=read-only",
                "--",
                "true",
            ],
            "`--set native.system` has no effect on the runtime `local`",
            "`--runtime native`",
        ),
        (
            &["run", "--set", "docker.gpus=all", "--", "true"],
            "`--set docker.gpus` has no effect on the runtime `native`",
            "`--runtime docker`",
        ),
        (
            &["run", "--set", "server.drain=3", "--", "true"],
            "`--set server.drain` has no effect on the sandbox of a command",
            "`zareba serve` reads it",
        ),
    ] {
        let told = place.output(words);
        assert_eq!(told.code, Some(120), "{words:?}: {}", told.stderr);
        assert!(told.stderr.contains(named), "{}", told.stderr);
        assert!(told.stderr.contains(remedy), "{}", told.stderr);
    }
}

#[test]
fn a_paused_sandbox_stands_still_until_it_is_resumed() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &[]);
    let id = sandbox.id();
    let told = place.output(&["pause", id, "-o", "json"]);
    assert_eq!(
        told.stdout,
        format!("{{\"id\":\"{id}\",\"state\":\"paused\"}}\n")
    );
    let ps = place.output(&["ps", "-o", "json"]).stdout;
    assert_eq!(
        serde_json::from_str::<Value>(&ps).unwrap()["state"],
        "paused"
    );
    let told = place.output(&["exec", id, "--", "true"]);
    assert_eq!(told.code, Some(125));
    assert!(
        told.stderr.contains("is paused; resume it first"),
        "{}",
        told.stderr
    );
    assert_eq!(place.output(&["resume", id]).code, Some(0));
    assert_eq!(place.output(&["exec", id, "--", "true"]).code, Some(0));
    // One that stands still can be ended.
    assert_eq!(place.output(&["pause", id]).code, Some(0));
    let told = place.output(&["stop", id]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_name_that_is_nobodys_is_told_with_the_nearest_and_keeps_nobody_from_ending() {
    let place = Place::new();
    let one = Lasting::create(&place, &["--name", "first"]);
    let two = Lasting::create(&place, &["--name", "second"]);
    let told = place.output(&["stop", one.id(), "secund", two.id()]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(123), "first\nsecond\n")
    );
    insta::assert_snapshot!(told.stderr, @"
    error: there is no sandbox `secund`
      hint: did you mean `second`?
    ");
    let told = place.output(&["exec", "first", "--", "true"]);
    assert_eq!(told.code, Some(123));
    insta::assert_snapshot!(told.stderr, @"
    error: there is no sandbox `first`
      hint: `zareba ps` lists those that there are
    ");
}

#[test]
fn one_that_runs_is_removed_only_by_force() {
    let place = Place::new();
    let sandbox = Lasting::create(&place, &["--name", "busy"]);
    let told = place.output(&["rm", sandbox.id()]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(125), ""));
    insta::assert_snapshot!(told.stderr, @"
    error: the sandbox `busy` still runs
      hint: `zareba stop busy` ends it, and so does `--force`
    ");
    let told = place.output(&["rm", "--force", "-o", "json", sandbox.id()]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "{\"id\":\"busy\",\"state\":\"gone\"}\n")
    );
}

/// Kills the process that keeps a sandbox, and waits for its end.
fn kill_keeper(place: &Place, id: &str) {
    let record = place.path("state/native").join(id).join("server.json");
    let record: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
    let pid = i32::try_from(record["pid"].as_i64().unwrap()).unwrap();
    let keeper = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
    pidfd_send_signal(&keeper, Signal::KILL).unwrap();
    assert!(ends_within(&keeper, PATIENCE), "it does not end");
}

#[test]
fn what_a_killed_sandbox_leaves_is_told_and_removed() {
    let place = Place::new();
    let one = Lasting::create(&place, &["--name", "one"]);
    kill_keeper(&place, one.id());
    let ps = place.output(&["ps", "-o", "json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&ps).unwrap()["state"], "lost");
    let told = place.output(&["exec", "one", "--", "true"]);
    assert_eq!(told.code, Some(123));
    insta::assert_snapshot!(told.stderr, @"
    error: the sandbox `one` has ended
      hint: `zareba rm one` removes what is left of it
    ");
    let told = place.output(&["rm", "one"]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "one\n"),
        "{}",
        told.stderr
    );
    assert_eq!(directories(&place), [""; 0]);
}

#[test]
fn a_sweep_names_what_it_removes_and_leaves_what_runs() {
    let place = Place::new();
    let killed = Lasting::create(&place, &["--name", "killed"]);
    let alive = Lasting::create(&place, &["--name", "alive"]);
    kill_keeper(&place, killed.id());
    let told = place.output(&["gc"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "killed\n"));
    assert_eq!(told.stderr, "zareba: removed what 1 sandbox had left\n");
    assert_eq!(directories(&place), [alive.id()]);
    let told = place.output(&["gc", "-o", "json"]);
    assert_eq!(told.stdout, "{\"sandboxes\":[],\"removed\":0}\n");
}

#[test]
fn flags_are_settings_of_the_sandbox() {
    let place = Place::new();
    fs::write(place.path("workspace/note"), "ours\n").unwrap();
    let run = |flags: &[&str], command: &str| {
        let words = [&["run", "--workspace", "."], flags, &["--", command]].concat();
        place.output(&words)
    };
    let told = run(&["--workspace-mode", "read-only"], "touch note 2>&1");
    assert_eq!(told.code, Some(1), "{}", told.stdout);
    let told = run(&["--workspace-mode", "read-write"], "echo theirs > note");
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert_eq!(
        fs::read_to_string(place.path("workspace/note")).unwrap(),
        "theirs\n"
    );
    let told = run(&["--memory", "lots"], "true");
    assert_eq!(told.code, Some(121));
    assert!(
        told.stderr
            .contains("flag `--memory`: `native.memory` must be"),
        "{}",
        told.stderr
    );
    let told = run(&["--allow", "http://example.com/"], "true");
    assert_eq!(told.code, Some(121));
    assert!(
        told.stderr.contains("cannot use `native.allow`"),
        "{}",
        told.stderr
    );
    let told = run(&["--network", "host", "--allow", "example.com"], "true");
    assert_eq!(told.code, Some(120));
    let told = run(&["--image", "nothing-like-it"], "true");
    assert_ne!(told.code, Some(0));
    assert!(told.stderr.contains("nothing-like-it"), "{}", told.stderr);
}

#[test]
fn a_state_directory_that_others_may_write_to_is_refused() {
    let place = Place::new();
    fs::create_dir(place.path("state")).unwrap();
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(place.path("state"), open).unwrap();
    for arguments in [&["run", "--", "true"][..], &["create"], &["image", "ls"]] {
        let told = place.output(arguments);
        assert_eq!(
            (told.code, told.stdout.as_str()),
            (Some(122), ""),
            "{arguments:?}"
        );
        assert!(told.stderr.contains("another user"), "{}", told.stderr);
    }
}
