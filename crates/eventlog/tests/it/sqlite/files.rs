//! The file: who may read and write it.

use std::{os::unix::fs::PermissionsExt, path::Path};

use rusqlite::Connection;
use serde_json::json;
use zareba_eventlog::{Durability, EventLog, LogError};

use crate::support::*;

#[tokio::test]
async fn el_9_only_the_owner_can_read_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/state/events.db");
    let log = open(&path).await;
    append(&log, &session("s"), action(json!({}))).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for file in path.parent().unwrap().read_dir().unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    log.store().close().await.unwrap();
}

#[tokio::test]
async fn el_6_a_second_opener_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let log = open(&path).await;
    let error = EventLog::open_file(&path, Durability::Process)
        .await
        .unwrap_err();
    assert!(matches!(error, LogError::InUse { .. }), "{error}");
    append(&log, &session("s"), action(json!({}))).await;
    log.store().close().await.unwrap();
    let log = open(&path).await;
    expect_sound(&log, &session("s"), 1).await;
    log.store().close().await.unwrap();
}

#[tokio::test]
async fn el_6_whoever_was_replaced_against_the_lock_writes_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let old = open(&path).await;
    append(&old, &session("s"), action(json!({}))).await;
    std::fs::remove_file(directory.path().join("events.db.lock")).unwrap();
    let new = open(&path).await;
    let error = try_append(&old, &session("s"), action(json!({})))
        .await
        .unwrap_err();
    assert!(matches!(error, LogError::Io { .. }), "{error}");
    append(&new, &session("s"), action(json!({}))).await;
    expect_sound(&new, &session("s"), 2).await;
    new.store().close().await.unwrap();
    drop(old);
}

#[tokio::test]
async fn a_reader_sees_what_a_writer_writes_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let error = EventLog::open_file_to_read(&path).await.unwrap_err();
    assert!(matches!(error, LogError::Open { .. }), "{error}");
    assert!(!path.exists());
    let log = open(&path).await;
    let reader = EventLog::open_file_to_read(&path).await.unwrap();
    append_some(&log, &session("s"), 3).await;
    assert_eq!(read_all(&reader, &session("s")).await.len(), 3);
    expect_sound(&reader, &session("s"), 3).await;
    let error = try_append(&reader, &session("s"), action(json!({})))
        .await
        .unwrap_err();
    assert!(matches!(error, LogError::ReadOnly), "{error}");
    append_some(&log, &session("s"), 2).await;
    assert_eq!(read_all(&reader, &session("s")).await.len(), 5);
    log.store().close().await.unwrap();
    expect_sound(&reader, &session("s"), 5).await;
    reader.store().close().await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_log_is_refused_with_a_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    std::fs::write(&path, [0x5a; 8192]).unwrap();
    let error = EventLog::open_file(&path, Durability::Process)
        .await
        .unwrap_err();
    let LogError::Open { source, .. } = error else {
        panic!("{error}")
    };
    assert!(source.to_string().contains("aside"), "{source}");
    assert_eq!(std::fs::read(&path).unwrap(), [0x5a; 8192]);
}

#[tokio::test]
async fn a_later_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    open(&path).await.store().close().await.unwrap();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute("UPDATE meta SET value = 2 WHERE name = 'version'", [])
        .unwrap();
    drop(connection);
    let error = EventLog::open_file(&path, Durability::Process)
        .await
        .unwrap_err();
    let LogError::Open { source, .. } = error else {
        panic!("{error}")
    };
    assert!(source.to_string().contains("newer program"), "{source}");
}
