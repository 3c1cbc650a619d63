//! `zareba run`: output, exit code and summary, on both runtimes.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Place, Told, ZAREBA};

const RUNTIMES: [&str; 2] = ["cli", "local"];

#[test]
fn both_streams_are_the_commands_and_so_is_the_exit_code() {
    let place = Place::new();
    for runtime in RUNTIMES {
        let command = "echo out; echo err >&2; exit 7";
        let told = place.output(&["run", "--runtime", runtime, "--", command]);
        assert_eq!((told.code, told.stdout.as_str()), (Some(7), "out\n"));
        // That there are no walls is said once, and a summary to people alone.
        let lines: Vec<&str> = told.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("warning: the runtimes `cli` and `local` do not isolate"));
        assert_eq!(lines[1], "err");
        assert_eq!(
            place.temporary_files(),
            Vec::<std::path::PathBuf>::new(),
            "{runtime}"
        );
    }
}

#[test]
fn several_words_are_passed_on_as_they_are_and_one_is_shell_text() {
    let place = Place::new();
    let told = place.output(&["run", "--", "printf", "%s|", "a  b", "$HOME", "it's", ""]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "a  b|$HOME|it's||")
    );
    let told = place.output(&[
        "run",
        "-e",
        "NAME=world",
        "--",
        "echo hello $NAME | tr a-z A-Z",
    ]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "HELLO WORLD\n")
    );
}

#[test]
fn a_command_that_takes_too_long_ends_with_124() {
    let place = Place::new();
    let told = place.output(&["run", "--timeout", "0.2", "--", "echo begun; sleep 1000"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(124), "begun\n"));
    assert_eq!(
        told.stderr,
        "error: the command took longer than 200 ms, and was killed with its sandbox\n"
    );
    let told = place.output(&["run", "--set", "shell.timeout=0.2", "--", "sleep 1000"]);
    assert_eq!(told.code, Some(124));
    // An action that took too long goes on, but this one ended with its sandbox.
    let told = place.output(&["run", "-o", "json", "--timeout", "0.2", "sleep 1000"]);
    assert_eq!(told.code, Some(124));
    let observation: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(
        observation["extras"]["metadata"]["suffix"],
        "\n[The command timed out after 0.2 seconds and was killed with its sandbox.]"
    );
}

#[test]
fn output_comes_as_it_is_written_and_signals_go_to_the_command() {
    let place = Place::new();
    let command = "trap 'echo caught; exit 3' TERM; echo begun; sleep 1000 & wait";
    let mut child = place
        .zareba(&["run", command])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    line.clear();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(
        (line.as_str(), child.wait().unwrap().code()),
        ("caught\n", Some(3))
    );
}

#[test]
fn a_command_that_ignores_a_signal_is_ended_by_the_second() {
    let place = Place::new();
    let command = "trap 'echo ignored' INT; echo begun; while :; do sleep 1000 & wait; done";
    let mut child = place
        .zareba(&["run", command])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for expected in ["begun\n", "ignored\n"] {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, expected);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(place.temporary_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn bytes_pass_unchanged_and_standard_input_only_when_it_is_asked_for() {
    let place = Place::new();
    let told = place.output(&["run", "printf", "a\\tb\\rc\\033[1m\\n\\n"]);
    assert_eq!(told.stdout, "a\tb\rc\u{1b}[1m\n\n");
    let told = place.output_with_input(&["run", "-i", "tr", "a-z", "A-Z"], "hello\n");
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "HELLO\n"));
    let told = place.output_with_input(&["run", "cat"], "hello\n");
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), ""));
    let told = place.output(&["run", "-it", "test -t 0 && test -t 1 && stty size"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "24 80\r\n"));
}

#[test]
fn flags_are_those_that_docker_users_type() {
    let place = Place::new();
    // Flags after the first word are the command's.
    let told = place.output(&[
        "run",
        "--rm",
        "-q",
        "-w",
        "/tmp",
        "-e",
        "A=1",
        "sh",
        "-c",
        "pwd; echo $A",
    ]);
    assert_eq!(
        (told.code, told.stdout.as_str(), told.stderr.as_str()),
        (Some(0), "/tmp\n1\n", "")
    );
    let told = place.output(&["run", "--name", "mine", "cat", "/proc/sys/kernel/hostname"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let told = place.output(&["run", "no-such-program", "x"]);
    assert_eq!(told.code, Some(127), "{}", told.stderr);
    let told = place.output(&["run", "-v", "/src:/dst", "true"]);
    assert_eq!(told.code, Some(120));
    insta::assert_snapshot!(told.stderr, @"
    error: `-v /src:/dst`: a sandbox has one directory of this machine
      hint: `--workspace /src` makes it the workspace; with `--workspace-mode read-write` changes go to it
    ");
}

/// Only where control groups can be made: an ordinary user may have none.
#[test]
#[ignore = "needs root"]
fn a_limit_that_was_met_is_said() {
    let place = Place::new();
    let hog = "import sys; b = bytearray(200 << 20)";
    let told = place.output(&["run", "--memory", "64M", "python3", "-c", hog]);
    assert_eq!(
        (told.code, told.stderr.as_str()),
        (
            Some(137),
            "warning: the sandbox reached its memory limit of 64 MiB and a process was killed\n"
        )
    );
}

#[test]
fn a_workspace_that_is_none_is_refused_and_not_made() {
    let place = Place::new();
    std::fs::write(place.path("workspace/file"), "").unwrap();
    for (workspace, message) in [
        ("file", "error: the workspace `file` is not a directory\n"),
        ("misspelt", "error: cannot use the workspace `misspelt`\n"),
    ] {
        for words in [
            &["run", "--workspace", workspace, "true"][..],
            &["create", "--workspace", workspace],
        ] {
            let told = place.output(words);
            assert_eq!(told.code, Some(120), "{}", told.stderr);
            assert!(told.stderr.starts_with(message), "{}", told.stderr);
            assert!(!told.stderr.contains("isolation"), "{}", told.stderr);
        }
    }
    assert!(!place.path("workspace/misspelt").exists());
}

#[test]
fn long_output_is_printed_whole() {
    let place = Place::new();
    let expected: String = (1..=20000).map(|number| format!("{number}\n")).collect();
    for runtime in ["native", "cli", "local"] {
        let told = place.output(&["run", "--runtime", runtime, "--", "seq 1 20000"]);
        let whole = told.stdout.replace('\r', "") == expected;
        assert!(
            whole,
            "{runtime}: {} bytes, {}",
            told.stdout.len(),
            told.stderr
        );
        assert_eq!(place.temporary_files(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn the_workspace_is_the_directory_that_was_asked_for_or_a_fresh_one() {
    let place = Place::new();
    let workspace = place.path("workspace/project");
    std::fs::create_dir(&workspace).unwrap();
    let workspace = workspace.to_str().unwrap();
    let told = place.output(&[
        "run",
        "--runtime",
        "cli",
        "--workspace",
        workspace,
        "--",
        "pwd; echo kept > file",
    ]);
    assert_eq!(told.stdout.trim_end(), workspace);
    assert_eq!(
        std::fs::read_to_string(place.path("workspace/project/file")).unwrap(),
        "kept\n"
    );
    let told = place.output(&["run", "--runtime", "cli", "--", "ls -A; pwd"]);
    let fresh = std::path::Path::new(told.stdout.trim_end());
    assert!(
        fresh.starts_with(place.path("state")) && !fresh.exists(),
        "{}",
        told.stdout
    );
}

#[test]
fn a_command_in_the_sandbox_sees_neither_our_files_nor_our_variables() {
    let place = Place::new();
    std::fs::write(place.path("workspace/note"), "ours\n").unwrap();
    let command =
        "id -un; pwd; cat note; echo theirs > note; cat note; ls /root; echo \"[$SECRET]\"";
    let told = Told::from(
        place
            .zareba(&["run", "--workspace", ".", "--", command])
            .env("SECRET", "x")
            .output()
            .unwrap(),
    );
    let expected = "agent\n/workspace\nours\ntheirs\n[]\n";
    assert_eq!(told.stdout, expected, "{}", told.stderr);
    let expected = "ls: cannot access '/root': No such file or directory\n";
    assert_eq!(told.stderr, expected);
    let note = std::fs::read_to_string(place.path("workspace/note")).unwrap();
    assert_eq!(note, "ours\n");
    assert_eq!(place.temporary_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_strict_mask_outside_closes_nothing_inside() {
    let place = Place::new();
    let script = format!("umask 077; {ZAREBA} run -- stat -c '%a %n' /usr /workspace");
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", &script])
        .current_dir(place.path("workspace"))
        .env("TMPDIR", place.path("tmp"))
        .env("ZAREBA_STATE_DIRECTORY", place.path("state"));
    let told = Told::from(shell.output().unwrap());
    let expected = "755 /usr\n755 /workspace\n";
    assert_eq!(told.stdout, expected, "{}", told.stderr);
}

/// As on Ubuntu, where every user has a group of the same name.
#[test]
fn a_mask_that_lets_a_group_write_is_no_obstacle_to_doctor() {
    let place = Place::new();
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", &format!("umask 002; {ZAREBA} doctor")])
        .current_dir(place.path("workspace"))
        .env("TMPDIR", place.path("tmp"))
        .env("ZAREBA_STATE_DIRECTORY", place.path("state"));
    let told = Told::from(shell.output().unwrap());
    assert!(told.stdout.contains("Docker Engine"), "{}", told.stdout);
    assert!(!told.stdout.contains("open to others"), "{}", told.stdout);
}

/// A tree that is copied from a shared mount is its peer, and most systems share everything.
/// Nobody but root can make a mount table of shared mounts; and without root the sandbox copies
/// nothing but what is private already.
#[test]
#[ignore = "needs root"]
fn what_is_mounted_inside_does_not_appear_outside_where_mounts_are_shared() {
    let place = Place::new();
    let script = format!(
        "cat /proc/self/mountinfo > before; {ZAREBA} run -- 'ls /etc/passwd'; \
         cat /proc/self/mountinfo > after; grep -c shared: after > shared; cmp before after"
    );
    let mut unshare = std::process::Command::new("unshare");
    unshare
        .args(["-m", "--propagation", "shared", "sh", "-c", &script])
        .current_dir(place.path("workspace"))
        .env("TMPDIR", place.path("tmp"))
        .env("ZAREBA_STATE_DIRECTORY", place.path("state"));
    let told = Told::from(unshare.output().unwrap());
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "/etc/passwd\n"),
        "{}",
        told.stderr
    );
    let shared = std::fs::read_to_string(place.path("workspace/shared")).unwrap();
    assert_ne!(shared, "0\n", "the test itself shares nothing");
}

#[test]
fn json_is_the_observation() {
    let place = Place::new();
    let told = place.output(&["run", "-o", "json", "--", "echo", "hi"]);
    let observation: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(observation["content"], "hi");
    assert_eq!(observation["extras"]["metadata"]["exit_code"], 0);
    assert_eq!(observation["extras"]["command"], "echo hi");
}

#[test]
fn a_command_that_reads_ends_at_once_also_where_its_observation_is_printed() {
    let place = Place::new();
    let limited = ["run", "-o", "json", "--timeout", "20"];
    for (command, content) in [
        (&["cat"][..], ""),
        (&["sh", "-c", "read line || echo none"], "none"),
        (&["cat <<EOF # a remark\nit's here\nEOF"], "it's here"),
        (&["cat; echo a 'b  c' # remark"], "a b  c"),
    ] {
        let told = place.output(&[&limited, command].concat());
        let observation: Value = serde_json::from_str(&told.stdout).unwrap();
        assert_eq!(observation["content"], content, "{command:?}");
    }
}

#[test]
fn what_does_not_exist_here_is_refused_with_our_own_numbers() {
    let place = Place::new();
    let told = place.output(&["run", "--runtime", "modal", "--", "true"]);
    assert_eq!(told.code, Some(122));
    insta::assert_snapshot!(told.stderr, @"
    error: the runtime `modal` is not part of this version
      hint: use `--runtime native` or `docker`, or `cli` or `local`, which do not isolate
    ");
    let told = place.output(&["run", "--set", "shell.program=/none", "--", "true"]);
    assert_eq!(told.code, Some(122), "{}", told.stderr);
    assert!(told.stderr.contains("\n  caused by: "), "{}", told.stderr);
    // Isolation is not what failed, so going without it is not proposed.
    let hint = "  hint: `zareba doctor` says what this machine can do\n";
    assert!(told.stderr.ends_with(hint), "{}", told.stderr);
    assert_eq!(
        place
            .output(&["run", "--timeout", "never", "--", "true"])
            .code,
        Some(120)
    );
    assert_eq!(
        place.output(&["run", "-e", "novalue", "--", "true"]).code,
        Some(120)
    );
    assert_eq!(place.output(&["run"]).code, Some(120));
}

#[test]
fn a_signal_ends_the_sandbox_too() {
    let place = Place::new();
    for runtime in RUNTIMES {
        let fifo = place.path("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        let command = format!("setsid sleep 1000 & echo > {}; sleep 1000", fifo.display());
        let child = place
            .zareba(&["run", "--runtime", runtime, "--", &command])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Its end comes when the command has opened it, so the command runs.
        assert_eq!(std::fs::read_to_string(&fifo).unwrap(), "\n");
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let status = child.wait_with_output().unwrap().status;
        assert_eq!(status.code(), Some(143), "{runtime}");
        assert_eq!(
            place.temporary_files(),
            Vec::<std::path::PathBuf>::new(),
            "{runtime}"
        );
        std::fs::remove_file(&fifo).unwrap();
    }
}
