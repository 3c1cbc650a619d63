//! Logs as files.

use serde_json::{Value, json};
use zareba_eventlog::{EntryKind, EventLog, LogError};
use zareba_protocol::SessionId;

use crate::support::*;

async fn exported(log: &EventLog, session: &SessionId) -> String {
    let mut lines = Vec::new();
    log.export(session, &mut lines).await.unwrap();
    String::from_utf8(lines).unwrap()
}

/// A session with records of all sorts.
async fn some_session(log: &EventLog) -> SessionId {
    let session = session("s");
    append(
        log,
        &session,
        keyed("k", json!({ "action": "run", "x": 0.1 })),
    )
    .await;
    append(
        log,
        &session,
        observation(0, json!({ "observation": "run" })),
    )
    .await;
    append(
        log,
        &session,
        entry(EntryKind::Note, None, json!({ "note": "n" })),
    )
    .await;
    let long = "x".repeat(400 * 1024);
    append(
        log,
        &session,
        action(json!({ "action": "run", "text": long })),
    )
    .await;
    let longer = "y".repeat(2 * 1024 * 1024);
    let entry = observation(3, json!({ "observation": "run", "content": longer }));
    append(log, &session, entry).await;
    session
}

pub(crate) async fn an_exported_log_can_be_read_in_again(log: &EventLog) {
    let session = some_session(log).await;
    let records = read_all(log, &session).await;
    let lines = exported(log, &session).await;
    let count = lines
        .lines()
        .filter(|line| line.starts_with("{\"record\""))
        .count();
    assert_eq!(count, 5);
    log.store().remove(session.clone()).await.unwrap();
    let imports = log.import(&mut lines.as_bytes()).await.unwrap();
    assert_eq!(imports.records, 5);
    assert_eq!(imports.sessions, [session.clone()].into());
    assert_eq!(read_all(log, &session).await, records);
    expect_sound(log, &session, 5).await;
    assert_eq!(exported(log, &session).await, lines);
    let next = append(log, &session, action(json!({}))).await;
    assert_eq!(next.previous, records[4].digest);
}

pub(crate) async fn el_1_an_import_that_does_not_fit_is_refused(log: &EventLog) {
    let session = some_session(log).await;
    let lines = exported(log, &session).await;
    log.store().remove(session.clone()).await.unwrap();
    let refused = async |text: &str, line: u64, why: &str| {
        match log.import(&mut text.as_bytes()).await {
            Err(LogError::Import { line: at, reason }) => {
                assert_eq!(at, line, "{reason}");
                assert!(reason.contains(why), "{reason}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(log.store().sessions().await.unwrap(), [], "{why}");
    };
    refused("no JSON", 1, "no line of an export").await;
    refused(
        &lines.replacen("0.1", "0.2", 1),
        1,
        "its digest does not fit",
    )
    .await;
    refused(
        &lines.replacen("\"note\":\"n\"", "\"note\":\"m\"", 1),
        3,
        "digest",
    )
    .await;
    refused(
        &lines.replacen("eHh4", "eHh5", 1),
        4,
        "do not fit its digest",
    )
    .await;
    let without: Vec<&str> = lines.lines().skip(1).collect();
    refused(&without.join("\n"), 1, "0 comes next").await;
    let without: Vec<&str> = (lines.lines())
        .filter(|line| !line.starts_with("{\"blob\""))
        .collect();
    refused(&without.join("\n"), 4, "in front of it").await;
    refused(&lines[..lines.len() - 9], 7, "no line").await;
    log.import(&mut lines.as_bytes()).await.unwrap();
    let again = log.import(&mut lines.as_bytes()).await.unwrap_err();
    assert!(matches!(again, LogError::Import { line: 1, .. }), "{again}");
    expect_sound(log, &session, 5).await;
}

pub(crate) async fn openhands_finds_its_event_files(log: &EventLog) {
    let session = some_session(log).await;
    let directory = tempfile::tempdir().unwrap();
    let count = log
        .export_openhands(&session, directory.path())
        .await
        .unwrap();
    assert_eq!(count, 4);
    let file = |number: u64| -> Value {
        let path = directory.path().join(format!("events/{number}.json"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let action = file(0);
    assert_eq!(action["id"], 0);
    assert_eq!(action["source"], "agent");
    assert_eq!(action["action"], "run");
    assert_eq!(action.get("cause"), None);
    let time = action["timestamp"].as_str().unwrap();
    let is_theirs = time.len() == 26 && time.parse::<jiff::civil::DateTime>().is_ok();
    assert!(is_theirs, "{time}");
    let observation = file(4);
    assert_eq!(observation["source"], "environment");
    assert_eq!(observation["cause"], 3);
    assert_eq!(observation["content"], "y".repeat(2 * 1024 * 1024));
    assert!(!directory.path().join("events/2.json").exists());
}
