//! A server that is gone, and the one that takes its sessions over.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_postgres::NoTls;
use zareba_eventlog::{EntryKind, EventLog};
use zareba_session::{NewSession, SessionError, SessionId, SessionState, Sessions};

use super::{
    Database, PATIENCE, claim, in_a_lost_life, is_claimed, named, never_ready, servers, take, tell,
    unclaimed, until, wait_for_recovery,
};
use crate::{
    backend::Backend,
    fixture::{Place, output, owner, request, run},
};

/// Has the database refuse to write down that a session has failed.
async fn refuse_failure(database: &Database, session: &SessionId) {
    // The count is no part of what fails.
    let refuse = format!(
        "CREATE SEQUENCE refusals;
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM nextval('refusals'); RAISE EXCEPTION 'refused'; END $$;
        CREATE TRIGGER refuse BEFORE UPDATE ON zareba.documents FOR EACH ROW
        WHEN (NEW.name = '{session}' AND NEW.value::jsonb ->> 'state' = 'failed')
        EXECUTE FUNCTION refuse()"
    );
    tell(&database.url(), &refuse).await;
}

/// Waits until that has happened, and has it refuse nothing any more.
async fn mend_when_refused(database: &Database) {
    let (client, connection) = tokio_postgres::connect(&database.url(), NoTls)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let refused = async {
        let question = "SELECT is_called FROM refusals";
        while !client
            .query_one(question, &[])
            .await
            .unwrap()
            .get::<_, bool>(0)
        {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, refused).await.unwrap();
    let mend = "DROP TRIGGER refuse ON zareba.documents";
    client.batch_execute(mend).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

/// Begins one, and returns when its script runs, or will: when its action is recorded.
async fn begin_start(sessions: &Sessions, new: NewSession) {
    let session = sessions.create(new, owner()).await.unwrap();
    let mut events = session.events(0);
    while events.next().await.unwrap().kind != EntryKind::Action {}
}

/// Waits until the server has shown twice more that it is there.
async fn wait_for_signs(log: &EventLog) {
    let begun = unclaimed(log).await.version;
    until(async || unclaimed(log).await.version >= begun + 2).await;
}

/// One that took over would otherwise be taken for gone itself, as soon as that lasts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_server_shows_that_it_is_there_while_it_takes_over() {
    let (database, place) = (Database::new().await, Place::new());
    let id = place.id("taken");
    let new = named(&id);
    in_a_lost_life(&database, &place, async |sessions| {
        let session = sessions.create_ready(new, owner()).await.unwrap();
        output(&session, "A=kept").await;
    })
    .await;

    let (backend, options) = Backend::new(&place);
    backend.hold(true);
    let (sessions, recovery) = Sessions::start(database.open().await, options)
        .await
        .unwrap();
    assert_eq!((recovery.found, recovery.lost), (0, 0));
    backend.asked().await;
    wait_for_signs(sessions.log()).await;
    let claimed = servers(sessions.log()).await;
    let claimed = claimed.iter().filter(|server| is_claimed(server));
    assert_eq!(claimed.count(), 1);

    backend.hold(false);
    wait_for_recovery(&sessions, &id).await;
    let session = sessions.get(&id).await.unwrap();
    assert_eq!(output(&session, "echo $A").await, "kept");
    sessions.remove(&id).await.unwrap();
    sessions.shut_down(Duration::from_secs(5)).await;
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}

/// A session may have got the name of its new server before that fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn what_could_not_be_taken_over_is_tried_again() {
    let (database, place) = (Database::new().await, Place::new());
    let (ready, starting) = (place.id("ready"), place.id("starting"));
    let new = named(&ready);
    let never_ready = never_ready(&place, &starting);
    in_a_lost_life(&database, &place, async |sessions| {
        sessions.create_ready(new, owner()).await.unwrap();
        begin_start(sessions, never_ready).await;
    })
    .await;
    refuse_failure(&database, &starting).await;
    let log = database.open().await;
    let (sessions, _) = Sessions::start(log, place.options()).await.unwrap();
    mend_when_refused(&database).await;
    until(async || {
        let session = sessions.get(&starting).await.unwrap();
        let servers = servers(sessions.log()).await;
        session.info().state == SessionState::Failed && servers.len() == 1
    })
    .await;
    let session = sessions.get(&ready).await.unwrap();
    assert_eq!(output(&session, "echo up").await, "up");
    sessions.remove(&ready).await.unwrap();
    sessions.shut_down(Duration::from_secs(5)).await;
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}

/// What fails when a server starts is not another one's, and is tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn what_could_not_be_taken_up_at_the_start_is_tried_again() {
    let (database, place) = (Database::new().await, Place::new());
    let id = place.id("starting");
    let never_ready = never_ready(&place, &id);
    in_a_lost_life(&database, &place, async |sessions| {
        begin_start(sessions, never_ready).await;
    })
    .await;
    let log = database.open().await;
    // As if it had ended in order: whoever starts next takes its sessions up.
    for server in servers(&log).await {
        log.store().delete(server.name).await.unwrap();
    }
    refuse_failure(&database, &id).await;
    let (sessions, _) = Sessions::start(log, place.options()).await.unwrap();
    let session = sessions.get(&id).await.unwrap();
    let error = session.close().await.unwrap_err();
    assert!(matches!(error, SessionError::NotTakenUp { .. }), "{error}");
    mend_when_refused(&database).await;
    until(async || sessions.get(&id).await.unwrap().info().state == SessionState::Failed).await;
    sessions.shut_down(Duration::from_secs(5)).await;
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}

/// Two would have the session otherwise: the one that has lost its name only finds it later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_server_that_is_taken_over_while_it_takes_over_has_nothing() {
    let (database, place) = (Database::new().await, Place::new());
    let id = place.id("contested");
    let new = named(&id);
    in_a_lost_life(&database, &place, async |sessions| {
        let session = sessions.create_ready(new, owner()).await.unwrap();
        output(&session, "A=kept").await;
    })
    .await;
    let (backend, options) = Backend::new(&place);
    backend.hold(true);
    let log = database.open().await;
    let (sessions, _) = Sessions::start(log.clone(), options).await.unwrap();
    backend.asked().await;

    // A third server claims it, and takes the session that is being taken up.
    let found = servers(&log).await;
    let gone = found.iter().find(|server| is_claimed(server)).unwrap();
    claim(&log, &unclaimed(&log).await).await;
    take(&log, &id).await;
    until(async || !servers(&log).await.iter().all(is_claimed)).await;
    backend.hold(false);
    until(async || servers(&log).await.iter().all(|it| it.name != gone.name)).await;
    let session = sessions.get(&id).await.unwrap();
    let error = session.run(request(run("true"))).await.unwrap_err();
    assert!(
        matches!(error, SessionError::HeldElsewhere { .. }),
        "{error}"
    );

    // Nobody has shown that the third one is there: whoever starts next takes the session up.
    let (next, recovery) = Sessions::start(database.open().await, place.options())
        .await
        .unwrap();
    assert_eq!((recovery.found, recovery.lost), (1, 0));
    let session = next.get(&id).await.unwrap();
    assert_eq!(output(&session, "echo $A").await, "kept");
    next.remove(&id).await.unwrap();
    for sessions in [sessions, next] {
        sessions.shut_down(Duration::from_secs(5)).await;
    }
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}

/// Both servers have it claimed then, and the second relies on the document: it is its to remove.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_claim_that_another_server_has_taken_since_is_left_to_it() {
    let (database, place) = (Database::new().await, Place::new());
    let id = place.id("claimed");
    let new = named(&id);
    in_a_lost_life(&database, &place, async |sessions| {
        let session = sessions.create_ready(new, owner()).await.unwrap();
        output(&session, "A=kept").await;
    })
    .await;
    let (backend, options) = Backend::new(&place);
    backend.hold(true);
    let log = database.open().await;
    let (sessions, _) = Sessions::start(log.clone(), options).await.unwrap();
    backend.asked().await;

    let found = servers(&log).await;
    let gone = found.iter().find(|server| is_claimed(server)).unwrap();
    claim(&log, gone).await;
    // Also while it goes on: a claim that is renewed does not take that of another one back.
    wait_for_signs(&log).await;
    backend.hold(false);
    wait_for_recovery(&sessions, &id).await;
    // What it has begun it has finished, and looks again.
    wait_for_signs(&log).await;
    let left = servers(&log).await;
    let left = left.iter().find(|server| server.name == gone.name).unwrap();
    assert_eq!(left.value["taken_by"], "third");
    let session = sessions.get(&id).await.unwrap();
    assert_eq!(output(&session, "echo $A").await, "kept");
    sessions.remove(&id).await.unwrap();
    sessions.shut_down(Duration::from_secs(5)).await;
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}
