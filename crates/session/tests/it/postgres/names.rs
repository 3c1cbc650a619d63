//! A server that loses its name to another one, and the sessions that it is just about.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::NoTls;
use zareba_eventlog::EventLog;
use zareba_session::{SessionState, Sessions};

use super::{
    Database, claim, is_claimed, named, never_ready, servers, take, unclaimed, until, written,
};
use crate::{
    backend::Backend,
    fixture::{Place, output, owner, request, run},
};

/// Has a server lose its name, and returns the one that it gets.
async fn rename(log: &EventLog) -> String {
    claim(log, &unclaimed(log).await).await;
    until(async || !servers(log).await.iter().all(is_claimed)).await;
    unclaimed(log).await.name.name
}

/// Whoever takes over what the old name had would otherwise take the new session, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_session_that_is_just_made_gets_the_new_name() {
    let (database, place) = (Database::new().await, Place::new());
    let id = place.id("new");
    let log = database.open().await;
    let (sessions, _) = Sessions::start(log.clone(), place.options()).await.unwrap();
    // Whoever makes a session looks for records of it first, and waits there.
    let (mut client, connection) = tokio_postgres::connect(&database.url(), NoTls)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let lock = client.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE zareba.sessions")
        .await
        .unwrap();
    let new = never_ready(&place, &id);
    let making = {
        let sessions = sessions.clone();
        tokio::spawn(async move { sessions.create(new, owner()).await })
    };
    let waits = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND database =
        (SELECT oid FROM pg_database WHERE datname = current_database())";
    until(async || lock.query_one(waits, &[]).await.unwrap().get(0)).await;
    let name = rename(&log).await;
    lock.rollback().await.unwrap();
    let session = making.await.unwrap().unwrap();
    assert_eq!(written(&log, &id).await.value["holder"], name);
    session.close().await.unwrap();
    sessions.remove(&id).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
    sessions.shut_down(Duration::from_secs(5)).await;
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}

/// Nobody would have it otherwise: it is let go here, and has the new name of this server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_session_that_is_ready_after_it_was_let_go_is_taken_up_again() {
    let (database, place) = (Database::new().await, Place::new());
    let id = place.id("late");
    let log = database.open().await;
    let (backend, options) = Backend::new(&place);
    backend.hold(true);
    let (sessions, _) = Sessions::start(log.clone(), options).await.unwrap();
    sessions.create(named(&id), owner()).await.unwrap();
    backend.asked().await;
    rename(&log).await;
    backend.hold(false);
    until(async || {
        let session = sessions.get(&id).await.unwrap();
        session.run(request(run("true"))).await.is_ok()
    })
    .await;
    let session = sessions.get(&id).await.unwrap();
    assert_eq!(output(&session, "echo up").await, "up");
    sessions.remove(&id).await.unwrap();
    sessions.shut_down(Duration::from_secs(5)).await;
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}

/// What is left of it, and what is written down about it, is the other server's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn the_lost_sandbox_of_a_session_that_another_server_has_is_left_alone() {
    let (database, place) = (Database::new().await, Place::new());
    let id = place.id("taken");
    let log = database.open().await;
    let (backend, options) = Backend::new(&place);
    let (sessions, _) = Sessions::start(log.clone(), options).await.unwrap();
    let session = sessions.create_ready(named(&id), owner()).await.unwrap();
    let executor: i32 = output(&session, "echo $PPID").await.parse().unwrap();
    // Nobody has noticed here that the session is another server's.
    take(&log, &id).await;
    let taken = written(&log, &id).await;
    kill_process(Pid::from_raw(executor).unwrap(), Signal::KILL).unwrap();
    // Looks for the sandbox, which does not answer.
    let answer = session.run(request(run("true"))).await.unwrap();
    assert_eq!(answer.payload["extras"]["error_id"], "disconnected");
    // Waits for whoever else deals with the loss.
    session.resume().await.unwrap();
    assert_eq!(backend.removals(), 0);
    assert_eq!(session.info().state, SessionState::Ready);
    assert_eq!(written(&log, &id).await, taken);
    sessions.shut_down(Duration::from_secs(5)).await;

    // Nobody has shown that the third one is there: whoever starts next removes what is left.
    let started = Sessions::start(database.open().await, place.options()).await;
    let (next, recovery) = started.unwrap();
    assert_eq!((recovery.found, recovery.lost), (0, 1));
    next.remove(&id).await.unwrap();
    next.shut_down(Duration::from_secs(5)).await;
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}
