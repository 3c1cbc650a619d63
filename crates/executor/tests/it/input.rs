//! Input for running programs, and keys.

use zareba_protocol::{Action, ActionEvent, ObservationKind, RunCommand, ShellName};

use crate::place::{BELOW, Place, SLEEPER, exit_code, metadata, running, silent};

#[tokio::test]
async fn a_line_reaches_the_program_and_its_echo_is_not_shown() {
    let place = Place::new().await;
    place
        .start(
            "while read line; do echo \"<$line>\"; [ \"$line\" = end ] && break; done; echo out",
            "",
        )
        .await;
    for (typed, shown) in [
        ("one", "<one>"),
        ("two  words", "<two  words>"),
        ("ünï 世界", "<ünï 世界>"),
        ("a\\b 'c'", "<ab 'c'>"),
    ] {
        let observation = place.event(Action::Run(RunCommand::input(typed))).await;
        assert_eq!(observation, running(typed, shown, BELOW, silent(1)));
    }
    assert_eq!(
        place.input("end").await,
        place.ended("end", "<end>\nout", 0)
    );
}

#[tokio::test]
async fn several_lines_of_input_are_typed_one_after_the_other() {
    let place = Place::new().await;
    place
        .start("read a; read b; read c; echo \"$a-$b-$c\"", "")
        .await;
    let observation = place.input("1\n2\n3").await;
    assert_eq!(exit_code(&observation), 0);
    assert!(observation.content.ends_with("1-2-3"), "{observation:?}");
}

#[tokio::test]
async fn a_line_longer_than_the_terminal_takes_is_refused_and_the_rest_still_works() {
    let place = Place::new().await;
    place.start("read line; echo ${#line}", "").await;
    let refused = place.input(&"x".repeat(5000)).await;
    assert!(
        refused
            .content
            .starts_with("ERROR: The input was NOT sent: it has a line of more than 4094 bytes"),
        "{refused:?}"
    );
    assert!(
        place
            .input(&"x".repeat(4094))
            .await
            .content
            .ends_with("4094")
    );
}

#[tokio::test]
async fn a_program_that_reads_keys_gets_a_line_of_any_length() {
    let place = Place::new().await;
    place
        .start(
            "stty raw -echo; echo ready; echo $(head -c 100001 | wc -c)",
            "ready",
        )
        .await;
    assert_eq!(
        place.input(&"x".repeat(100_000)).await.content,
        "ready\n     100001"
    );
}

#[tokio::test]
async fn ctrl_c_interrupts() {
    let place = Place::new().await;
    place.start(SLEEPER, "here").await;
    assert_eq!(
        place.input("C-c").await,
        place.pressed("C-c", "here\n^C", 130)
    );
    place.start("echo here; while :; do :; done", "here").await;
    assert_eq!(
        place.input("C-c").await,
        place.pressed("C-c", "here\n^C", 130)
    );
    place
        .start(
            "bash -c 'trap \"echo caught; exit 3\" INT; echo here; while :; do sleep 0.01; done'",
            "here",
        )
        .await;
    assert_eq!(
        place.input("C-c").await,
        place.pressed("C-c", "here\n^Ccaught", 3)
    );
}

#[tokio::test]
async fn input_and_keys_reach_a_command_that_somebody_waits_for() {
    let place = Place::new().await;
    let waits = ActionEvent::from(Action::Run(RunCommand {
        blocking: true,
        // A key that comes while bash starts a program may be lost to both, so the program tells.
        ..RunCommand::new(
            "echo > begun; read line; sh -c 'echo \"$0\" > answer; mv answer answered; exec sleep 1000' \"$line\"",
        )
    }));
    let is_there = |file: &str| {
        let command = format!("until [ -e {file} ]; do sleep 0.01; done; cat {file}");
        let event = ActionEvent::from(Action::Run(RunCommand::new(command)));
        event.with_shell(ShellName::new("other").unwrap())
    };
    let passed = "[The input was sent to the running command.";
    let interrupt = async {
        place.executor.execute(is_there("begun")).await;
        let typed = place.input("a line").await;
        assert!(typed.content.starts_with(passed), "{typed:?}");
        let answered = place.executor.execute(is_there("answered")).await;
        assert_eq!(answered.observation.content, "a line");
        // One that waits for its turn does not keep a key from its way.
        let next = Action::Run(RunCommand::new("echo next"));
        let next = place.executor.execute(ActionEvent::from(next));
        let press = async {
            let pressed = place.input("C-c").await;
            assert!(pressed.content.starts_with(passed), "{pressed:?}");
        };
        let (next, ()) = tokio::join!(next, press);
        next.observation
    };
    let waited = place.executor.execute(waits.with_timeout(60.0));
    let (waited, next) = tokio::join!(waited, interrupt);
    let waited = waited.observation;
    assert_eq!(exit_code(&waited), 130, "{waited:?}");
    assert_eq!(next.content, "next", "{next:?}");
}

#[tokio::test]
async fn ctrl_c_works_without_saying_that_it_is_input() {
    let place = Place::new().await;
    place.start(SLEEPER, "here").await;
    assert_eq!(
        place.event(Action::Run(RunCommand::new("C-c"))).await,
        place.pressed("C-c", "here\n^C", 130)
    );
    assert_eq!(
        place.event(Action::Run(RunCommand::new("C-c"))).await,
        place.pressed("C-c", "^C", 130)
    );
    assert_eq!(place.text("echo ok").await, "ok");
}

#[tokio::test]
async fn ctrl_d_ends_the_input_and_at_an_idle_shell_nothing() {
    let place = Place::new().await;
    place.start("cat; echo after", "").await;
    assert_eq!(place.input("C-d").await, place.pressed("C-d", "after", 0));
    let idle = place.event(Action::Run(RunCommand::new("C-d"))).await;
    assert_eq!(
        idle,
        place.pressed("C-d", "Use \"exit\" to leave the shell.", 0)
    );
    assert_eq!(place.text("echo ok").await, "ok");
}

#[tokio::test]
async fn ctrl_z_stops_and_the_job_can_be_taken_up_again() {
    let place = Place::new().await;
    place.start(SLEEPER, "here").await;
    let stopped = format!("here\n^Z\n[1]+  Stopped                 {SLEEPER}");
    assert_eq!(
        place.input("C-z").await,
        place.pressed("C-z", &stopped, 148)
    );
    assert_eq!(
        place.text("jobs").await,
        format!("[1]+  Stopped                 {SLEEPER}")
    );
    // It says itself when it goes on, so that the next key reaches it.
    let talker = "bash -c 'trap \"echo on\" CONT; echo here; while :; do read -t 0.02 x; done'";
    place.start(talker, "here").await;
    assert_eq!(exit_code(&place.input("C-z").await), 148);
    place.start("fg %2", "on\r\n").await;
    assert_eq!(exit_code(&place.input("C-c").await), 130);
}

#[tokio::test]
async fn ctrl_backslash_quits_and_other_keys_reach_the_program() {
    let place = Place::new().await;
    place.start(SLEEPER, "here").await;
    let observation = place.input("C-\\").await;
    assert_eq!(exit_code(&observation), 131, "{observation:?}");
    place
        .start(
            "stty raw -echo; echo ready; head -c 3 | od -An -tx1",
            "ready",
        )
        .await;
    for key in ["C-a", "C-["] {
        place
            .event(crate::place::blocking(key).with_timeout(0.0))
            .await;
    }
    assert_eq!(place.input("C-q").await.content, "01 1b 11");
}

#[tokio::test]
async fn named_keys_are_pressed_and_followed_by_enter() {
    let place = Place::new().await;
    place
        .start("stty raw -echo; echo ready; head -c 8 | od -An -c", "ready")
        .await;
    let up = Action::Run(RunCommand {
        blocking: true,
        ..RunCommand::input("Up")
    });
    place.event(ActionEvent::from(up).with_timeout(0.0)).await;
    assert_eq!(
        place.input("Left").await,
        place.ended("Left", "033   [   A  \\r 033   [   D  \\r", 0)
    );
}

#[tokio::test]
async fn a_key_that_comes_too_late_is_not_sent_and_the_end_is_told() {
    let place = Place::new().await;
    let mut stream = place.stream().await;
    // The mark comes a good while after the command's end, from a background job.
    place
        .start("(sleep 0.8; echo mark) & sleep 0.2; (exit 4)", "")
        .await;
    stream.until("mark").await;
    let observation = place.input("C-c").await;
    let mut expected = place.ended("C-c", &observation.content, 4);
    if let ObservationKind::Run(output) = &mut expected.kind {
        output.metadata.prefix =
            "[The previous command had already completed, so your input was NOT sent.]\n"
                .to_owned();
        output.metadata.pid = metadata(&observation).pid;
    }
    assert_eq!(observation, expected);
    assert!(observation.content.ends_with("mark"));
    assert!(place.text("echo ok").await.starts_with("ok"));
}

#[tokio::test]
async fn a_shell_that_stopped_itself_is_woken_by_a_key() {
    let place = Place::new().await;
    assert_eq!(
        exit_code(&place.run_for(0.3, "kill -STOP $$; echo woken").await),
        -1
    );
    assert_eq!(exit_code(&place.run_for(0.1, "").await), -1);
    let woken = place.input("C-c").await;
    assert_ne!(exit_code(&woken), -1, "{woken:?}");
    assert_eq!(place.text("echo ok").await, "ok");
}
