//! An action with a name to run once under, in a real shell.

use std::time::Duration;

use zareba_protocol::{Action, ActionEvent, Observation, RunCommand};
use zareba_wire::{
    ActionService as _,
    output::{OutputPiece, OutputRequest, OutputState, StopMeans, StopRequest},
};

use crate::place::{LONG, Place, blocking, exit_code, metadata};

fn once(command: &str) -> ActionEvent {
    ActionEvent {
        once: Some("session/7".to_owned()),
        ..blocking(command)
    }
}

#[tokio::test]
async fn asking_again_without_time_ends_the_wait_and_not_the_command() {
    let place = Place::new().await;
    place.run("mkfifo begun go").await;
    let command = "echo out; echo > begun; cat go; echo end";
    let mut first = Box::pin(place.executor.execute(once(command)));
    let other = zareba_protocol::ShellName::new("other").unwrap();
    let begun = place.event(blocking("cat begun").with_shell(other.clone()));
    tokio::select! {
        _ = &mut first => panic!("it ended before it was let go"),
        _ = begun => {}
    }
    let enough = place.executor.execute(once(command).with_timeout(0.0));
    let (first, enough) = tokio::join!(first, enough);
    assert_eq!(first, enough);
    assert_eq!(exit_code(&first.observation), -1);
    assert_eq!(first.observation.content, "out");
    let suffix = &metadata(&first.observation).suffix;
    assert!(suffix.contains("timed out after"), "{suffix}");
    let go = place.event(blocking("echo went > go").with_shell(other));
    let (rest, _) = tokio::join!(place.run(""), go);
    assert_eq!(rest.content, "went\nend");
    assert_eq!(place.text("echo free").await, "free");
}

#[tokio::test]
async fn it_runs_once_though_its_caller_goes_away_and_others_ask_again() {
    let place = Place::new().await;
    place.run("mkfifo begun go").await;
    let command = "echo ran >> runs; echo > begun; cat go; echo done";
    let mut first = Box::pin(place.executor.execute(once(command)));
    let other = zareba_protocol::ShellName::new("other").unwrap();
    let begun = place.event(blocking("cat begun").with_shell(other.clone()));
    tokio::select! {
        _ = &mut first => panic!("it ended before it was let go"),
        _ = begun => {}
    }
    drop(first);
    let go = place.event(blocking("echo went > go").with_shell(other));
    let (second, third, _) = tokio::join!(
        place.executor.execute(once(command)),
        place.executor.execute(once(command)),
        go,
    );
    assert_eq!(second.observation.content, "went\ndone");
    assert_eq!(second, third);
    assert_eq!(place.executor.execute(once("echo other")).await, second);
    assert_eq!(place.text("cat runs").await, "ran");
}

#[tokio::test]
async fn its_output_can_be_read_while_it_runs_and_ends_with_its_turn() {
    let place = Place::new().await;
    place.run("mkfifo go; exec 3<>go").await;
    let command = "printf 'one \\n\\n'; read -u 3; echo two";
    let asked = |from, wait| OutputRequest {
        action: "session/7".to_owned(),
        from,
        wait: Duration::from_secs(wait),
    };
    let piece = |bytes: &'static str, next, state| OutputPiece {
        bytes: bytes.into(),
        next,
        state,
    };
    let read = async |asked| place.executor.read_output(asked).await.unwrap();
    let first = place.executor.execute(once(command));
    let look = async {
        let mut begun = Vec::new();
        // The terminal may hand it out in parts.
        while begun.len() < 8 {
            let part = read(asked(begun.len() as u64, 30)).await;
            assert_eq!(part.state, OutputState::Running);
            begun.extend_from_slice(&part.bytes);
        }
        assert_eq!(begun, b"one \r\n\r\n");
        let other = zareba_protocol::ShellName::new("other").unwrap();
        place.event(blocking("echo > go").with_shell(other)).await;
    };
    let (first, ()) = tokio::join!(first, look);
    assert_eq!(first.observation.content, "one\n\ntwo");
    let rest = piece("two\r\n", 13, OutputState::Ended);
    assert_eq!(read(asked(8, 0)).await, rest);
    // What comes later belongs to others.
    place.run("echo later").await;
    assert_eq!(read(asked(8, 0)).await, rest);
    assert_eq!(read(asked(13, 30)).await, piece("", 13, OutputState::Ended));
}

#[tokio::test]
async fn the_output_of_one_that_only_waits_begins_where_the_last_turn_ended() {
    let place = Place::new().await;
    place.run("mkfifo go; exec 3<>go").await;
    let begun = place.event(blocking("echo one; read -u 3; echo two").with_timeout(0.5));
    assert_eq!(exit_code(&begun.await), -1);
    let other = zareba_protocol::ShellName::new("other").unwrap();
    place.event(blocking("echo > go").with_shell(other)).await;
    let rest = place.executor.execute(once("")).await;
    assert_eq!(rest.observation.content, "two");
    let asked = OutputRequest {
        action: "session/7".to_owned(),
        from: 0,
        wait: Duration::ZERO,
    };
    let piece = place.executor.read_output(asked).await.unwrap();
    let expected = OutputPiece {
        bytes: "two\r\n".into(),
        next: 5,
        state: OutputState::Ended,
    };
    assert_eq!(piece, expected);
}

fn stop(means: StopMeans) -> StopRequest {
    StopRequest {
        action: "session/7".to_owned(),
        means,
    }
}

#[tokio::test]
async fn it_is_interrupted_or_killed_in_whichever_shell_it_runs() {
    let place = Place::new().await;
    for (is_static, means, status) in [
        (false, StopMeans::Interrupt, 130),
        (false, StopMeans::Kill, 137),
        (true, StopMeans::Interrupt, 130),
        (true, StopMeans::Kill, 137),
    ] {
        let name = format!("session/{is_static}/{}", means.as_str());
        let ignore = match means {
            StopMeans::Interrupt => "",
            StopMeans::Kill => "trap '' INT; ",
        };
        // By the program that is to be ended: a key that is pressed while bash starts one is lost.
        let program = format!("sh -c \"{ignore}echo begun; exec sleep 600\"");
        let mut command = RunCommand::new(program);
        command.blocking = true;
        command.is_static = is_static;
        let action = ActionEvent {
            once: Some(name.clone()),
            ..Action::Run(command).into()
        };
        let ending = async {
            let asked = OutputRequest {
                action: name.clone(),
                from: 0,
                wait: Duration::from_secs(30),
            };
            place.executor.read_output(asked).await;
            let action = name.clone();
            let stopped = place.executor.stop_action(StopRequest { action, means });
            assert_eq!(stopped.await, Some(true));
        };
        let (ended, ()) = tokio::join!(place.executor.execute(action), ending);
        assert_eq!(exit_code(&ended.observation), status, "{name}: {ended:?}");
        let action = name.clone();
        let again = place.executor.stop_action(StopRequest { action, means });
        assert_eq!(again.await, Some(false), "it has ended");
    }
    assert_eq!(place.text("echo free").await, "free");
}

#[tokio::test]
async fn one_that_is_about_to_start_a_program_is_interrupted() {
    let place = Place::new().await;
    for round in 0..200 {
        let name = format!("session/{round}");
        // The shell writes the first word itself, so that the key meets it as often as the program.
        let action = ActionEvent {
            once: Some(name.clone()),
            ..blocking("echo begun; sleep 600")
        };
        let ending = async {
            let asked = OutputRequest {
                action: name.clone(),
                from: 0,
                wait: LONG,
            };
            place.executor.read_output(asked).await;
            let action = name.clone();
            let means = StopMeans::Interrupt;
            let stopped = place.executor.stop_action(StopRequest { action, means });
            assert_eq!(stopped.await, Some(true));
        };
        let both = async { tokio::join!(place.executor.execute(action), ending) };
        let ended = tokio::time::timeout(LONG, both).await;
        let (ended, ()) = ended.unwrap_or_else(|_| panic!("round {round} goes on"));
        assert_eq!(exit_code(&ended.observation), 130, "{round}: {ended:?}");
    }
}

#[tokio::test]
async fn one_that_waits_for_its_turn_is_not_run_once_it_was_stopped() {
    let place = Place::new().await;
    place.run("mkfifo go; exec 3<>go").await;
    let mut first = Box::pin(place.event(blocking("read -u 3")));
    let mut second = Box::pin(place.executor.execute(once("touch ran")));
    let stopped = async {
        // Known as soon as it was asked for, though its turn has not come.
        while place.executor.stop_action(stop(StopMeans::Interrupt)).await != Some(true) {
            tokio::task::yield_now().await;
        }
        let other = zareba_protocol::ShellName::new("other").unwrap();
        place.event(blocking("echo > go").with_shell(other)).await;
    };
    let (_, second, ()) = tokio::join!(&mut first, &mut second, stopped);
    let expected = "ERROR: The command was NOT run: the action was stopped before its turn came.";
    assert_eq!(
        second.observation,
        Observation::named_error("stopped", expected)
    );
    assert_eq!(place.text("ls ran 2>&1 | wc -l; ls").await, "1\ngo");
}
