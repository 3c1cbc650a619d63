//! Numbers and keys, with many writers at once.

use std::collections::HashSet;

use serde_json::json;
use zareba_eventlog::{Appended, EventLog};

use crate::support::*;

pub(crate) async fn el_7_numbers_have_no_gaps_with_64_writers(log: &EventLog) {
    let tasks: Vec<_> = (0..64)
        .map(|writer| {
            let log = log.clone();
            tokio::spawn(async move {
                append_some(&log, &session(&format!("s-{writer}")), 20).await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(log.store().sessions().await.unwrap().len(), 64);
    for writer in 0..64 {
        let session = session(&format!("s-{writer}"));
        let told = read_all(log, &session).await;
        let told: Vec<_> = told.iter().map(|record| &record.payload["n"]).collect();
        assert_eq!(told, (0..20).collect::<Vec<_>>());
        expect_sound(log, &session, 20).await;
    }
}

pub(crate) async fn el_7_many_writers_of_one_session_share_one_chain(log: &EventLog) {
    let tasks: Vec<_> = (0..64)
        .map(|writer| {
            let log = log.clone();
            tokio::spawn(async move {
                let mut numbers = Vec::new();
                for n in 0..10 {
                    let entry = action(json!({ "writer": writer, "n": n }));
                    numbers.push(append(&log, &session("s"), entry).await.sequence);
                }
                assert!(numbers.is_sorted(), "one after the other: {numbers:?}");
                numbers
            })
        })
        .collect();
    let mut numbers = HashSet::new();
    for task in tasks {
        numbers.extend(task.await.unwrap());
    }
    assert_eq!(numbers, (0..640).collect());
    expect_sound(log, &session("s"), 640).await;
}

pub(crate) async fn el_7_an_entry_with_a_known_key_is_not_written_again(log: &EventLog) {
    let (one, two) = (session("one"), session("two"));
    let first = append(log, &one, keyed("k", json!({ "n": 1 }))).await;
    let again = try_append(log, &one, keyed("k", json!({ "n": 2 })))
        .await
        .unwrap();
    assert_eq!(again, Appended::Before(first));
    append(log, &two, keyed("k", json!({ "n": 3 }))).await;
    append(log, &one, keyed("l", json!({ "n": 4 }))).await;
    expect_sound(log, &one, 2).await;
    expect_sound(log, &two, 1).await;
}

pub(crate) async fn el_7_of_equal_keys_at_once_one_is_written(log: &EventLog) {
    let tasks: Vec<_> = (0..64)
        .map(|n| {
            let log = log.clone();
            tokio::spawn(async move {
                let entry = keyed(&format!("k-{}", n % 4), json!({ "n": n }));
                try_append(&log, &session("s"), entry).await.unwrap()
            })
        })
        .collect();
    let mut written = Vec::new();
    let mut before = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            Appended::New(record) => written.push(record),
            Appended::Before(record) => before.push(record),
        }
    }
    assert_eq!((written.len(), before.len()), (4, 60));
    assert!(before.iter().all(|record| written.contains(record)));
    expect_sound(log, &session("s"), 4).await;
}
