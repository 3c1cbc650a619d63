//! Entries that are written by whoever has them, around the queue.

use std::{
    path::Path,
    pin::pin,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::json;
use zareba_eventlog::{Appended, Durability, EventLog, Expected};

use crate::support::*;

async fn open(path: &Path) -> EventLog {
    let opened = EventLog::open_file(path, Durability::Process).await;
    opened.unwrap()
}

fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn an_entry_that_is_alone_is_written_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(&directory.path().join("events.db")).await;
    let session = session("s");
    let mut at_once = 0;
    for n in 0..100 {
        // One that is not is written all the same, and the next waits for it.
        let appended = poll_once(try_append(&log, &session, action(json!({ "n": n }))));
        match appended {
            Poll::Ready(appended) => {
                assert!(matches!(appended, Ok(Appended::New(_))), "{appended:?}");
                at_once += 1;
            }
            Poll::Pending => log
                .store()
                .put(document("d"), json!(n), Expected::Anything)
                .await
                .map(drop)
                .unwrap(),
        }
    }
    assert!(at_once > 0);
    log.store().close().await.unwrap();
    let log = open(&directory.path().join("events.db")).await;
    expect_sound(&log, &session, 100).await;
    log.store().close().await.unwrap();
}

#[tokio::test]
async fn nobody_waits_on_their_own_thread_for_another_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let log = open(&path).await;
    let session = session("s");
    append(&log, &session, action(json!({ "n": 0 }))).await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut append = pin!(try_append(&log, &session, action(json!({ "n": 1 }))));
    let started = Instant::now();
    let polled = append
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    assert!(started.elapsed() < Duration::from_secs(1));
    other.execute_batch("COMMIT").unwrap();
    assert!(matches!(append.await, Ok(Appended::New(_))));
    expect_sound(&log, &session, 2).await;
    log.store().close().await.unwrap();
}

#[tokio::test]
async fn the_journal_is_folded_in_however_entries_were_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let log = open(&path).await;
    let session = session("s");
    // Half as long as what is written at once, so that it is several journals in all.
    let text = "x".repeat(8 * 1024);
    for _ in 0..4000 {
        append(&log, &session, action(json!({ "text": text }))).await;
    }
    let journal = std::fs::metadata(directory.path().join("events.db-wal"));
    let bytes = journal.unwrap().len();
    assert!(bytes < 32 * 1024 * 1024, "{bytes}");
    log.store().close().await.unwrap();
}
