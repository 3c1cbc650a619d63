//! Several shells at once, and several clients of one.

use std::sync::Arc;

use tokio::sync::Barrier;
use zareba_protocol::{Action, ActionEvent, ReadFile, ShellName, WriteFile};

use crate::place::{Place, blocking, exit_code};

fn named(name: &str) -> ShellName {
    ShellName::new(name).unwrap()
}

#[tokio::test]
async fn named_shells_are_apart_and_the_default_one_is_another() {
    let place = Place::new().await;
    for name in ["a", "b"] {
        let set = blocking(&format!("mkdir {name}; cd {name}; me={name}")).with_shell(named(name));
        assert_eq!(exit_code(&place.event(set).await), 0);
    }
    for name in ["a", "b"] {
        let ask = place
            .event(blocking("echo $me $(basename $PWD)").with_shell(named(name)))
            .await;
        assert_eq!(ask.content, format!("{name} {name}"));
    }
    assert_eq!(
        place.text("echo \"<$me>\"; basename $PWD").await,
        "<>\nworkspace"
    );
}

#[tokio::test]
async fn shells_run_at_once_and_one_that_is_busy_delays_nothing_else() {
    let place = Place::new().await;
    place
        .start_in(&named("busy"), "echo busy; sleep 1000", "busy")
        .await;
    assert_eq!(place.text("echo free").await, "free");
    let write = place
        .event(Action::Write(WriteFile::new("note.txt", "text")))
        .await;
    let read = place.event(Action::Read(ReadFile::new("note.txt"))).await;
    assert_eq!(read.content, "text\n", "{write:?}");
    // Each waits for the other, so they can only end when both run.
    place.run("mkfifo there back").await;
    let one = place.event(blocking("echo ping > there; cat back").with_shell(named("one")));
    let two = place.event(blocking("cat there; echo pong > back").with_shell(named("two")));
    let (one, two) = tokio::join!(one, two);
    assert_eq!(
        (one.content.as_str(), two.content.as_str()),
        ("pong", "ping")
    );
}

#[tokio::test]
async fn commands_for_one_shell_run_in_the_order_in_which_they_were_asked_for() {
    let place = Place::new().await;
    let mut asked = Vec::new();
    let barrier = Arc::new(Barrier::new(1));
    for number in 0..30 {
        let executor = Arc::clone(&place.executor);
        let event = blocking(&format!("echo {number} >> order; echo {number}"));
        // The first poll of each puts it into the queue before the next is made.
        let mut future = Box::pin(async move { executor.execute(event).await.observation });
        tokio::select! {
            biased;
            done = &mut future => asked.push(tokio::spawn(async move { done })),
            _ = barrier.wait() => asked.push(tokio::spawn(future)),
        }
    }
    for (number, answer) in asked.into_iter().enumerate() {
        assert_eq!(answer.await.unwrap().content, number.to_string());
    }
    let expected: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    assert_eq!(place.text("cat order").await, expected.join("\n"));
}

#[tokio::test]
async fn there_may_be_many_shells_but_not_any_number() {
    let place = Place::new().await;
    // The default one is there already.
    for number in 1..64 {
        let event = blocking("echo here").with_shell(named(&format!("shell-{number}")));
        assert_eq!(place.event(event).await.content, "here");
    }
    let refused = place
        .event(blocking("true").with_shell(named("one-too-many")))
        .await;
    let text =
        "ERROR: cannot open the shell `one-too-many`: 64 shells are open already; use one of them";
    assert_eq!(refused, zareba_protocol::Observation::error(text));
    assert_eq!(place.text("echo ok").await, "ok");
}

#[tokio::test]
async fn an_answer_names_the_action_that_it_answers() {
    let place = Place::new().await;
    let metadata = serde_json::json!({"tool_call_id": "call_1"});
    let event = ActionEvent {
        id: Some(17),
        tool_call_metadata: Some(metadata.clone()),
        ..blocking("true")
    };
    let answer = place.executor.execute(event).await;
    assert_eq!(
        (answer.cause, answer.tool_call_metadata),
        (Some(17), Some(metadata))
    );
}
