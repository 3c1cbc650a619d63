//! Several servers on one database, and a database that goes away.

use std::time::Duration;

use serde_json::json;
use zareba_eventlog::{Appended, Digest, Durability, EventLog, Health, LogError, Patience};

use super::Database;
use crate::support::*;

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn el_7_two_servers_share_one_chain_without_gaps() {
    let database = Database::new().await;
    let servers = [
        database.open(Durability::Process).await,
        database.open(Durability::Disk).await,
    ];
    let writers: Vec<_> = (0..32)
        .map(|n| {
            let log = servers[n % 2].clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    append_some(&log, &session(&format!("s-{}", n % 5)), 1).await;
                    append_some(&log, &session("shared"), 1).await;
                }
            })
        })
        .collect();
    let mut subscription = servers[1].subscribe(session("shared"), 0);
    for n in 0..320 {
        let record = tokio::time::timeout(LIMIT, subscription.next()).await;
        assert_eq!(record.expect("no record").unwrap().sequence, n);
    }
    for writer in writers {
        writer.await.unwrap();
    }
    expect_sound(&servers[0], &session("shared"), 320).await;
    let counts: u64 = servers[1]
        .usage()
        .await
        .unwrap()
        .iter()
        .map(|u| u.records)
        .sum();
    assert_eq!(counts, 640);
    for log in servers {
        log.store().close().await.unwrap();
    }
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn el_7_equal_keys_on_two_servers_are_one_record() {
    let database = Database::new().await;
    let servers = [
        database.open(Durability::Process).await,
        database.open(Durability::Process).await,
    ];
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let log = servers[n % 2].clone();
            tokio::spawn(async move {
                try_append(&log, &session("s"), keyed("k", json!({ "n": n })))
                    .await
                    .unwrap()
            })
        })
        .collect();
    let mut new = 0;
    for task in tasks {
        new += u32::from(matches!(task.await.unwrap(), Appended::New(_)));
    }
    assert_eq!(new, 1);
    expect_sound(&servers[0], &session("s"), 1).await;
    for log in servers {
        log.store().close().await.unwrap();
    }
    database.remove().await;
}

/// Ends all connections of a database, as a restart does.
async fn cut_all(database: &Database) {
    let cut = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'",
        database.name
    );
    database.tell_server(&cut).await;
}

async fn wait_for(log: &EventLog, is_right: impl FnMut(&Health) -> bool) {
    let mut health = log.store().health();
    let wait = health.wait_for(is_right);
    tokio::time::timeout(LIMIT, wait)
        .await
        .expect("no change")
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn el_3_while_the_database_is_away_observations_wait_and_actions_are_refused() {
    let database = Database::new().await;
    let log = database.open(Durability::Process).await;
    let mut subscription = log.subscribe(session("s"), 0);
    append_some(&log, &session("s"), 2).await;
    for _ in 0..2 {
        subscription.next().await.unwrap();
    }

    let name = &database.name;
    let shut = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false");
    database.tell_server(&shut).await;
    cut_all(&database).await;
    let kept = log.clone();
    let kept = tokio::spawn(async move {
        let entry = observation(0, json!({ "content": "kept" }));
        kept.store()
            .append(session("s"), entry, Patience::Kept)
            .await
    });
    wait_for(&log, |health| {
        matches!(health, Health::NotDurable { waiting: 1, .. })
    })
    .await;
    let error = try_append(&log, &session("s"), action(json!({})))
        .await
        .unwrap_err();
    assert!(matches!(error, LogError::Unavailable { .. }), "{error}");
    let error = log.store().read(session("s"), 0, 1).await.unwrap_err();
    assert!(
        matches!(error, LogError::Unavailable { .. } | LogError::Read { .. }),
        "{error}"
    );

    let open = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true");
    database.tell_server(&open).await;
    let written = kept.await.unwrap().unwrap();
    assert!(matches!(&written, Appended::New(record) if record.sequence == 2));
    wait_for(&log, |health| *health == Health::Durable).await;
    append_some(&log, &session("s"), 1).await;
    let told = tokio::time::timeout(LIMIT, async {
        let mut told = Vec::new();
        while told.len() < 3 {
            told.push(subscription.next().await.unwrap().sequence);
        }
        told
    });
    assert_eq!(told.await.expect("the subscription goes on"), [2, 3, 4]);
    // The note of the trouble is among them.
    let note = read_all(&log, &session("s")).await;
    assert!(note.iter().any(|record| {
        record.payload.get("note") == Some(&json!("event_log_not_durable"))
            && record.payload["refused"] == 1
    }));
    expect_sound(&log, &session("s"), 5).await;
    log.store().close().await.unwrap();
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn el_7_connections_that_break_at_any_moment_make_no_duplicates() {
    let database = Database::new().await;
    let log = database.open(Durability::Process).await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let log = log.clone();
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for n in 0..60 {
                    let entry = observation(writer * 1000 + n, json!({ "writer": writer, "n": n }));
                    let outcome = log.store().append(session("s"), entry, Patience::Kept);
                    match outcome.await.unwrap() {
                        Appended::New(record) => acknowledged.push(record),
                        Appended::Before(record) => panic!("{record:?}"),
                    }
                }
                acknowledged
            })
        })
        .collect();
    for _ in 0..15 {
        cut_all(&database).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    wait_for(&log, |health| *health == Health::Durable).await;
    let records = read_all(&log, &session("s")).await;
    let told = |record: &zareba_eventlog::Record| record.payload.get("writer").is_some();
    let written = records.iter().filter(|record| told(record)).count();
    assert_eq!((acknowledged.len(), written), (480, 480));
    for record in &acknowledged {
        assert_eq!(records[record.sequence as usize], *record);
    }
    expect_sound(&log, &session("s"), records.len() as u64).await;
    log.store().close().await.unwrap();
    database.remove().await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn el_1_damage_is_found_and_hides_nothing() {
    let database = Database::new().await;
    let log = database.open(Durability::Process).await;
    append_some(&log, &session("s"), 10).await;
    let text = "x".repeat(2 * 1024 * 1024);
    append(&log, &session("s"), action(json!({ "text": text }))).await;
    let client = database.client().await;
    let meddle = "UPDATE zareba.events SET payload = '{\"n\":33}' WHERE sequence = 3;
        DELETE FROM zareba.events WHERE sequence = 6; DELETE FROM zareba.blobs";
    client.batch_execute(meddle).await.unwrap();
    let verified = log.verify(&session("s")).await.unwrap();
    let found: Vec<u64> = verified
        .damage
        .iter()
        .map(|damage| damage.sequence)
        .collect();
    assert_eq!(found, [3, 6, 10], "{verified:?}");
    let blob = log.store().blob(Digest::of(text.as_bytes())).await.unwrap();
    assert_eq!(blob, None);
    log.store().close().await.unwrap();
    let log = database.open(Durability::Process).await;
    assert_eq!(log.recovery().damage.len(), 2);
    log.store().close().await.unwrap();
    database.remove().await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_bad_address_is_refused_clearly_and_without_its_password() {
    let open = async |url: &str| {
        let error = EventLog::open_database(url, Durability::Disk)
            .await
            .unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        let text = format!("{error}: {source}");
        assert!(!text.contains("secret"), "{text}");
        text
    };
    assert!(
        open("no address")
            .await
            .contains("no address of a PostgreSQL")
    );
    let tls = "postgresql://u:secret@localhost/d?sslmode=require";
    assert!(open(tls).await.contains("TLS"));
    let nobody = "postgresql://u:secret@127.0.0.1:1/d";
    assert!(open(nobody).await.contains("`d` at 127.0.0.1"));
}
