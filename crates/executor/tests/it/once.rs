//! An action with a name to run once under, in a real shell.

use zareba_protocol::ActionEvent;

use crate::place::{Place, blocking, exit_code, metadata};

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
