//! Short ways to say what tests say often.

use std::{path::Path, sync::Arc};

use serde_json::{Map, Value, json};
use zareba_eventlog::{
    Appended, DocumentName, Durability, Entry, EntryKind, EventLog, IdempotencyKey, LogError,
    Patience, Record,
};
use zareba_protocol::SessionId;

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn key(key: &str) -> IdempotencyKey {
    IdempotencyKey::new(key).unwrap()
}

pub(crate) fn document(name: &str) -> DocumentName {
    DocumentName {
        kind: "test",
        name: name.to_owned(),
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) fn action(payload: Value) -> Entry {
    entry(EntryKind::Action, None, payload)
}

pub(crate) fn observation(cause: u64, payload: Value) -> Entry {
    entry(EntryKind::Observation, Some(cause), payload)
}

pub(crate) fn entry(kind: EntryKind, cause: Option<u64>, payload: Value) -> Entry {
    Entry {
        kind,
        cause,
        key: None,
        payload: object(payload),
    }
}

pub(crate) fn keyed(name: &str, payload: Value) -> Entry {
    Entry {
        key: Some(key(name)),
        ..action(payload)
    }
}

/// Opens the log of a file, whose records outlive the process.
pub(crate) async fn open(path: &Path) -> EventLog {
    let opened = EventLog::open_file(path, Durability::Process).await;
    opened.unwrap()
}

/// The same for records that outlive the machine.
pub(crate) async fn open_synced(path: &Path) -> EventLog {
    let opened = EventLog::open_file(path, Durability::Disk).await;
    opened.unwrap()
}

/// Appends and expects that it is new.
pub(crate) async fn append(log: &EventLog, session: &SessionId, entry: Entry) -> Arc<Record> {
    match try_append(log, session, entry).await.unwrap() {
        Appended::New(record) => record,
        Appended::Before(record) => panic!("it was there before: {record:?}"),
    }
}

pub(crate) async fn try_append(
    log: &EventLog,
    session: &SessionId,
    entry: Entry,
) -> Result<Appended, LogError> {
    log.store()
        .append(session.clone(), entry, Patience::None)
        .await
}

/// Appends numbered actions.
pub(crate) async fn append_some(log: &EventLog, session: &SessionId, count: u64) {
    for n in 0..count {
        append(log, session, action(json!({ "n": n }))).await;
    }
}

/// All of a session's records, read page by page.
pub(crate) async fn read_all(log: &EventLog, session: &SessionId) -> Vec<Arc<Record>> {
    let mut records: Vec<Arc<Record>> = Vec::new();
    loop {
        let page = log.store().read(session.clone(), records.len() as u64, 100);
        let page = page.await.unwrap();
        if page.is_empty() {
            return records;
        }
        records.extend(page);
    }
}

/// Expects a whole log without gap or damage, of this many records.
pub(crate) async fn expect_sound(log: &EventLog, session: &SessionId, records: u64) {
    let verified = log.verify(session).await.unwrap();
    assert!(verified.is_sound(), "{verified:?}");
    assert_eq!(verified.records, records);
}
