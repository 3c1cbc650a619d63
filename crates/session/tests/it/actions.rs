//! The path of an action: recorded, run, answered once.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::timeout;
use zareba_protocol::{
    Action, CallTool, ConfirmationState, ErrorClass, ReadFile, RunCommand, SendMessage, Think,
};
use zareba_session::{Session, SessionError, event_json};

use crate::fixture::{
    Place, answers, assert_all_answered, keyed, observe, on, output, owner, request, run, run_in,
    text,
};

#[tokio::test]
async fn every_action_has_one_observation_whatever_comes_of_it() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let first = session.run(request(run("echo hello"))).await.unwrap();
    let shown = event_json(&first);
    assert_eq!(shown["content"], "hello");
    assert_eq!(shown["id"], first.sequence);
    assert_eq!(shown["cause"], first.cause.unwrap());
    assert!(shown["timestamp"].as_str().unwrap().len() == "2026-01-01T00:00:00.000000".len());

    let failed = observe(&session, run("exit_with() { return 3; }; exit_with")).await;
    assert_eq!(failed["extras"]["metadata"]["exit_code"], 3);
    let missing = observe(&session, Action::Read(ReadFile::new("/no/such/file"))).await;
    assert_eq!(missing["observation"], "error");
    let slow = observe(&session, run("sleep 1000").with_timeout(0.1)).await;
    assert_eq!(slow["extras"]["metadata"]["exit_code"], -1);
    let lost = observe(&session, run("C-c")).await;
    assert_eq!(lost["extras"]["metadata"]["exit_code"], 130);
    assert_all_answered(&session, 5).await;
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn what_no_sandbox_acts_on_is_answered_all_the_same() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let think = Action::Think(Think {
        thought: "hm".to_owned(),
    });
    assert_eq!(observe(&session, think).await["observation"], "think");
    let message: SendMessage = serde_json::from_value(json!({"content": "hello"})).unwrap();
    let message = observe(&session, Action::Message(message)).await;
    assert_eq!(message["observation"], "null");
    let call: CallTool = serde_json::from_value(json!({"name": "tool"})).unwrap();
    let call = observe(&session, Action::CallToolMcp(call)).await;
    assert_eq!(call["observation"], "error");
    for (state, expected) in [
        (ConfirmationState::AwaitingConfirmation, "null"),
        (ConfirmationState::Rejected, "user_rejected"),
    ] {
        let action = Action::Run(RunCommand {
            confirmation_state: state,
            ..RunCommand::new("echo ran >> ran")
        });
        assert_eq!(observe(&session, action).await["observation"], expected);
    }
    assert_eq!(output(&session, "ls").await, "");
    assert_all_answered(&session, 6).await;
    session.close().await.unwrap();
}

#[tokio::test]
async fn the_same_key_is_one_action_el_7() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let append = || keyed("k-1", run("echo once >> file; cat file"));
    // The second comes while the first runs, the third behind it.
    let (first, second) = tokio::join!(session.run(append()), session.run(append()));
    let (first, second) = (first.unwrap(), second.unwrap());
    let third = session.run(append()).await.unwrap();
    assert_eq!(
        (first.sequence, first.sequence),
        (second.sequence, third.sequence)
    );
    assert_eq!(text(&event_json(&third)), "once");
    let action = first.cause.unwrap();
    assert_eq!(session.submit(append()).await.unwrap().sequence, action);

    let other = session.run(keyed("k-1", run("echo twice >> file"))).await;
    assert!(
        matches!(other, Err(SessionError::KeyReused { sequence }) if sequence == action),
        "{other:?}"
    );
    assert_eq!(output(&session, "cat file").await, "once");
    assert_all_answered(&session, 2).await;
    session.close().await.unwrap();
    // A repetition is answered when nothing new can be.
    assert_eq!(
        session.run(append()).await.unwrap().sequence,
        first.sequence
    );
    let refused = session.run(request(run("true"))).await.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::Busy);
}

/// Whoever asks a second time may go away and come back, as the first may.
#[tokio::test]
async fn who_asks_for_a_known_action_can_wait_again() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    output(&session, "mkfifo go").await;
    let wait = || keyed("k-1", run("cat go"));
    let first = session.submit(wait()).await.unwrap();
    let mut again = session.ask(wait());
    let waited = timeout(Duration::from_millis(100), again.answer()).await;
    assert!(waited.is_err(), "{waited:?}");
    assert_eq!(again.number(), Some(first.sequence));
    let go = request(run_in("other", "echo gone > go"));
    session.run(go).await.unwrap();
    let answer = again.answer().await.unwrap();
    assert_eq!(answer.cause, Some(first.sequence));
    assert_eq!(text(&event_json(&answer)), "gone");
    session.close().await.unwrap();
}

#[tokio::test]
async fn one_shell_keeps_the_order_and_others_run_at_once() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("local"), owner()).await.unwrap();
    let mut asked = Vec::new();
    for number in 0..20 {
        let action = run(&format!("echo {number} >> order"));
        asked.push(session.submit(request(action)).await.unwrap().sequence);
    }
    for action in asked {
        session.answer(action).await.unwrap();
    }
    let expected: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(output(&session, "cat order").await, expected.join("\n"));
    // Each waits for the other, so they can only end when both run.
    output(&session, "mkfifo there back").await;
    let (one, two) = tokio::join!(
        observe(&session, run_in("one", "echo ping > there; cat back")),
        observe(&session, run_in("two", "cat there; echo pong > back")),
    );
    assert_eq!(
        (text(&one), text(&two)),
        ("pong".to_owned(), "ping".to_owned())
    );
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_running_command_can_be_typed_at_and_interrupted() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("local"), owner()).await.unwrap();
    let asked = run("read line; echo got $line; sleep 1000").with_timeout(0.2);
    let asked = observe(&session, asked).await;
    assert_eq!(asked["extras"]["metadata"]["exit_code"], -1);
    let typed = Action::Run(RunCommand::input("this"));
    let typed = zareba_protocol::ActionEvent::from(typed).with_timeout(0.2);
    assert_eq!(text(&observe(&session, typed).await), "got this");
    let stopped = observe(&session, run("C-c")).await;
    assert_eq!(stopped["extras"]["metadata"]["exit_code"], 130);
    assert_eq!(output(&session, "echo free").await, "free");
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_caller_who_goes_away_stops_nothing_hs_16() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    output(&session, "mkfifo go").await;
    let mut waits = Box::pin(session.run(keyed("gone", run("cat go"))));
    let mut events = session.events(session.info().next_event);
    let action = tokio::select! {
        _ = &mut waits => panic!("it ended before it was let go"),
        event = events.next() => event.unwrap(),
    };
    drop(waits);
    observe(&session, run_in("other", "echo went > go")).await;
    let answer = session.answer(action.sequence).await.unwrap();
    assert_eq!(text(&event_json(&answer)), "went");
    let none = session.answer(answer.sequence).await.unwrap_err();
    assert_eq!(none.class(), ErrorClass::NotFound);
    session.close().await.unwrap();
}

/// Begins a command that waits for `go`, by a caller who goes away.
async fn abandon(session: &Session, command: &str) -> u64 {
    let mut events = session.events(session.info().next_event);
    let mut waits = Box::pin(session.run(request(run(command))));
    let action = tokio::select! {
        _ = &mut waits => panic!("it ended before it was let go"),
        event = events.next() => event.unwrap().sequence,
    };
    let begun = session.run(request(run_in("other", "cat begun")));
    tokio::select! {
        _ = &mut waits => panic!("it ended before it was let go"),
        begun = begun => assert_eq!(text(&event_json(&begun.unwrap())), "yes"),
    }
    action
}

#[tokio::test]
async fn the_next_command_does_not_wait_for_one_that_nobody_waits_for_hs_16() {
    for runtime in ["cli", "local"] {
        let place = Place::new();
        let sessions = place.serve().await;
        let session = sessions.create_ready(on(runtime), owner()).await.unwrap();
        output(&session, "mkfifo begun go").await;
        let action = abandon(&session, "echo out; echo yes > begun; cat go; echo end").await;
        let asked = Instant::now();
        let busy = observe(&session, run("echo early")).await;
        assert!(asked.elapsed() < Duration::from_secs(5), "{runtime}");
        let suffix = busy["extras"]["metadata"]["suffix"].as_str().unwrap();
        assert!(suffix.contains("is NOT executed"), "{busy}");
        // It goes on, and its own observation says so.
        let left = event_json(&session.answer(action).await.unwrap());
        assert_eq!(left["extras"]["metadata"]["exit_code"], -1, "{left}");
        assert_eq!(left["content"], "out", "{left}");
        observe(&session, run_in("other", "echo went > go")).await;
        assert_eq!(output(&session, "").await, "went\nend");
        assert_eq!(output(&session, "echo free").await, "free");
        assert_all_answered(&session, 7).await;
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_command_that_was_handed_in_is_waited_for_by_the_next_hs_16() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    output(&session, "mkfifo begun go").await;
    let command = "echo yes > begun; cat go";
    let first = session.submit(request(run(command))).await.unwrap();
    observe(&session, run_in("other", "cat begun")).await;
    let second = session.submit(request(run("echo second"))).await.unwrap();
    observe(&session, run_in("other", "echo went > go")).await;
    for (action, expected) in [(first, "went"), (second, "second")] {
        let answer = session.answer(action.sequence).await.unwrap();
        assert_eq!(text(&event_json(&answer)), expected);
    }
    session.close().await.unwrap();
}

#[tokio::test]
async fn closing_answers_what_is_under_way() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("local"), owner()).await.unwrap();
    for shell in ["one", "two"] {
        let sleeps = run_in(shell, "sleep 1000");
        session.submit(request(sleeps)).await.unwrap();
        let queued = run_in(shell, "true");
        session.submit(request(queued)).await.unwrap();
    }
    session.close().await.unwrap();
    session.close().await.unwrap();
    assert_all_answered(&session, 4).await;
    for (action, _) in answers(&session).await {
        let answer = event_json(&session.answer(action).await.unwrap());
        assert_eq!(answer["observation"], "error", "{answer}");
        assert_eq!(answer["extras"]["error_id"], "not_found", "{answer}");
    }
    assert_eq!(place.leftovers(), [""; 0]);
}
