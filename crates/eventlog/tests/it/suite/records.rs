//! Single records and what is asked about them.

use serde_json::json;
use zareba_eventlog::{Appended, Digest, EntryKind, EventLog, LogError, Patience};

use crate::support::*;

pub(crate) async fn a_record_comes_back_as_it_was_written(log: &EventLog) {
    let session = session("s");
    let mut entry = keyed(
        "k-1",
        json!({ "action": "run", "args": { "command": "ls" } }),
    );
    entry.cause = Some(41);
    let record = append(log, &session, entry.clone()).await;
    assert_eq!(record.session, session);
    assert_eq!(record.sequence, 0);
    assert_eq!(record.kind, entry.kind);
    assert_eq!(record.cause, entry.cause);
    assert_eq!(record.key, entry.key);
    assert_eq!(record.payload, entry.payload);
    let age = jiff::Timestamp::now().duration_since(record.time);
    assert!(age.as_secs().abs() < 60, "{age:?}");

    assert_eq!(read_all(log, &session).await, std::slice::from_ref(&record));
    let store = log.store();
    let found = store.by_key(session.clone(), key("k-1")).await.unwrap();
    assert_eq!(found, Some(record));
    assert_eq!(store.by_key(session, key("k-2")).await.unwrap(), None);
}

pub(crate) async fn el_1_each_record_names_the_one_before_it(log: &EventLog) {
    let session = session("s");
    append_some(log, &session, 5).await;
    let mut previous = Digest::of(b"s");
    for (n, record) in read_all(log, &session).await.iter().enumerate() {
        assert_eq!(record.sequence, n as u64);
        assert_eq!(record.previous, previous);
        previous = record.digest;
    }
    let verified = log.verify(&session).await.unwrap();
    assert!(verified.is_sound(), "{verified:?}");
    assert_eq!((verified.records, verified.last), (5, previous));
    let nobody = crate::support::session("nobody");
    assert_eq!(
        log.verify(&nobody).await.unwrap().last,
        Digest::of(b"nobody")
    );
}

pub(crate) async fn answers_and_unanswered_actions_are_found(log: &EventLog) {
    let session = session("s");
    append_some(log, &session, 3).await;
    let answer = append(log, &session, observation(1, json!({ "content": "x" }))).await;
    let status = entry(EntryKind::Status, Some(2), json!({ "status": "paused" }));
    append(log, &session, status).await;
    let store = log.store();
    let found = store.answer(session.clone(), 1).await.unwrap();
    assert_eq!(found, Some(answer));
    assert_eq!(store.answer(session.clone(), 2).await.unwrap(), None);
    assert_eq!(store.unanswered(session).await.unwrap(), [0, 2]);
}

pub(crate) async fn a_removed_session_is_gone_and_its_name_is_free(log: &EventLog) {
    let (gone, stays) = (session("gone"), session("stays"));
    append_some(log, &gone, 3).await;
    append_some(log, &stays, 2).await;
    let store = log.store();
    assert_eq!(
        store.sessions().await.unwrap(),
        [gone.clone(), stays.clone()]
    );
    store.remove(gone.clone()).await.unwrap();
    store.remove(session("never-was")).await.unwrap();
    assert_eq!(
        store.sessions().await.unwrap(),
        std::slice::from_ref(&stays)
    );
    assert_eq!(read_all(log, &gone).await, []);
    let record = append(log, &gone, action(json!({}))).await;
    assert_eq!((record.sequence, record.previous), (0, Digest::of(b"gone")));
    expect_sound(log, &gone, 1).await;
    expect_sound(log, &stays, 2).await;
}

/// The suite's logs are opened with a quota of 8 MiB.
pub(crate) async fn el_8_a_quota_stops_actions_before_observations(log: &EventLog) {
    let (chatty, quiet) = (session("chatty"), session("quiet"));
    append(log, &quiet, action(json!({}))).await;
    let text = "x".repeat(200 * 1024);
    let mut written = 0;
    let error = loop {
        match try_append(log, &chatty, action(json!({ "n": written, "text": text }))).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(
            error,
            LogError::Quota {
                limit: 0x80_0000,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(written, 0x80_0000 / (200 * 1024));
    append(log, &chatty, observation(0, json!({ "text": text }))).await;
    append(log, &quiet, action(json!({ "text": text }))).await;
    let mut observed = 1;
    while try_append(log, &chatty, observation(observed, json!({ "text": text })))
        .await
        .is_ok()
    {
        observed += 1;
        assert!(observed < 10, "observations are bounded, too");
    }
    expect_sound(log, &chatty, written + observed).await;
    expect_sound(log, &quiet, 2).await;
}

pub(crate) async fn a_closed_log_refuses_everything(log: &EventLog) {
    let session = session("s");
    append(log, &session, action(json!({}))).await;
    let store = log.store();
    store.close().await.unwrap();
    for patience in [Patience::None, Patience::Kept] {
        let outcome = store
            .append(session.clone(), action(json!({})), patience)
            .await;
        assert!(matches!(outcome, Err(LogError::Closed)), "{outcome:?}");
    }
    let closed = |error: LogError| assert!(matches!(error, LogError::Closed), "{error}");
    closed(store.read(session.clone(), 0, 1).await.unwrap_err());
    closed(store.end(session.clone()).await.unwrap_err());
    closed(store.remove(session.clone()).await.unwrap_err());
    closed(store.get(document("d")).await.unwrap_err());
    closed(log.verify(&session).await.unwrap_err());
    closed(log.subscribe(session, 0).next().await.unwrap_err());
    closed(store.close().await.unwrap_err());
}

pub(crate) async fn strange_texts_come_back(log: &EventLog) {
    let session = session("s");
    let payload = json!({
        "": "empty key", "nul": "a\0b", "quote": "\"'\\", "unicode": "ä🦀\u{2028}",
        "number": -0.1, "large": u64::MAX, "$blob": "no reference", "nested": [[{}]],
    });
    let record = append(log, &session, action(payload.clone())).await;
    assert_eq!(record.written_payload(), object(payload));
    assert_eq!(read_all(log, &session).await, [record]);
    expect_sound(log, &session, 1).await;
}

pub(crate) async fn an_action_has_one_observation(log: &EventLog) {
    let session = session("s");
    let asked = append(log, &session, action(json!({}))).await;
    let answer = |n: u64| {
        try_append(
            log,
            &session,
            observation(asked.sequence, json!({ "n": n })),
        )
    };
    let answers = tokio::join!(answer(0), answer(1), answer(2), answer(3));
    let answers = [answers.0, answers.1, answers.2, answers.3];
    let mut first = None;
    for answer in answers {
        let record = match answer.unwrap() {
            Appended::New(record) => {
                assert!(first.is_none(), "two were written");
                record
            }
            Appended::Before(record) => record,
        };
        assert_eq!(*first.get_or_insert(record.clone()), record);
    }
    assert!(matches!(answer(9).await.unwrap(), Appended::Before(_)));
    expect_sound(log, &session, 2).await;
}
