//! Making, listing, losing and ending sessions.

use rustix::process::{Pid, Signal, kill_process};
use zareba_protocol::{ErrorClass, RuntimeStatus};
use zareba_session::{NewSession, Owner, SessionError, SessionState, SessionsOptions};

use crate::fixture::{
    Place, assert_all_answered, on, output, owner, records, request, run, statuses,
};

#[tokio::test]
async fn statuses_are_recorded_in_the_order_in_which_they_were_told() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("local"), owner()).await.unwrap();
    let info = session.info();
    assert_eq!(
        (info.state, info.status),
        (SessionState::Ready, RuntimeStatus::Ready)
    );
    assert_eq!(output(&session, "pwd").await, info.workspace);
    session.close().await.unwrap();
    let expected = [
        "STATUS$STARTING_RUNTIME",
        "STATUS$RUNTIME_STARTED",
        "STATUS$READY",
        "STATUS$STOPPED",
    ];
    assert_eq!(statuses(&session).await, expected);
    assert_eq!(session.info().state, SessionState::Closed);
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn variables_are_in_the_shells() {
    let place = Place::new();
    let sessions = place.serve().await;
    let new = NewSession {
        environment: vec![("COLOUR".to_owned(), "green $HOME".to_owned())],
        ..on("cli")
    };
    let session = sessions.create_ready(new, owner()).await.unwrap();
    assert_eq!(output(&session, "echo \"$COLOUR\"").await, "green $HOME");
    session.close().await.unwrap();
    let wrong = NewSession {
        environment: vec![("A;B".to_owned(), String::new())],
        ..on("cli")
    };
    let error = sessions.create(wrong, owner()).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Invalid);
    let error = sessions.create(on("nowhere"), owner()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no runtime `nowhere` here; there are: cli, local, native"
    );
    assert_eq!(sessions.list(None, None, 10).await.len(), 1);
}

#[tokio::test]
async fn sessions_are_listed_by_name_and_owner_and_limited() {
    let place = Place::new();
    let named = |name: &str| NewSession {
        id: Some(place.id(name)),
        ..on("cli")
    };
    let options = SessionsOptions {
        sessions_max: 3,
        owner_sessions_max: 2,
        ..place.options()
    };
    let sessions = place.serve_with(options).await;
    let other = Owner("other".to_owned());
    for name in ["b", "a"] {
        sessions.create_ready(named(name), owner()).await.unwrap();
    }
    let exists = sessions
        .create(named("a"), other.clone())
        .await
        .unwrap_err();
    assert!(matches!(exists, SessionError::Exists { .. }), "{exists}");
    let more = sessions.create(named("c"), owner()).await.unwrap_err();
    assert_eq!(
        more.to_string(),
        "you have 2 sessions, which is the limit; close one first"
    );
    sessions
        .create_ready(named("d"), other.clone())
        .await
        .unwrap();
    let more = sessions
        .create(named("e"), other.clone())
        .await
        .unwrap_err();
    assert!(matches!(more, SessionError::TooMany { .. }), "{more}");

    let names = async |owner: Option<&Owner>, after: Option<&str>, limit: usize| {
        let after = after.map(|name| place.id(name));
        let listed = sessions.list(owner, after.as_ref(), limit).await;
        let names = listed.iter().map(|info| info.id.as_str());
        let names = names.map(|name| name.split('-').next().unwrap());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(None, None, 10).await, "a b d");
    assert_eq!(names(Some(&owner()), None, 10).await, "a b");
    assert_eq!(names(None, Some("a"), 1).await, "b");
    let id = place.id("a");
    sessions.get(&id).await.unwrap().close().await.unwrap();
    // A closed one can be read, keeps its name, and makes room.
    let closed = sessions.get(&id).await.unwrap();
    assert_eq!(closed.info().state, SessionState::Closed);
    assert!(closed.info().next_event > 0);
    assert!(sessions.create(named("a"), owner()).await.is_err());
    sessions.create_ready(named("c"), owner()).await.unwrap();
    assert_eq!(names(None, None, 10).await, "a b c d");
    for info in sessions.list(None, None, 10).await {
        sessions.remove(&info.id).await.unwrap();
    }
    assert_eq!(names(None, None, 10).await, "");
    assert!(sessions.get(&id).await.is_err());
    assert_eq!(sessions.log().store().sessions().await.unwrap(), []);
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_start_that_fails_says_why_and_leaves_nothing() {
    let place = Place::new();
    let sessions = place.serve().await;
    let new = NewSession {
        image: Some("no-such-image".to_owned()),
        id: Some(place.id("failed")),
        ..on("native")
    };
    let error = sessions.create_ready(new, owner()).await.unwrap_err();
    assert!(matches!(error, SessionError::Runtime(_)), "{error}");
    let failed = sessions.get(&place.id("failed")).await.unwrap();
    let info = failed.info();
    assert_eq!(
        (info.state, info.status),
        (SessionState::Failed, RuntimeStatus::Error)
    );
    assert!(info.message.contains("no-such-image"), "{}", info.message);
    // HS-18: where this server keeps its things is nobody's business.
    let told = format!("{} {:?}", info.message, records(&failed).await);
    let home = place.path("").display().to_string();
    assert!(!told.contains(home.trim_end_matches('/')), "{told}");
    assert!(failed.run(request(run("true"))).await.is_err());
    failed.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn one_that_is_being_started_can_be_closed() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create(on("local"), owner()).await.unwrap();
    assert_eq!(session.info().state, SessionState::Starting);
    let early = session.run(request(run("true"))).await.unwrap_err();
    assert_eq!(early.class(), ErrorClass::Busy);
    session.close().await.unwrap();
    assert_eq!(session.info().state, SessionState::Closed);
    // What the backend clears away behind us, it does before it lets others in.
    sessions
        .create_ready(on("local"), owner())
        .await
        .unwrap()
        .close()
        .await
        .unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_lost_sandbox_is_noticed_and_told() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("local"), owner()).await.unwrap();
    let executor: i32 = output(&session, "echo $PPID").await.parse().unwrap();
    let mut events = session.events(session.info().next_event);
    let under_way = session.submit(request(run("sleep 1000"))).await.unwrap();
    events.next().await.unwrap();
    kill_process(Pid::from_raw(executor).unwrap(), Signal::KILL).unwrap();
    let answer = session.answer(under_way.sequence).await.unwrap();
    assert_eq!(
        answer.payload["extras"]["error_id"], "disconnected",
        "{answer:?}"
    );
    while session.info().state != SessionState::Lost {
        events.next().await.unwrap();
    }
    assert_eq!(
        statuses(&session).await.last().map(String::as_str),
        Some("STATUS$ERROR_RUNTIME_DISCONNECTED")
    );
    let refused = session.run(request(run("true"))).await.unwrap_err();
    assert!(matches!(refused, SessionError::State { .. }), "{refused}");
    assert_all_answered(&session, 2).await;
    session.close().await.unwrap();
    assert_eq!(session.info().state, SessionState::Closed);
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_server_that_shuts_down_waits_a_while_and_takes_nothing_new() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let mut events = session.events(session.info().next_event);
    let slow = session
        .submit(request(run("sleep 0.3; echo slept")))
        .await
        .unwrap();
    events.next().await.unwrap();
    sessions.shut_down(std::time::Duration::from_secs(30)).await;
    let answer = session.answer(slow.sequence).await.unwrap();
    assert_eq!(answer.payload["content"], "slept");
    let refused = session.run(request(run("true"))).await.unwrap_err();
    assert!(matches!(refused, SessionError::ShuttingDown), "{refused}");
    let refused = sessions.create(on("cli"), owner()).await.unwrap_err();
    assert!(matches!(refused, SessionError::ShuttingDown), "{refused}");
}
