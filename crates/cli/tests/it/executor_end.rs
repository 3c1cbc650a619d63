//! Ending an executor: promptly, and with everything that it started.

use std::{
    os::fd::OwnedFd,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::json;

use crate::support::{Executor, PATIENCE, ends_within};

/// An idle executor has nothing to wait for.
const PROMPTLY: Duration = Duration::from_secs(1);

/// Starts a process that leaves its shell's session, and returns it.
fn start_daemon(executor: &Executor) -> OwnedFd {
    executor.run("(setsid sh -c 'echo $$ > daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 &)");
    let number = executor.run("until [ -s daemon ]; do sleep 0.01; done; cat daemon");
    let Ok(number) = number.parse() else {
        panic!("not a process number: {number}");
    };
    let pid = Pid::from_raw(number).unwrap();
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

fn check_nothing_is_left(executor: &Executor) {
    assert_eq!(
        executor.place().temporary_files(),
        Vec::<std::path::PathBuf>::new()
    );
    assert!(!executor.socket().exists());
}

#[test]
fn a_signal_ends_it_promptly_with_everything_that_it_started() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut executor = Executor::start();
        let daemon = start_daemon(&executor);
        let asked = Instant::now();
        executor.signal(signal);
        let (status, said) = executor.wait();
        assert_eq!(status.code(), Some(0), "{signal:?}: {said}");
        assert!(
            asked.elapsed() < PROMPTLY,
            "{signal:?}: {:?}",
            asked.elapsed()
        );
        assert!(
            ends_within(&daemon, Duration::ZERO),
            "{signal:?}: the daemon lives on"
        );
        check_nothing_is_left(&executor);
    }
}

#[test]
fn it_ends_with_its_lifeline() {
    let mut executor = Executor::start();
    let daemon = start_daemon(&executor);
    let asked = Instant::now();
    drop(executor.take_lifeline());
    let (status, said) = executor.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(asked.elapsed() < PROMPTLY, "{:?}", asked.elapsed());
    assert!(ends_within(&daemon, Duration::ZERO), "the daemon lives on");
    check_nothing_is_left(&executor);
}

/// Asks for a command that takes `seconds`, and returns where its answer will come.
fn in_background(executor: &Executor, seconds: &str) -> mpsc::Receiver<Option<serde_json::Value>> {
    let (sender, receiver) = mpsc::channel();
    let stream = std::os::unix::net::UnixStream::connect(executor.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let command = format!("touch started; sleep {seconds}; echo done");
    let action = json!({ "action": "run", "args": { "command": command, "blocking": true }, "timeout": 600 });
    let body = json!({ "action": action }).to_string();
    thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let mut stream = stream;
        let head = format!(
            "POST /execute_action HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let observation = answer
            .split_once("\r\n\r\n")
            .and_then(|(_, body)| serde_json::from_str(body).ok());
        let _ = sender.send(observation);
    });
    executor.act(&json!({ "action": "run", "shell": "watch", "args": {
        "command": "until [ -e started ]; do sleep 0.01; done" } }));
    receiver
}

#[test]
fn an_action_that_is_nearly_done_is_still_answered() {
    let mut executor = Executor::start();
    let answer = in_background(&executor, "0.5");
    executor.signal(Signal::TERM);
    let observation = answer.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(observation["content"], "done");
    assert_eq!(executor.wait().0.code(), Some(0));
    check_nothing_is_left(&executor);
}

#[test]
fn the_second_signal_means_now() {
    let mut executor = Executor::start();
    let answer = in_background(&executor, "1000");
    executor.signal(Signal::INT);
    // Two signals that are both still waiting to be taken count as one, so it may take more.
    let process = pidfd_open(
        Pid::from_raw(executor.pid().cast_signed()).unwrap(),
        PidfdFlags::empty(),
    )
    .unwrap();
    let asked = Instant::now();
    while !ends_within(&process, Duration::from_millis(20)) {
        executor.signal(Signal::INT);
    }
    assert!(asked.elapsed() < PROMPTLY, "{:?}", asked.elapsed());
    assert_eq!(executor.wait().0.code(), Some(0));
    assert_eq!(answer.recv_timeout(PATIENCE).unwrap(), None);
    check_nothing_is_left(&executor);
}

#[test]
fn orphans_are_reaped_while_it_runs() {
    orphans_are_reaped_by(&Executor::start());
}

/// Whoever starts it may hold signals back, which programs inherit.
#[test]
fn orphans_are_reaped_when_its_signals_were_held_back() {
    orphans_are_reaped_by(&Executor::start_below(&["env", "--block-signal"]));
}

/// In a container, the leader of the session that it is in may be outside, where it cannot see it.
#[test]
fn orphans_are_reaped_when_its_session_is_nobodys() {
    let namespace = [
        "unshare",
        "--map-current-user",
        "--pid",
        "--fork",
        "--mount-proc",
    ];
    orphans_are_reaped_by(&Executor::start_below(&namespace));
}

fn orphans_are_reaped_by(executor: &Executor) {
    executor.run("(sh -c 'echo $$ > orphan; exec sleep 0.05' &)");
    let number = executor.run("until [ -s orphan ]; do sleep 0.01; done; cat orphan");
    assert!(number.parse::<u32>().is_ok(), "{number:?}");
    let wait = format!("until [ ! -e /proc/{number} ]; do sleep 0.05; done; echo gone");
    // Longer than an executor waits for output by itself: a machine may stand still for a while.
    let answer = executor.act(&json!({ "action": "run", "args": {
        "command": wait, "blocking": true }, "timeout": PATIENCE.as_secs() - 5 }));
    let status = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/status"));
    assert_eq!(
        answer["content"],
        "gone",
        "{:?} below {:?}",
        status(&number),
        status(&executor.pid().to_string())
    );
    assert_eq!(executor.run("echo still here"), "still here");
}
