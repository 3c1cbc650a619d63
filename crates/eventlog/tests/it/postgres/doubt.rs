//! A connection that breaks just when the database has committed, or just before.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    task::JoinHandle,
};
use zareba_eventlog::{
    Appended, Document, EventLog, Expected, Health, LogError, Options, Patience,
};

use super::Database;
use crate::support::*;

const SOCKET: &str = ".s.PGSQL.5432";

type Traps = Arc<Mutex<VecDeque<(&'static [u8], Then)>>>;

/// What becomes of a connection whose answer was swallowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Breaks,
    /// It stays, and nothing comes any more.
    IsSilent,
}

/// Stands between the log and the database, and can break the connection at a chosen answer.
struct Proxy {
    directory: TempDir,
    /// The answers of the server that are swallowed, each once, in this order.
    traps: Traps,
    task: JoinHandle<()>,
}

impl Proxy {
    fn new(database: &Database) -> Self {
        let (_, host) = database.server.split_once("host=").unwrap();
        let server = PathBuf::from(host).join(SOCKET);
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let traps = Traps::default();
        let shared = Arc::clone(&traps);
        let task = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = UnixStream::connect(&server).await.unwrap();
                tokio::spawn(carry(client, server, Arc::clone(&shared)));
            }
        });
        Self {
            directory,
            traps,
            task,
        }
    }

    fn url(&self, database: &Database) -> String {
        let host = self.directory.path().display();
        format!("postgresql://zareba@/{}?host={host}", database.name)
    }

    fn set_trap(&self, answer: &'static [u8]) {
        self.set_traps([(answer, Then::Breaks)]);
    }

    fn set_traps(&self, traps: impl IntoIterator<Item = (&'static [u8], Then)>) {
        self.traps.lock().unwrap().extend(traps);
    }

    fn has_caught_all(&self) -> bool {
        self.traps.lock().unwrap().is_empty()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(client: UnixStream, server: UnixStream, traps: Traps) {
    let (mut client_reads, mut client_writes) = client.into_split();
    let (mut server_reads, mut server_writes) = server.into_split();
    let back = async {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let count = server_reads.read(&mut bytes).await.unwrap_or(0);
            let said = &bytes[..count];
            let caught = {
                let mut traps = traps.lock().unwrap();
                let is_said = |answer: &[u8]| said.windows(answer.len()).any(|it| it == answer);
                match traps.front() {
                    Some((answer, _)) if is_said(answer) => traps.pop_front(),
                    _ => None,
                }
            };
            if caught.is_some_and(|(_, then)| then == Then::IsSilent) {
                std::future::pending::<()>().await;
            }
            if count == 0 || caught.is_some() || client_writes.write_all(said).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = back => {}
        _ = tokio::io::copy(&mut client_reads, &mut server_writes) => {}
    }
}

async fn open(database: &Database, proxy: &Proxy) -> EventLog {
    let url = proxy.url(database);
    EventLog::open_database_with(&url, Options::default())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn el_7_a_commit_whose_answer_is_lost_is_found_and_not_repeated() {
    let database = Database::new().await;
    let proxy = Proxy::new(&database);
    let log = open(&database, &proxy).await;
    append_some(&log, &session("s"), 1).await;
    for (n, patience) in [(1, Patience::None), (2, Patience::Kept)] {
        proxy.set_trap(b"COMMIT\0");
        let appended = log
            .store()
            .append(session("s"), action(json!({ "n": n })), patience);
        let Appended::New(record) = appended.await.unwrap() else {
            panic!("it was not there before")
        };
        assert_eq!(record.sequence, n);
        assert!(proxy.has_caught_all());
        assert_eq!(read_all(&log, &session("s")).await.last(), Some(&record));
    }
    // Of a session that the lost commit made.
    proxy.set_trap(b"COMMIT\0");
    append(&log, &session("new"), action(json!({}))).await;
    expect_sound(&log, &session("s"), 3).await;
    expect_sound(&log, &session("new"), 1).await;
    log.store().close().await.unwrap();
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn el_3_what_was_not_committed_is_refused_or_written_once() {
    let database = Database::new().await;
    let proxy = Proxy::new(&database);
    let log = open(&database, &proxy).await;
    append_some(&log, &session("s"), 1).await;
    proxy.set_trap(b"INSERT 0 1\0");
    let error = try_append(&log, &session("s"), action(json!({})))
        .await
        .unwrap_err();
    assert!(matches!(error, LogError::Unavailable { .. }), "{error}");
    proxy.set_trap(b"INSERT 0 1\0");
    let entry = observation(0, json!({ "content": "kept" }));
    let kept = log.store().append(session("s"), entry, Patience::Kept);
    let Appended::New(kept) = kept.await.unwrap() else {
        panic!("it was not there before")
    };
    // The note of the trouble comes last.
    let mut health = log.store().health();
    health
        .wait_for(|health| *health == Health::Durable)
        .await
        .unwrap();
    let records = read_all(&log, &session("s")).await;
    let same = |record: &&Arc<_>| **record == kept;
    assert_eq!(records.iter().filter(same).count(), 1);
    expect_sound(&log, &session("s"), records.len() as u64).await;
    log.store().close().await.unwrap();
    database.remove().await;
}

/// The question what became of an entry gets no answer for as long as a write may take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn el_7_a_commit_stays_in_doubt_while_the_database_does_not_answer() {
    let database = Database::new().await;
    let proxy = Proxy::new(&database);
    let log = open(&database, &proxy).await;
    append_some(&log, &session("s"), 1).await;
    proxy.set_traps([
        (&b"COMMIT\0"[..], Then::Breaks),
        // What the search for the entry begins with.
        (&b"BEGIN\0"[..], Then::IsSilent),
    ]);
    let entry = action(json!({ "n": 1 }));
    let appended = log.store().append(session("s"), entry, Patience::None);
    let Appended::New(record) = appended.await.unwrap() else {
        panic!("it was not there before")
    };
    assert!(proxy.has_caught_all());
    let records = read_all(&log, &session("s")).await;
    assert_eq!((records.len(), records.last()), (2, Some(&record)));
    append(&log, &session("s"), action(json!({ "n": 2 }))).await;
    expect_sound(&log, &session("s"), 3).await;
    log.store().close().await.unwrap();
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn el_7_a_document_whose_commit_was_lost_is_found_and_can_be_put_again() {
    let database = Database::new().await;
    let proxy = Proxy::new(&database);
    let log = open(&database, &proxy).await;
    let store = log.store();
    let expectations = [Expected::Absent, Expected::Version(1), Expected::Anything];
    for (version, expected) in (1..).zip(expectations) {
        proxy.set_trap(b"COMMIT\0");
        let value = json!({ "n": version });
        let put = store.put(document("a"), value.clone(), expected).await;
        let name = document("a");
        let written = Document {
            name,
            version,
            value,
        };
        assert_eq!(put.unwrap(), written);
        assert!(proxy.has_caught_all());
        let found = store.get(document("a")).await.unwrap();
        assert_eq!(found, Some(written));
    }
    // What was not committed is not taken for written.
    proxy.set_trap(b"UPDATE 1\0");
    let lost = store.put(document("a"), json!({ "n": 4 }), Expected::Version(3));
    let error = lost.await.unwrap_err();
    assert!(matches!(error, LogError::Unavailable { .. }), "{error}");
    let again = store.put(document("a"), json!({ "n": 4 }), Expected::Version(3));
    assert_eq!(again.await.unwrap().version, 4);
    store.close().await.unwrap();
    database.remove().await;
}
