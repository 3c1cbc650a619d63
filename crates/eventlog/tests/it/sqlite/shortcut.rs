//! Entries that are written by whoever has them, around the queue.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::json;
use zareba_eventlog::{Appended, EventLog, Expected};

use crate::support::*;

fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Appends a hundred entries one after the other, and returns how many were written when they
/// were first asked about.
async fn append_alone(log: &EventLog) -> usize {
    let session = session("s");
    let mut at_once = 0;
    for n in 0..100 {
        // One that is not is written all the same, and the next waits for it.
        let appended = poll_once(try_append(log, &session, action(json!({ "n": n }))));
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
    log.store().close().await.unwrap();
    at_once
}

#[tokio::test]
async fn an_entry_that_is_alone_is_written_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    assert!(append_alone(&open(&path).await).await > 0);
    let log = open(&path).await;
    expect_sound(&log, &session("s"), 100).await;
    log.store().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_is_alone_is_synced_at_once_where_nobody_else_has_to_wait() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    assert!(append_alone(&open_synced(&path).await).await > 0);
    let log = open_synced(&path).await;
    expect_sound(&log, &session("s"), 100).await;
    log.store().close().await.unwrap();
}

#[tokio::test]
async fn a_sync_is_left_to_the_log_where_others_would_have_to_wait() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    assert_eq!(append_alone(&open_synced(&path).await).await, 0);
    let log = open_synced(&path).await;
    expect_sound(&log, &session("s"), 100).await;
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
