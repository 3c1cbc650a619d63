//! Small named values.

use serde_json::json;
use zareba_eventlog::{EventLog, Expected, LogError, Selection};

use crate::support::*;

pub(crate) async fn a_document_is_written_only_as_expected(log: &EventLog) {
    let store = log.store();
    let conflict = |error: LogError| match error {
        LogError::Conflict { name } => assert_eq!(name, document("a")),
        other => panic!("{other}"),
    };
    let put = |value, expected| store.put(document("a"), value, expected);
    assert_eq!(store.get(document("a")).await.unwrap(), None);
    conflict(put(json!(0), Expected::Version(1)).await.unwrap_err());
    let first = put(json!({ "n": 1 }), Expected::Absent).await.unwrap();
    assert_eq!((first.version, &first.value), (1, &json!({ "n": 1 })));
    conflict(put(json!(0), Expected::Absent).await.unwrap_err());
    conflict(put(json!(0), Expected::Version(2)).await.unwrap_err());
    assert_eq!(store.get(document("a")).await.unwrap(), Some(first));
    let second = put(json!([2]), Expected::Version(1)).await.unwrap();
    assert_eq!(second.version, 2);
    let third = put(json!(null), Expected::Anything).await.unwrap();
    assert_eq!(third.version, 3);

    let other = store.put(document("b"), json!("b"), Expected::Anything);
    let other = other.await.unwrap();
    assert_eq!(store.list("test").await.unwrap(), [third, other.clone()]);
    assert_eq!(store.list("another kind").await.unwrap(), []);
    store.delete(document("a")).await.unwrap();
    store.delete(document("a")).await.unwrap();
    assert_eq!(store.list("test").await.unwrap(), [other]);
}

pub(crate) async fn a_document_has_a_limit(log: &EventLog) {
    let store = log.store();
    let at = json!("x".repeat(1024 * 1024 - 2));
    let past = json!("x".repeat(1024 * 1024 - 1));
    store
        .put(document("a"), at.clone(), Expected::Anything)
        .await
        .unwrap();
    let error = store
        .put(document("a"), past, Expected::Anything)
        .await
        .unwrap_err();
    assert!(matches!(error, LogError::TooLarge { .. }), "{error}");
    assert_eq!(store.get(document("a")).await.unwrap().unwrap().value, at);
}

pub(crate) async fn of_many_writers_with_the_same_expectation_one_wins(log: &EventLog) {
    let tasks: Vec<_> = (0..32)
        .map(|n| {
            let log = log.clone();
            tokio::spawn(async move {
                log.store()
                    .put(document("a"), json!(n), Expected::Absent)
                    .await
            })
        })
        .collect();
    let mut won = Vec::new();
    for task in tasks {
        won.extend(task.await.unwrap());
    }
    assert_eq!(won.len(), 1);
    let found = log.store().get(document("a")).await.unwrap();
    assert_eq!(found, won.pop());
}

pub(crate) async fn documents_are_chosen_by_a_text_and_come_in_pages(log: &EventLog) {
    let store = log.store();
    for (name, value) in [
        ("a", json!({ "owner": "x", "note": "a\0b\\u0000" })),
        ("B", json!({ "owner": "y" })),
        ("c", json!({ "owner": "x" })),
        ("d", json!({ "owner": 7 })),
        ("e", json!({ "removed": true })),
        ("f", json!({ "owner": "x" })),
    ] {
        let put = store.put(document(name), value, Expected::Absent);
        put.await.unwrap();
    }
    let names = async |text: Option<&str>, after: Option<&str>, limit: usize| {
        let selection = Selection {
            kind: "test",
            field: "owner",
            text: text.map(str::to_owned),
            after: after.map(str::to_owned),
            limit,
        };
        let found = store.select(selection).await.unwrap();
        let names = found.into_iter().map(|document| document.name.name);
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(None, None, 10).await, "B a c f");
    assert_eq!(names(Some("x"), None, 10).await, "a c f");
    assert_eq!(names(Some("x"), Some("a"), 1).await, "c");
    assert_eq!(names(Some("x"), Some("f"), 1).await, "");
    assert_eq!(names(Some("z"), None, 1).await, "");
}
