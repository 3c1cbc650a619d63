//! A server that ended without a word, and the one after it.

use std::time::{Duration, Instant};

use zareba_session::{
    HIDDEN, NewSession, Record, Recovery, Secret, Session, SessionError, SessionState, Sessions,
    event_json,
};

use crate::fixture::{
    Place, answers, assert_all_answered, keyed, on, output, owner, request, run, run_in, text,
};

/// Does something in an async runtime of its own, which is gone afterwards with all of its tasks,
/// like the process that it stands for.
pub(crate) async fn in_another_life<T: Send + 'static>(
    place: &Place,
    work: impl AsyncFnOnce(&Sessions) -> T + Send + 'static,
) -> T {
    let place = place.clone();
    let life = move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (done, log) = runtime.block_on(async {
            let sessions = place.serve().await;
            (work(&sessions).await, sessions.log().clone())
        });
        drop(runtime);
        (done, log)
    };
    let (done, log) = tokio::task::spawn_blocking(life).await.unwrap();
    // As the end of a process does, this lets go of the file.
    log.store().close().await.unwrap();
    done
}

/// The one session that there is.
pub(crate) async fn only(sessions: &Sessions) -> std::sync::Arc<Session> {
    let listed = sessions.list(None, None, 2).await;
    assert_eq!(listed.len(), 1);
    sessions.get(&listed[0].id).await.unwrap()
}

/// Begins an action that waits for `go`, and returns when it runs.
async fn begin_waiting(session: &Session) -> u64 {
    output(session, "mkfifo begun go").await;
    let command = "echo ran >> runs; echo > begun; cat go";
    let waiting = session.submit(keyed("doubt", run(command))).await.unwrap();
    let begun = session
        .run(request(run_in("other", "cat begun")))
        .await
        .unwrap();
    assert_eq!(text(&event_json(&begun)), "");
    waiting.sequence
}

#[tokio::test]
async fn an_action_in_flight_runs_once_and_is_answered_once() {
    for runtime in ["local", "native"] {
        let place = Place::new();
        let waiting = in_another_life(&place, async move |sessions| {
            let new = on(runtime);
            let session = sessions.create_ready(new, owner()).await.unwrap();
            output(&session, "A=kept").await;
            begin_waiting(&session).await
        })
        .await;

        let (sessions, recovery) = place.recover_with(place.options()).await;
        let expected = Recovery {
            found: 1,
            lost: 0,
            in_doubt: 1,
        };
        assert_eq!(recovery, expected, "{runtime}");
        let session = only(&sessions).await;
        assert_eq!(session.info().state, SessionState::Ready);
        let go = session.run(request(run_in("other", "echo went > go")));
        let (answer, go) = tokio::join!(session.answer(waiting), go);
        go.unwrap();
        assert_eq!(text(&event_json(&answer.unwrap())), "went", "{runtime}");
        // Whoever asked the first server asks again, and gets the same answer.
        let command = "echo ran >> runs; echo > begun; cat go";
        let again = session.run(keyed("doubt", run(command))).await.unwrap();
        assert_eq!(again.cause, Some(waiting));
        assert_eq!(output(&session, "cat runs; echo $A").await, "ran\nkept");
        assert_all_answered(&session, 6).await;
        session.close().await.unwrap();
        assert_eq!(place.leftovers(), [""; 0], "{runtime}");
    }
}

#[tokio::test]
async fn an_action_that_ended_while_nobody_was_there_is_answered_with_what_came_of_it() {
    let place = Place::new();
    let (waiting, workspace) = in_another_life(&place, async |sessions| {
        let session = sessions.create_ready(on("local"), owner()).await.unwrap();
        (begin_waiting(&session).await, session.info().workspace)
    })
    .await;
    tokio::task::spawn_blocking(move || std::fs::write(format!("{workspace}/go"), "alone"))
        .await
        .unwrap()
        .unwrap();
    let (sessions, recovery) = place.recover_with(place.options()).await;
    assert_eq!(recovery.in_doubt, 1);
    let session = only(&sessions).await;
    let answer = session.answer(waiting).await.unwrap();
    assert_eq!(text(&event_json(&answer)), "alone", "{answer:?}");
    assert_eq!(output(&session, "cat runs").await, "ran");
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn an_action_that_was_never_handed_over_runs_now_in_its_order() {
    let place = Place::new();
    in_another_life(&place, async |sessions| {
        let session = sessions.create_ready(on("local"), owner()).await.unwrap();
        output(&session, "true").await;
        // What a server leaves that is killed between the two.
        for number in ["1", "2", "3"] {
            append(sessions, &session, run(&format!("echo {number} >> order"))).await;
        }
    })
    .await;
    let (sessions, recovery) = place.recover_with(place.options()).await;
    assert_eq!(recovery.in_doubt, 3);
    let session = only(&sessions).await;
    let after = output(&session, "echo 4 >> order; cat order").await;
    assert_eq!(after, "1\n2\n3\n4");
    for (action, _) in answers(&session).await {
        session.answer(action).await.unwrap();
    }
    assert_all_answered(&session, 5).await;
    session.close().await.unwrap();
}

async fn append(
    sessions: &Sessions,
    session: &Session,
    action: zareba_protocol::ActionEvent,
) -> std::sync::Arc<Record> {
    use zareba_eventlog::{Appended, Entry, EntryKind, Patience};
    let serde_json::Value::Object(payload) = action.to_value() else {
        panic!("an action is an object");
    };
    let entry = Entry {
        kind: EntryKind::Action,
        cause: None,
        key: None,
        payload,
    };
    let store = sessions.log().store();
    let appended = store.append(session.id().clone(), entry, Patience::None);
    match appended.await.unwrap() {
        Appended::New(record) | Appended::Before(record) => record,
    }
}

#[tokio::test]
async fn an_action_with_a_secret_is_never_run_without_it() {
    let place = Place::new();
    let (ran, lost) = in_another_life(&place, async |sessions| {
        let new = NewSession {
            secrets: vec![("TOKEN".to_owned(), Secret("hunter22".to_owned()))],
            ..on("local")
        };
        let session = sessions.create_ready(new, owner()).await.unwrap();
        output(&session, "mkfifo begun go").await;
        let command = "echo hunter22 >> runs; echo > begun; cat go";
        let ran = session.submit(request(run(command))).await.unwrap();
        session
            .run(request(run_in("other", "cat begun")))
            .await
            .unwrap();
        let mut payload = ran.payload.clone();
        payload["args"]["command"] = "echo <secret_hidden> >> runs".into();
        let store = sessions.log().store();
        let entry = zareba_eventlog::Entry {
            kind: zareba_eventlog::EntryKind::Action,
            cause: None,
            key: None,
            payload,
        };
        let patience = zareba_eventlog::Patience::None;
        let lost = store.append(session.id().clone(), entry, patience).await;
        let zareba_eventlog::Appended::New(lost) = lost.unwrap() else {
            panic!("it has no key");
        };
        (ran.sequence, lost.sequence)
    })
    .await;
    let sessions = place.serve().await;
    let session = only(&sessions).await;
    let lost = session.answer(lost).await.unwrap();
    assert!(text(&event_json(&lost)).contains("NOT run"), "{lost:?}");
    let go = session.run(request(run_in("other", "echo went > go")));
    let (ran, go) = tokio::join!(session.answer(ran), go);
    go.unwrap();
    assert_eq!(text(&event_json(&ran.unwrap())), "went");
    let hidden = format!("{HIDDEN}\n{HIDDEN}");
    assert_eq!(output(&session, "cat runs; printenv TOKEN").await, hidden);
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

/// It may have been the call of a tool, which the sandbox knows nothing about.
#[tokio::test]
async fn nobody_says_of_an_action_that_cannot_be_read_that_it_was_not_run() {
    let place = Place::new();
    let damaged = in_another_life(&place, async |sessions| {
        let session = sessions.create_ready(on("local"), owner()).await.unwrap();
        let damaged = append(sessions, &session, run("true")).await;
        // Only behind the last whole record it would be cut off.
        output(&session, "true").await;
        damaged.sequence
    })
    .await;
    let database = rusqlite::Connection::open(place.path("events.db")).unwrap();
    let damage = format!("UPDATE events SET payload = '{{}}' WHERE sequence = {damaged}");
    assert_eq!(database.execute(&damage, []).unwrap(), 1);
    drop(database);
    let sessions = place.serve().await;
    let session = only(&sessions).await;
    let answer = text(&event_json(&session.answer(damaged).await.unwrap()));
    assert!(answer.contains("is unknown"), "{answer}");
    assert!(!answer.contains("NOT run"), "{answer}");
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_sandbox_that_is_gone_is_lost_and_its_actions_are_answered() {
    let place = Place::new();
    let waiting = in_another_life(&place, async |sessions| {
        // It ends with its server.
        let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
        begin_waiting(&session).await
    })
    .await;
    let (sessions, recovery) = place.recover_with(place.options()).await;
    let expected = Recovery {
        found: 0,
        lost: 1,
        in_doubt: 1,
    };
    assert_eq!(recovery, expected);
    let session = only(&sessions).await;
    assert_eq!(session.info().state, SessionState::Lost);
    let answer = event_json(&session.answer(waiting).await.unwrap());
    assert_eq!(answer["extras"]["error_id"], "disconnected");
    assert!(text(&answer).contains("sandbox was lost"), "{answer}");
    assert_all_answered(&session, 3).await;
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_start_that_was_under_way_is_undone() {
    let place = Place::new();
    let workspace = place.path("workspace");
    std::fs::create_dir_all(workspace.join(".openhands")).unwrap();
    std::fs::write(workspace.join(".openhands/setup.sh"), "sleep 1000").unwrap();
    let new = NewSession {
        workspace: Some(workspace),
        ..on("local")
    };
    in_another_life(&place, async |sessions| {
        let session = sessions.create(new, owner()).await.unwrap();
        let mut events = session.events(0);
        // The script runs, or will, when its action is recorded.
        while events.next().await.unwrap().kind != zareba_eventlog::EntryKind::Action {}
    })
    .await;
    let sessions = place.serve().await;
    let session = only(&sessions).await;
    assert_eq!(session.info().state, SessionState::Failed);
    assert_all_answered(&session, 1).await;
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn many_sessions_are_taken_up_at_once() {
    const COUNT: usize = 20;
    let place = Place::new();
    in_another_life(&place, async |sessions| {
        for _ in 0..COUNT {
            let new = on("local");
            sessions.create_ready(new, owner()).await.unwrap();
        }
    })
    .await;
    let begun = Instant::now();
    let (sessions, recovery) = place.recover_with(place.options()).await;
    // A hundred may take five seconds.
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(recovery.found, COUNT);
    for info in sessions.list(None, None, COUNT).await {
        sessions.remove(&info.id).await.unwrap();
    }
    assert_eq!(place.leftovers(), [""; 0]);
}

/// One session whose end cannot be written down costs neither the others nor the server.
#[tokio::test]
async fn recovery_goes_on_past_a_session_that_cannot_be_taken_up() {
    let place = Place::new();
    let (good, bad) = (place.id("good"), place.id("bad"));
    let workspace = place.path("workspace");
    std::fs::create_dir_all(workspace.join(".openhands")).unwrap();
    std::fs::write(workspace.join(".openhands/setup.sh"), "sleep 1000").unwrap();
    let new = NewSession {
        id: Some(good.clone()),
        ..on("local")
    };
    let never_ready = NewSession {
        id: Some(bad.clone()),
        workspace: Some(workspace),
        ..on("local")
    };
    in_another_life(&place, async |sessions| {
        sessions.create_ready(new, owner()).await.unwrap();
        let session = sessions.create(never_ready, owner()).await.unwrap();
        let mut events = session.events(0);
        // The script runs, or will, when its action is recorded.
        while events.next().await.unwrap().kind != zareba_eventlog::EntryKind::Action {}
    })
    .await;
    let meddle = |statement: &str| {
        let database = rusqlite::Connection::open(place.path("events.db")).unwrap();
        database.execute_batch(statement).unwrap();
    };
    meddle(&format!(
        "CREATE TRIGGER refuse BEFORE UPDATE ON documents WHEN NEW.name = '{bad}'
        BEGIN SELECT RAISE(ABORT, 'refused'); END"
    ));
    let (sessions, recovery) = place.recover_with(place.options()).await;
    assert_eq!((recovery.found, recovery.lost), (1, 0));
    let session = sessions.get(&good).await.unwrap();
    assert_eq!(output(&session, "echo up").await, "up");
    let left = sessions.get(&bad).await.unwrap();
    let refused = left.run(request(run("true"))).await.unwrap_err();
    assert!(
        matches!(refused, SessionError::NotTakenUp { .. }),
        "{refused}"
    );
    sessions.shut_down(Duration::from_secs(5)).await;
    sessions.log().store().close().await.unwrap();

    meddle("DROP TRIGGER refuse");
    let (sessions, recovery) = place.recover_with(place.options()).await;
    assert_eq!((recovery.found, recovery.lost), (1, 1));
    let left = sessions.get(&bad).await.unwrap();
    assert_eq!(left.info().state, SessionState::Failed);
    sessions.remove(&good).await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}
