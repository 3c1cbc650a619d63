//! Shells that end, and clients that go away.

use std::{path::Path, time::Duration};

use zareba_protocol::{
    Action, ActionEvent, CommandMetadata, Observation, ObservationKind, RunCommand,
};

use crate::place::{LONG, Place, blocking, exit_code, metadata, observed};

const REPLACED_BEFORE: &str = "[The shell had ended and was replaced by a new one: variables, functions and aliases are gone.]\n";

fn lost(
    place: &Place,
    command: &str,
    content: &str,
    exit_code: i64,
    signal: Option<&str>,
) -> Observation {
    let by = signal.map_or(String::new(), |signal| format!(", killed by {signal}"));
    let suffix = format!(
        "\n[The command completed with exit code {exit_code}.]\n[The shell ended with this command{by} and was \
         replaced by a new one: variables, functions and aliases are gone, the working directory is kept.]"
    );
    let metadata = CommandMetadata {
        exit_code,
        suffix,
        signal: signal.map(str::to_owned),
        shell_restarted: true,
        ..place.metadata(Path::new("/usr"))
    };
    observed(command, content, metadata)
}

#[tokio::test]
async fn a_command_that_ends_or_replaces_its_shell_says_so_and_the_next_one_runs() {
    let place = Place::new().await;
    place.run("cd /usr").await;
    let cases = [
        ("exit 3", "exit", 3, None),
        ("exec true", "", 0, None),
        (
            "exec bash -c 'echo last words; exit 9'",
            "last words",
            9,
            None,
        ),
        ("kill -9 $$", "", 137, Some("SIGKILL")),
        ("kill -HUP $$", "", 129, Some("SIGHUP")),
        ("set -e; false", "", 1, None),
        (
            "exec nonexistent_program",
            "bash: exec: nonexistent_program: not found",
            127,
            None,
        ),
    ];
    for (command, content, code, signal) in cases {
        place.run("variable=set").await;
        let observation = place.run(command).await;
        if command.contains("nonexistent") {
            // An interactive shell survives this one.
            assert_eq!(
                observation,
                place.ended_in(Path::new("/usr"), command, content, code)
            );
            assert_eq!(place.text("echo $variable").await, "set");
            continue;
        }
        assert_eq!(observation, lost(&place, command, content, code, signal));
        let after = "echo \"<$variable>\" $PWD";
        assert_eq!(
            place.run(after).await,
            place.ended_in(Path::new("/usr"), after, "<> /usr", 0)
        );
    }
}

#[tokio::test]
async fn a_shell_that_becomes_another_program_ends_with_it() {
    let place = Place::new().await;
    place
        .start("exec sh -c 'echo ready; read line; exit 7'", "ready")
        .await;
    let observation = place.input("go").await;
    assert_eq!(
        (
            exit_code(&observation),
            metadata(&observation).shell_restarted
        ),
        (7, true)
    );
    assert_eq!(place.text("echo ok").await, "ok");
}

#[tokio::test]
async fn a_shell_killed_while_idle_is_replaced_and_the_next_command_tells() {
    let place = Place::new().await;
    let pid: i32 = place.text("echo $$").await.parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let mut expected = place.ended("echo ok", "ok", 0);
    if let ObservationKind::Run(output) = &mut expected.kind {
        output.metadata.prefix = REPLACED_BEFORE.to_owned();
    }
    assert_eq!(place.run("echo ok").await, expected);
    assert_eq!(place.run("echo ok").await, place.ended("echo ok", "ok", 0));
}

#[tokio::test]
async fn a_command_that_a_dying_shell_could_not_take_is_run_by_the_new_one() {
    let place = Place::new().await;
    for _ in 0..20 {
        assert_eq!(exit_code(&place.run("exec </dev/null").await), 0);
        let observation = place.run("echo ran >> log; (exit 5)").await;
        assert_eq!(
            (
                exit_code(&observation),
                metadata(&observation).prefix.as_str()
            ),
            (5, REPLACED_BEFORE)
        );
    }
    assert_eq!(place.text("wc -l < log").await, "20");
}

#[tokio::test]
async fn a_background_job_outlives_its_shell_but_not_the_executor() {
    let place = Place::new().await;
    let command = "nohup sleep 1000 >/dev/null 2>&1 & echo $! > pid; exit 1";
    assert_eq!(exit_code(&place.run(command).await), 1);
    let pid: u32 = place.text("cat pid").await.parse().unwrap();
    let number = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    let job = rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty()).unwrap();
    assert!(is_running(pid));
    place.executor.shut_down().await;
    // It is not our child, so its end is waited for and not reaped.
    let mut ended = [rustix::event::PollFd::new(
        &job,
        rustix::event::PollFlags::IN,
    )];
    let patience = rustix::event::Timespec {
        tv_sec: 30,
        tv_nsec: 0,
    };
    assert_eq!(rustix::event::poll(&mut ended, Some(&patience)).unwrap(), 1);
}

fn is_running(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("State:") && !status.contains("State:\tZ")
}

#[tokio::test]
async fn a_deleted_directory_does_not_keep_a_shell_from_being_replaced() {
    let place = Place::new().await;
    place.run("mkdir gone && cd gone && rmdir ../gone").await;
    assert_eq!(exit_code(&place.run("exit 2").await), 2);
    assert_eq!(place.text("pwd").await, "/");
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_its_command_running_and_pollable() {
    let place = Place::new().await;
    place
        .start("echo here; read line; echo \"got $line\"; (exit 8)", "here")
        .await;
    assert_eq!(exit_code(&place.run("echo no").await), -1);
    assert_eq!(place.input("it").await, place.ended("it", "got it", 8));
}

#[tokio::test]
async fn a_client_that_goes_away_at_any_moment_wedges_nothing() {
    let place = Place::new().await;
    for round in 0..200u64 {
        let running = place.executor.execute(blocking("echo gone; true"));
        let _ = tokio::time::timeout(Duration::from_micros(round * 10), running).await;
        let command = format!("echo mark{round}; (exit {})", round % 100);
        let mut observation = place.run(&command).await;
        while exit_code(&observation) == -1 {
            observation = place.run(&command).await;
        }
        assert_eq!(exit_code(&observation), i64::try_from(round % 100).unwrap());
        assert_eq!(
            observation.content.lines().last(),
            Some(format!("mark{round}").as_str())
        );
    }
}

#[tokio::test]
async fn shutting_down_ends_running_commands_and_refuses_new_ones() {
    let place = Place::new().await;
    let executor = std::sync::Arc::clone(&place.executor);
    let mut stream = executor
        .follow(&zareba_protocol::ShellName::default())
        .await
        .unwrap();
    let waiting =
        tokio::spawn(async move { executor.execute(blocking("echo $$; exec sleep 1000")).await });
    let chunk = tokio::time::timeout(LONG, stream.recv())
        .await
        .unwrap()
        .unwrap();
    let pid: u32 = String::from_utf8_lossy(&chunk).trim().parse().unwrap();
    tokio::time::timeout(LONG, place.executor.shut_down())
        .await
        .expect("it hangs");
    assert!(!is_running(pid));
    assert_eq!(
        waiting.await.unwrap().observation,
        Observation::error("ERROR: The shell is gone.")
    );
    let refused = place
        .event(ActionEvent::from(Action::Run(RunCommand::new("true"))))
        .await;
    assert_eq!(
        refused,
        Observation::error("ERROR: the executor is shutting down")
    );
}

#[tokio::test]
async fn nothing_is_left_behind() {
    let state = tempfile::tempdir().unwrap();
    let place = Place::with(|options| options.state_dir = Some(state.path().join("state"))).await;
    let pid: u32 = place.text("echo $$").await.parse().unwrap();
    place.run("seq 1 100000").await;
    place.executor.shut_down().await;
    assert!(!is_running(pid));
    let left = std::fs::read_dir(state.path().join("state/outputs"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
}
