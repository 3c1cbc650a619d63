//! A process that is killed while it appends, again and again.

use std::{
    convert::Infallible,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;
use tokio::task::JoinSet;
use zareba_eventlog::{Appended, Digest, EventLog, Patience};

use crate::support::*;

/// With this the test is the process that is killed: the value is the path of the log.
const CHILD: &str = "ZAREBA_TEST_APPEND_TO";
const ROUNDS: usize = 30;

#[test]
fn el_2_el_7_nothing_acknowledged_is_lost_or_doubled_by_kill_9() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    if let Some(path) = std::env::var_os(CHILD) {
        runtime.block_on(append_until_killed(Path::new(&path)));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        acknowledged.extend(run_and_kill(&path, 20 + round * 7 % 40));
    }
    assert!(acknowledged.len() > ROUNDS * 10, "{}", acknowledged.len());
    runtime.block_on(check(&path, &acknowledged));
}

/// Runs this test as a child, and kills it after so many acknowledgements.
fn run_and_kill(path: &Path, count: usize) -> Vec<(u64, Digest)> {
    let name = std::thread::current().name().unwrap().to_owned();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture", "--test-threads=1"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = Vec::new();
    for line in output.lines() {
        let line = line.unwrap();
        if let Some(told) = line.strip_prefix("acknowledged ") {
            let (number, digest) = told.split_once(' ').unwrap();
            let digest = Digest::from_hex(digest).unwrap();
            acknowledged.push((number.parse().unwrap(), digest));
        }
        if acknowledged.len() == count {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    acknowledged
}

/// Appends with four tasks, each with keys in order and from a few before the last one on.
async fn append_until_killed(path: &Path) -> ! {
    let log = open(path).await;
    assert_eq!(log.recovery().cut, 0);
    let tasks: JoinSet<Infallible> = (0..4)
        .map(|task| {
            let log = log.clone();
            async move {
                let mut n = first_missing(&log, task).await.saturating_sub(2);
                loop {
                    let entry = keyed(&format!("{task}-{n}"), json!({ "task": task, "n": n }));
                    let appended = log.store().append(session("s"), entry, Patience::None);
                    let (Appended::New(record) | Appended::Before(record)) =
                        appended.await.unwrap();
                    let (number, digest) = (record.sequence, record.digest);
                    // One write each, so that a line is told whole or not at all.
                    let line = format!("acknowledged {number} {digest}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                    n += 1;
                }
            }
        })
        .collect();
    let ended = tasks.join_all().await;
    unreachable!("the tasks have no end: {ended:?}")
}

async fn first_missing(log: &EventLog, task: usize) -> u64 {
    let mut n = 0;
    while (log
        .store()
        .by_key(session("s"), key(&format!("{task}-{n}")))
        .await)
        .unwrap()
        .is_some()
    {
        n += 1;
    }
    n
}

async fn check(path: &Path, acknowledged: &[(u64, Digest)]) {
    let log = open(path).await;
    assert_eq!((log.recovery().checked, log.recovery().cut), (1, 0));
    let records = read_all(&log, &session("s")).await;
    for (number, digest) in acknowledged {
        assert_eq!(records[*number as usize].digest, *digest);
    }
    for task in 0..4 {
        let own: Vec<u64> = (records.iter())
            .filter(|record| record.payload["task"] == task)
            .map(|record| record.payload["n"].as_u64().unwrap())
            .collect();
        assert_eq!(own, (0..own.len() as u64).collect::<Vec<_>>());
    }
    expect_sound(&log, &session("s"), records.len() as u64).await;
    log.store().close().await.unwrap();
}
