//! The journal beside the file, and how it is folded in.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::json;
use zareba_eventlog::{EventLog, Expected};

use crate::support::*;

const MIB: u64 = 1024 * 1024;

fn journal(path: &Path) -> PathBuf {
    path.with_file_name("events.db-wal")
}

fn journal_bytes(path: &Path) -> u64 {
    std::fs::metadata(journal(path)).unwrap().len()
}

/// How often the journal was begun anew since the file was opened first: it says so itself.
fn beginnings(path: &Path) -> u32 {
    let bytes = std::fs::read(journal(path)).unwrap();
    u32::from_be_bytes(bytes[12..16].try_into().unwrap())
}

/// How often it was folded in.
fn folds(path: &Path) -> u32 {
    let connection = Connection::open(path).unwrap();
    let count = "SELECT coalesce(sum(value), 0) FROM meta WHERE name = 'folds'";
    connection.query_row(count, [], |row| row.get(0)).unwrap()
}

/// Waits until all that is due behind what was written is done: the queue does it in order.
async fn settle(log: &EventLog) {
    for _ in 0..2 {
        let put = log
            .store()
            .put(document("d"), json!({}), Expected::Anything);
        put.await.unwrap();
    }
}

#[tokio::test]
async fn it_is_folded_in_however_entries_were_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let log = open(&path).await;
    let session = session("s");
    // Half as long as what is written at once, so that it is several journals in all.
    let text = "x".repeat(8 * 1024);
    for _ in 0..4000 {
        append(&log, &session, action(json!({ "text": text }))).await;
    }
    let bytes = journal_bytes(&path);
    assert!(bytes < 32 * MIB, "{bytes}");
    log.store().close().await.unwrap();
}

/// Whoever writes first into one that was folded in waits for the disk; that is no caller.
#[tokio::test]
async fn whoever_folds_it_in_begins_it_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let log = open(&path).await;
    let session = session("s");
    let before = beginnings(&path);
    let text = "x".repeat(8 * 1024);
    let mut count = 0;
    while folds(&path) == 0 {
        for _ in 0..100 {
            append(&log, &session, action(json!({ "text": text }))).await;
        }
        count += 100;
        assert!(count < 4000, "it is never folded in");
        settle(&log).await;
    }
    // One that was begun anew has been since it was folded in, and not by the next record.
    assert_eq!(beginnings(&path), before + folds(&path));
    let record = append(&log, &session, action(json!({ "n": count }))).await;
    assert_eq!(record.sequence, count);
    assert_eq!(beginnings(&path), before + 1);
    expect_sound(&log, &session, count + 1).await;
    log.store().close().await.unwrap();
    let log = open(&path).await;
    expect_sound(&log, &session, count + 1).await;
    log.store().close().await.unwrap();
}
