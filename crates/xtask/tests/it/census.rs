//! `xtask census` sees what a command leaves behind, whatever it did to hide it.

use std::io;
use std::path::Path;
use std::process::{Command, Output};

fn census(private: &Path, script: &str) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["census", "--empty"])
        .arg(private)
        .args(["--", "sh", "-c", script])
        .output()
}

/// Only what concerns the command: other programs may mount things while this test runs.
fn differences(output: &Output, private: &Path) -> Vec<String> {
    let private = private.display().to_string();
    String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| line.contains("process ") || line.contains(&private))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_tidy_command_leaves_nothing_and_its_code_is_passed_on() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file").display().to_string();
    let script = format!("touch {file}; rm {file}; (sleep 0.05 &); exit 7");
    let output = census(directory.path(), &script).unwrap();
    assert_eq!(output.status.code(), Some(7));
    let expected: Vec<String> = Vec::new();
    assert_eq!(differences(&output, directory.path()), expected);
}

#[test]
fn a_process_in_its_own_session_with_an_empty_environment_is_found_and_ended() {
    let directory = tempfile::tempdir().unwrap();
    let pid_file = directory.path().join("pid");
    let script = format!(
        "setsid env -i sh -c 'echo $$ > {0}; exec sleep 1000' </dev/null >/dev/null 2>&1 &
         until [ -s {0} ]; do :; done",
        pid_file.display()
    );
    let output = census(directory.path(), &script).unwrap();

    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let pid = pid.trim();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        differences(&output, directory.path()),
        [
            format!("census: left behind: process {pid} sleep 1000"),
            format!("census: left behind: file {}", pid_file.display()),
        ]
    );
    assert!(!Path::new("/proc").join(pid).exists());
}

#[test]
fn a_command_that_cannot_start_is_an_error_of_its_own() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["census", "--", "no-such-program"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.starts_with("xtask: cannot start `no-such-program`"),
        "{message}"
    );
}
