//! How fast it is. Says something only when built with optimisation.

use std::time::Instant;

use serde_json::json;
use zareba_eventlog::{Durability, EventLog};

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn speed() {
    for durability in [Durability::Process, Durability::Disk] {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = directory.path().join("events.db");
        let log = EventLog::open_file(&path, durability).await.unwrap();
        lone(&log, durability).await;
        many(&log, durability).await;
        log.store().close().await.unwrap();
    }
}

async fn lone(log: &EventLog, durability: Durability) {
    let mut times: Vec<_> = Vec::new();
    for _ in 0..3000 {
        let entry = action(json!({ "text": "x".repeat(500) }));
        let started = Instant::now();
        append(log, &session("lone"), entry).await;
        times.push(started.elapsed());
    }
    times.sort();
    println!(
        "{durability:?}: alone p50 {:?} p99 {:?}",
        times[1500], times[2970]
    );
}

async fn many(log: &EventLog, durability: Durability) {
    const EACH: u64 = 1000;
    let started = Instant::now();
    let writers: Vec<_> = (0..64)
        .map(|writer| {
            let log = log.clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    let entry = action(json!({ "text": "x".repeat(500) }));
                    append(&log, &session(&format!("s-{writer}")), entry).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let rate = 64.0 * EACH as f64 / started.elapsed().as_secs_f64();
    println!("{durability:?}: 64 writers, {rate:.0} records a second");
}
