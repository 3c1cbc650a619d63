//! Several servers on one log.

mod lease;
mod names;

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::json;
use tokio::time::{sleep, timeout};
use tokio_postgres::NoTls;
use zareba_eventlog::{Document, DocumentName, Durability, EntryKind, EventLog, Expected};
use zareba_protocol::ErrorClass;
use zareba_session::{NewSession, SessionError, SessionId, Sessions};

use crate::fixture::{Place, client, on, output, owner, request, run};

/// A server is taken for gone after 20 s, which is looked at every 5 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// A database of a test's own: a server of another one would take the sessions over.
struct Database {
    server: String,
    name: String,
}

impl Database {
    async fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let database = Self {
            // Set by `scripts/postgresql`, under which this is to be run.
            server: std::env::var("ZAREBA_TEST_POSTGRES").unwrap(),
            name: format!("lease_{}_{count}", std::process::id()),
        };
        let create = format!("CREATE DATABASE {}", database.name);
        tell(&database.server, &create).await;
        database
    }

    fn url(&self) -> String {
        let own = format!("/{}?", self.name);
        self.server.replace("/postgres?", &own)
    }

    async fn open(&self) -> EventLog {
        let opened = EventLog::open_database(&self.url(), Durability::Process).await;
        opened.unwrap()
    }

    async fn remove(self) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        tell(&self.server, &drop).await;
    }
}

async fn tell(url: &str, statements: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(statements).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

/// Makes sessions in an async runtime of its own, which is gone afterwards without a word, like
/// the process that it stands for.
async fn in_a_lost_life(
    database: &Database,
    place: &Place,
    work: impl AsyncFnOnce(&Sessions) + Send + 'static,
) {
    let (url, place) = (database.url(), place.clone());
    let life = move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let log = runtime.block_on(async {
            let opened = EventLog::open_database(&url, Durability::Process).await;
            let started = Sessions::start(opened.unwrap(), place.options()).await;
            let sessions = started.unwrap().0;
            work(&sessions).await;
            sessions.log().clone()
        });
        drop((runtime, log));
    };
    tokio::task::spawn_blocking(life).await.unwrap();
}

/// Waits until something is so that nobody tells of.
async fn until(is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap();
}

/// The documents of servers.
async fn servers(log: &EventLog) -> Vec<Document> {
    log.store().list("server").await.unwrap()
}

/// Whether somebody takes a server's sessions over.
fn is_claimed(server: &Document) -> bool {
    server.value.get("taken_by").is_some()
}

/// The one server that nobody has claimed.
async fn unclaimed(log: &EventLog) -> Document {
    let servers = servers(log).await;
    let mut unclaimed = servers.iter().filter(|server| !is_claimed(server));
    let found = unclaimed.next().unwrap().clone();
    assert_eq!(unclaimed.next(), None);
    found
}

/// As a third server does that takes one for gone, and then does nothing more.
async fn claim(log: &EventLog, server: &Document) {
    let claim = json!({ "taken_by": "third" });
    let put = log
        .store()
        .put(server.name.clone(), claim, Expected::Anything);
    put.await.unwrap();
}

/// What is written down about a session.
async fn written(log: &EventLog, id: &SessionId) -> Document {
    let name = DocumentName {
        kind: "session",
        name: id.to_string(),
    };
    log.store().get(name).await.unwrap().unwrap()
}

/// As a third server does that takes a session up.
async fn take(log: &EventLog, id: &SessionId) {
    let mut taken = written(log, id).await;
    taken.value["holder"] = "third".into();
    let expected = Expected::Version(taken.version);
    let put = log.store().put(taken.name, taken.value, expected);
    put.await.unwrap();
}

async fn wait_for_recovery(sessions: &Sessions, id: &SessionId) {
    let mut events = sessions.get(id).await.unwrap().events(0);
    let recovered = async {
        loop {
            let record = events.next().await.unwrap();
            if record.kind == EntryKind::Note && record.payload["note"] == "recovered" {
                return;
            }
        }
    };
    timeout(PATIENCE, recovered).await.unwrap();
}

/// A session on the runtime that outlives servers.
fn named(id: &SessionId) -> NewSession {
    NewSession {
        id: Some(id.clone()),
        ..on("local")
    }
}

/// A session whose start does not end by itself.
fn never_ready(place: &Place, id: &SessionId) -> NewSession {
    let workspace = place.path("workspace");
    std::fs::create_dir_all(workspace.join(".openhands")).unwrap();
    std::fs::write(workspace.join(".openhands/setup.sh"), "sleep 1000").unwrap();
    NewSession {
        workspace: Some(workspace),
        ..named(id)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_second_server_leaves_the_sessions_of_the_first_alone() {
    let (database, place) = (Database::new().await, Place::new());
    let id = place.id("held");
    let start = async || {
        Sessions::start(database.open().await, place.options())
            .await
            .unwrap()
    };
    let (first, _) = start().await;
    let session = first.create_ready(named(&id), owner()).await.unwrap();
    output(&session, "A=kept").await;

    let (second, recovery) = start().await;
    assert_eq!((recovery.found, recovery.lost), (0, 0));
    let listed = second.list(Some(&owner()), None, 10).await;
    assert!(listed.iter().any(|info| info.id == id), "{listed:?}");
    let there = second.get(&id).await.unwrap();
    assert_eq!(there.events(0).next().await.unwrap().sequence, 0);
    let before = session.info().next_event;
    let held = [
        there.run(request(run("true"))).await.map(drop),
        there.pause().await,
        there.access(client()).await.map(drop),
        there.close().await,
        second.remove(&id).await,
    ];
    for outcome in held {
        let error = outcome.unwrap_err();
        assert!(
            matches!(error, SessionError::HeldElsewhere { .. }),
            "{error}"
        );
        assert_eq!(error.class(), ErrorClass::Busy);
    }
    assert_eq!(session.info().next_event, before, "nothing was recorded");
    assert_eq!(output(&session, "echo $A").await, "kept");

    // One that ends in order leaves its sessions to whoever starts next.
    first.shut_down(Duration::from_secs(5)).await;
    let (third, recovery) = start().await;
    assert_eq!((recovery.found, recovery.lost), (1, 0));
    let session = third.get(&id).await.unwrap();
    assert_eq!(output(&session, "echo $A").await, "kept");
    third.remove(&id).await.unwrap();
    for sessions in [second, third] {
        sessions.shut_down(Duration::from_secs(5)).await;
    }
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}
