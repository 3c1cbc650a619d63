//! Payloads that are too large for a record.

use serde_json::json;
use zareba_eventlog::{Digest, EventLog};

use crate::support::*;

const KIB: usize = 1024;

pub(crate) async fn el_10_payloads_of_every_size_come_back(log: &EventLog) {
    let session = session("s");
    for size in [0, 100 * KIB, 300 * KIB, 900 * KIB] {
        let payload = json!({ "text": "x".repeat(size) });
        let record = append(log, &session, action(payload.clone())).await;
        assert_eq!(record.payload, object(payload));
        let read = log.store().read(session.clone(), record.sequence, 1);
        assert_eq!(read.await.unwrap(), [record]);
    }
    let text = "y".repeat(3 * KIB * KIB);
    let record = append(log, &session, action(json!({ "kind": "x", "text": text }))).await;
    let digest = Digest::of(text.as_bytes());
    assert_eq!(record.payload["kind"], "x");
    assert_eq!(record.payload["text"]["$blob"], digest.to_string());
    assert_eq!(record.payload["text"]["bytes"], text.len());
    let read = log.store().read(session.clone(), record.sequence, 1);
    assert_eq!(read.await.unwrap(), [record]);
    let blob = log.store().blob(digest).await.unwrap();
    assert_eq!(blob.unwrap(), text);
    expect_sound(log, &session, 5).await;
}

pub(crate) async fn el_10_blobs_go_with_the_last_session_that_uses_them(log: &EventLog) {
    let (one, two) = (session("one"), session("two"));
    let text = "z".repeat(2 * KIB * KIB);
    let digest = Digest::of(text.as_bytes());
    for session in [&one, &two, &two] {
        append(log, session, action(json!({ "text": text }))).await;
    }
    let store = log.store();
    store.remove(one).await.unwrap();
    settle(log).await;
    assert!(store.blob(digest).await.unwrap().is_some());
    expect_sound(log, &two, 2).await;
    store.remove(two).await.unwrap();
    let gone = async {
        while store.blob(digest).await.unwrap().is_some() {
            settle(log).await;
        }
    };
    let limit = std::time::Duration::from_secs(20);
    tokio::time::timeout(limit, gone)
        .await
        .expect("the blob goes");
}

/// Lets the writer go round once more.
async fn settle(log: &EventLog) {
    log.store().delete(document("nothing")).await.unwrap();
}

pub(crate) async fn el_10_a_page_is_bounded_by_bytes(log: &EventLog) {
    let sessions = [session("one"), session("two")];
    for session in &sessions {
        for n in 0..9 {
            let payload = json!({ "n": n, "text": "x".repeat(800 * KIB) });
            append(log, session, action(payload)).await;
        }
    }
    let [one, _] = sessions;
    // 7.2 MB come in one page, but never without an end: the rest is there to be asked for.
    let page = log.store().read(one.clone(), 0, usize::MAX).await.unwrap();
    assert!((1..=11).contains(&page.len()), "{}", page.len());
    assert_eq!(read_all(log, &one).await.len(), 9);
}

pub(crate) async fn a_reference_cannot_be_forged(log: &EventLog) {
    let (rich, poor) = (session("rich"), session("poor"));
    let text = "y".repeat(3 * KIB * KIB);
    let real = append(log, &rich, action(json!({ "text": text }))).await;
    let reference = real.payload["text"].clone();
    assert!(reference.get("$blob").is_some());
    for filler in [0, 300 * KIB, 2 * KIB * KIB] {
        let asked = json!({ "metadata": [reference], "text": "x".repeat(filler) });
        let record = append(log, &poor, action(asked.clone())).await;
        let read = log.store().read(poor.clone(), record.sequence, 1);
        let read = read.await.unwrap();
        for forged in [&record, &read[0]] {
            let metadata = &forged.payload["metadata"][0];
            assert_eq!(metadata.get("$blob"), None);
            assert_eq!(metadata["$$blob"], reference["$blob"]);
            let written = &forged.written_payload()["metadata"];
            assert_eq!(*written, asked["metadata"]);
        }
    }
    expect_sound(log, &poor, 3).await;
}
