//! `zareba run`: output, exit code and summary, on both runtimes.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Place, Told, ZAREBA};

const RUNTIMES: [&str; 2] = ["cli", "local"];

/// Everything but the last line, and the last line with its time taken out.
fn summary(told: &Told) -> (Vec<&str>, String) {
    let mut lines: Vec<&str> = told.stderr.lines().collect();
    let last = lines.pop().unwrap_or_default();
    let (before, after) = last.split_once(" after ").unwrap_or((last, ""));
    let runtime = after.split_once(" in ").map_or("", |(_, runtime)| runtime);
    (lines, format!("{before} after TIME in {runtime}"))
}

#[test]
fn output_goes_to_stdout_the_summary_to_stderr_and_the_exit_code_is_the_commands() {
    let place = Place::new();
    for runtime in RUNTIMES {
        let told = place.output(&["run", "--runtime", runtime, "--", "echo hi; exit 7"]);
        assert_eq!(told.code, Some(7), "{}", told.stderr);
        assert_eq!(told.stdout.lines().next(), Some("hi"));
        let (before, last) = summary(&told);
        assert_eq!(
            last,
            format!("zareba: exit code 7 after TIME in the runtime `{runtime}`")
        );
        // That there are no walls is said once.
        assert_eq!(before.len(), 1, "{before:?}");
        assert!(before[0].starts_with("warning: the runtimes `cli` and `local` do not isolate"));
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
        (Some(0), "a  b|$HOME|it's||\n")
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
        summary(&told).1,
        "zareba: timed out after TIME in the runtime `native`"
    );
    let told = place.output(&["run", "--set", "shell.timeout=0.2", "--", "sleep 1000"]);
    assert_eq!(told.code, Some(124));
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
    let expected = "agent\n/workspace\nours\ntheirs\nls: cannot access '/root': No such file or directory\n[]\n";
    assert_eq!(told.stdout, expected, "{}", told.stderr);
    let note = std::fs::read_to_string(place.path("workspace/note")).unwrap();
    assert_eq!(note, "ours\n");
    assert!(!told.stderr.contains("isolate"), "{}", told.stderr);
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
    let hints = "  hint: `zareba doctor` says what this machine can do\n  \
                 hint: `--runtime cli` runs commands here, without any isolation\n";
    assert!(told.stderr.ends_with(hints), "{}", told.stderr);
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
