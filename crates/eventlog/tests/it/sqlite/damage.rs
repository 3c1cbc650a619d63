//! Records that are not what was written.

use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use zareba_eventlog::{EventLog, LogError};

use crate::support::*;

/// A closed log with ten records, changed by hand.
async fn meddled(statements: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let log = open(&path).await;
    append_some(&log, &session("s"), 10).await;
    log.store().close().await.unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(statements).unwrap();
    (directory, path)
}

async fn damaged(log: &EventLog) -> Vec<u64> {
    let verified = log.verify(&session("s")).await.unwrap();
    verified
        .damage
        .iter()
        .map(|damage| damage.sequence)
        .collect()
}

#[tokio::test]
async fn el_5_a_bad_record_in_the_middle_does_not_hide_later_ones() {
    let (_directory, path) = meddled(
        "UPDATE events SET payload = '{\"n\":99}' WHERE sequence = 3;
        DELETE FROM events WHERE sequence = 5;
        UPDATE events SET payload = CAST(x'ff00' AS TEXT) WHERE sequence = 7;",
    )
    .await;
    let log = open(&path).await;
    assert_eq!(damaged(&log).await, [3, 5, 7]);

    let mut seen = Vec::new();
    let mut errors = Vec::new();
    let mut subscription = log.subscribe(session("s"), 0);
    while subscription.cursor() < 10 {
        match subscription.next().await {
            Ok(record) => seen.push(record.sequence),
            Err(LogError::Damaged { sequence, .. }) => errors.push(sequence),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((seen, errors), (vec![0, 1, 2, 4, 6, 8, 9], vec![3, 5, 7]));
    let error = log.store().read(session("s"), 3, 5).await.unwrap_err();
    assert!(
        matches!(error, LogError::Damaged { sequence: 3, .. }),
        "{error}"
    );
    log.store().close().await.unwrap();
}

#[tokio::test]
async fn el_1_a_record_that_was_made_again_with_its_digest_breaks_the_chain() {
    let (_directory, path) = meddled("").await;
    let log = open(&path).await;
    let connection = Connection::open(&path).unwrap();
    // A forger who knows how digests are made changes a record and its digest, but not the next.
    let other = session("other");
    append(&log, &other, action(json!({ "n": 99 }))).await;
    let copy = "UPDATE events SET (payload, digest, previous, time) =
        (SELECT payload, digest, previous, time FROM events WHERE session <> s.id)
        FROM sessions AS s WHERE s.name = 's' AND session = s.id AND sequence = 4";
    connection.execute_batch(copy).unwrap();
    assert_eq!(damaged(&log).await, [4]);
    let gone = "DELETE FROM events WHERE sequence = 9";
    connection.execute_batch(gone).unwrap();
    assert_eq!(damaged(&log).await, [4, 9], "a missing end is found, too");
    log.store().close().await.unwrap();
}

#[tokio::test]
async fn el_5_a_torn_end_is_cut_and_kept_aside() {
    let (_directory, path) = meddled(
        "UPDATE events SET payload = char(0, 0, 0) WHERE sequence >= 8;
        UPDATE meta SET value = 0 WHERE name = 'closed';",
    )
    .await;
    let log = open(&path).await;
    assert_eq!((log.recovery().checked, log.recovery().cut), (1, 2));
    assert_eq!(log.recovery().damage, []);
    let record = append(&log, &session("s"), action(json!({ "n": "new" }))).await;
    assert_eq!(record.sequence, 8);
    expect_sound(&log, &session("s"), 9).await;
    let connection = Connection::open(&path).unwrap();
    let count = "SELECT count(*) FROM torn WHERE session = 's' AND sequence IN (8, 9)";
    let torn: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(torn, 2);
    log.store().close().await.unwrap();
}

#[tokio::test]
async fn el_5_damage_before_good_records_is_told_and_nothing_is_cut() {
    let (_directory, path) = meddled(
        "UPDATE events SET kind = 'note' WHERE sequence = 6;
        UPDATE meta SET value = 0 WHERE name = 'closed';",
    )
    .await;
    let log = open(&path).await;
    assert_eq!(log.recovery().cut, 0);
    let found: Vec<u64> = (log.recovery().damage.iter())
        .map(|damage| damage.sequence)
        .collect();
    assert_eq!(found, [6]);
    let record = append(&log, &session("s"), action(json!({}))).await;
    assert_eq!(record.sequence, 10);
    log.store().close().await.unwrap();
}

#[tokio::test]
async fn a_log_that_was_closed_in_order_is_not_looked_at() {
    let (_directory, path) = meddled("").await;
    let log = open(&path).await;
    assert_eq!(log.recovery().checked, 0);
    log.store().close().await.unwrap();
}
