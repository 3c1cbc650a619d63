//! A disk that fails: `strace` lets syncs of a child fail.

use std::{path::Path, process::Command};

use serde_json::json;
use zareba_eventlog::{Appended, Digest, Health, LogError, Patience};

use crate::support::*;

/// With this the test is the process whose disk fails: the value is the path of the log.
const CHILD: &str = "ZAREBA_TEST_FAILING_DISK";
/// With this, too, whoever has an entry syncs it, and not the log's own thread.
const BY_CALLER: &str = "ZAREBA_TEST_SYNC_BY_CALLER";
const RECORDS: u64 = 40;

#[test]
#[ignore = "needs strace"]
fn el_4_after_a_failed_sync_the_file_is_opened_again_and_nothing_doubled() {
    // One sync; the sync of the reopening too; and all from the 25th on.
    for (which, is_over) in [("20", false), ("20..21", true), ("25+", true)] {
        check_with(which, is_over, "0");
    }
    // Counted for each thread: the reopening is not the caller's.
    check_with("20", false, "1");
}

fn check_with(which: &str, is_over: bool, by_caller: &str) {
    let mut builder = match std::env::var(BY_CALLER).as_deref() {
        Ok("0") => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build().unwrap();
    if let Some(path) = std::env::var_os(CHILD) {
        runtime.block_on(append_all(Path::new(&path)));
        std::process::exit(0);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let told = run_with_failing_syncs(&path, which, by_caller);
    let acknowledged: Vec<(u64, Digest)> = told
        .lines()
        .filter_map(|line| line.strip_prefix("acknowledged "))
        .map(|line| {
            let (number, digest) = line.split_once(' ').unwrap();
            (number.parse().unwrap(), Digest::from_hex(digest).unwrap())
        })
        .collect();
    if is_over {
        assert!(told.contains("refused"), "{which}: {told}");
        assert!(
            (5..RECORDS as usize).contains(&acknowledged.len()),
            "{which}: {told}"
        );
    } else {
        assert_eq!(acknowledged.len(), RECORDS as usize, "{which}: {told}");
    }
    runtime.block_on(check(&path, &acknowledged));
}

fn run_with_failing_syncs(path: &Path, which: &str, by_caller: &str) -> String {
    let name = std::thread::current().name().unwrap().to_owned();
    let inject = format!("inject=fdatasync,fsync:error=EIO:when={which}");
    let output = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=fdatasync,fsync",
            "-e",
            &inject,
        ])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture", "--include-ignored"])
        .env(CHILD, path)
        .env(BY_CALLER, by_caller)
        .output()
        .expect("strace is installed");
    String::from_utf8(output.stdout).unwrap()
}

async fn append_all(path: &Path) {
    let log = open_synced(path).await;
    for n in 0..RECORDS {
        let entry = observation(n, json!({ "n": n }));
        match log
            .store()
            .append(session("s"), entry, Patience::Kept)
            .await
        {
            Ok(Appended::New(record)) => {
                println!("acknowledged {} {}", record.sequence, record.digest);
            }
            Err(LogError::Io { source }) => {
                assert!(matches!(
                    *log.store().health().borrow(),
                    Health::NotDurable { .. }
                ));
                println!("refused {source}");
            }
            other => panic!("{other:?}"),
        }
    }
}

async fn check(path: &Path, acknowledged: &[(u64, Digest)]) {
    let log = open_synced(path).await;
    assert_eq!(log.recovery().cut, 0);
    let records = read_all(&log, &session("s")).await;
    for (number, digest) in acknowledged {
        assert_eq!(records[*number as usize].digest, *digest);
    }
    let mut told: Vec<_> = records
        .iter()
        .filter_map(|record| record.payload.get("n"))
        .collect();
    let count = told.len();
    told.dedup();
    assert_eq!(told.len(), count, "nothing is written twice");
    expect_sound(&log, &session("s"), records.len() as u64).await;
    log.store().close().await.unwrap();
}
