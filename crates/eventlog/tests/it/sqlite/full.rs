//! A disk without space.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::json;
use tempfile::TempDir;
use zareba_eventlog::{Appended, EventLog, Health, LogError, Patience, Record};

use crate::support::*;

const LIMIT: Duration = Duration::from_secs(30);

/// A small file system of its own.
struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = c"size=64m,mode=700";
        mount(
            "zareba-test",
            directory.path(),
            "tmpfs",
            MountFlags::empty(),
            options,
        )
        .expect("may mount: run this as root");
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Takes all the space there is.
    fn fill(&self) {
        let mut file = File::create(self.path("filler")).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.path("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(self.directory.path(), UnmountFlags::DETACH).unwrap();
    }
}

async fn wait_for(log: &EventLog, is_right: impl FnMut(&Health) -> bool) {
    let mut health = log.store().health();
    let wait = health.wait_for(is_right);
    tokio::time::timeout(LIMIT, wait)
        .await
        .expect("no change")
        .unwrap();
}

fn new(appended: Appended) -> Arc<Record> {
    match appended {
        Appended::New(record) => record,
        Appended::Before(record) => panic!("{record:?}"),
    }
}

async fn append_kept(log: &EventLog, bytes: usize) -> Result<Appended, LogError> {
    // An action has one observation, so that each is of another.
    static ACTION: AtomicU64 = AtomicU64::new(0);
    let action = ACTION.fetch_add(1, Ordering::Relaxed);
    let entry = observation(action, json!({ "content": "x".repeat(bytes) }));
    log.store()
        .append(session("s"), entry, Patience::Kept)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root"]
async fn el_3_a_full_disk_loses_nothing_acknowledged_and_mends_itself() {
    let disk = SmallDisk::new();
    let log = open_synced(&disk.path("events.db")).await;
    append_some(&log, &session("s"), 5).await;
    append_some(&log, &session("bystander"), 1).await;
    let mut acknowledged = read_all(&log, &session("s")).await;
    disk.fill();

    let error = loop {
        let entry = action(json!({ "text": "x".repeat(4096) }));
        match try_append(&log, &session("s"), entry).await {
            Ok(appended) => acknowledged.push(new(appended)),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LogError::Full), "{error}");
    wait_for(&log, |health| matches!(health, Health::NotDurable { .. })).await;

    // What has happened is still written, into the reserve.
    acknowledged.push(new(append_kept(&log, 1000).await.unwrap()));
    let error = try_append(&log, &session("s"), action(json!({})))
        .await
        .unwrap_err();
    assert!(matches!(error, LogError::Full), "{error}");
    assert_eq!(read_all(&log, &session("s")).await, acknowledged);

    // Then it waits in memory, as far as there is room for it.
    let waiting: Vec<_> = (0..2000)
        .map(|_| {
            let log = log.clone();
            tokio::spawn(async move { append_kept(&log, 8 * 1024).await })
        })
        .collect();
    wait_for(&log, |health| {
        matches!(health, Health::NotDurable { waiting: 1024, .. })
    })
    .await;
    // Whoever came later was refused, once everybody has come.
    while waiting.iter().filter(|task| !task.is_finished()).count() > 1024 {
        tokio::task::yield_now().await;
    }
    let error = append_kept(&log, 10).await.unwrap_err();
    assert!(matches!(error, LogError::Full), "{error}");
    let page = log.store().read(session("s"), 0, 3).await.unwrap();
    assert_eq!(page, acknowledged[..3]);

    disk.make_room();
    let mut refused = 0;
    for task in waiting {
        match task.await.unwrap() {
            Ok(appended) => acknowledged.push(new(appended)),
            Err(LogError::Full) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(
        (1..976).contains(&refused),
        "the reserve took some, {refused} were refused"
    );
    wait_for(&log, |health| *health == Health::Durable).await;
    for record in &acknowledged {
        let page = log
            .store()
            .read(session("s"), record.sequence, 1)
            .await
            .unwrap();
        assert_eq!(page[0], *record);
    }
    // And the note of it.
    expect_sound(&log, &session("s"), acknowledged.len() as u64 + 1).await;
    expect_sound(&log, &session("bystander"), 1).await;
    log.store().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root"]
async fn el_3_the_failure_is_recorded_and_actions_run_again() {
    let disk = SmallDisk::new();
    let path = disk.path("events.db");
    let log = open_synced(&path).await;
    append_some(&log, &session("s"), 1).await;
    disk.fill();
    let mut written = 1;
    while try_append(
        &log,
        &session("s"),
        action(json!({ "t": "x".repeat(4096) })),
    )
    .await
    .is_ok()
    {
        written += 1;
    }
    append_kept(&log, 100).await.unwrap();
    disk.make_room();
    wait_for(&log, |health| *health == Health::Durable).await;
    let record = append(&log, &session("s"), action(json!({ "n": "again" }))).await;
    assert_eq!(record.sequence, written + 2);
    let page = log
        .store()
        .read(session("s"), written + 1, 1)
        .await
        .unwrap();
    assert_eq!(page[0].payload["note"], "event_log_not_durable");
    assert_eq!(page[0].payload["refused"], 1);
    assert_eq!(page[0].payload["kept"], 1);
    expect_sound(&log, &session("s"), written + 3).await;
    log.store().close().await.unwrap();
    let log = open_synced(&path).await;
    expect_sound(&log, &session("s"), written + 3).await;
    log.store().close().await.unwrap();
}

/// Opens a log where there is not one byte left, and expects that it can be read and comes back.
async fn expect_readable_and_back(disk: &SmallDisk, path: &Path, written: &[Arc<Record>]) {
    let log = open_synced(path).await;
    let health = log.store().health().borrow().clone();
    assert!(matches!(health, Health::NotDurable { .. }), "{health:?}");
    // By several at once, who have only one connection.
    let reading = (0..8).map(|_| {
        let log = log.clone();
        tokio::spawn(async move { read_all(&log, &session("s")).await })
    });
    for read in reading.collect::<Vec<_>>() {
        assert_eq!(read.await.unwrap(), written);
    }
    assert_eq!(log.store().sessions().await.unwrap(), [session("s")]);
    let error = try_append(&log, &session("s"), action(json!({})))
        .await
        .unwrap_err();
    assert!(matches!(error, LogError::NoSpace), "{error}");
    assert_eq!(error.class(), zareba_protocol::ErrorClass::Disconnected);
    let kept = {
        let log = log.clone();
        tokio::spawn(async move { append_kept(&log, 100).await })
    };
    wait_for(&log, |health| {
        matches!(health, Health::NotDurable { waiting: 1, .. })
    })
    .await;

    disk.make_room();
    let count = written.len() as u64;
    assert_eq!(new(kept.await.unwrap().unwrap()).sequence, count);
    wait_for(&log, |health| *health == Health::Durable).await;
    let record = append(&log, &session("s"), action(json!({ "n": "again" }))).await;
    // Behind what was kept, and the note of it.
    assert_eq!(record.sequence, count + 2);
    expect_sound(&log, &session("s"), count + 3).await;
    log.store().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root"]
async fn el_3_a_log_that_was_closed_opens_without_a_byte_of_space_to_be_read() {
    let disk = SmallDisk::new();
    let path = disk.path("events.db");
    let log = open_synced(&path).await;
    append_some(&log, &session("s"), 5).await;
    let written = read_all(&log, &session("s")).await;
    log.store().close().await.unwrap();
    drop(log);
    std::fs::remove_file(disk.path("events.db.reserve")).unwrap();
    disk.fill();
    expect_readable_and_back(&disk, &path, &written).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root"]
async fn el_3_a_log_that_was_cut_off_opens_without_a_byte_of_space_to_be_read() {
    let disk = SmallDisk::new();
    let before = disk.path("before.db");
    let log = open_synced(&before).await;
    append_some(&log, &session("s"), 5).await;
    let written = read_all(&log, &session("s")).await;
    // As a process that is killed leaves it: with a journal, and without its index.
    for suffix in ["", "-wal"] {
        let there = disk.path(&format!("events.db{suffix}"));
        std::fs::copy(disk.path(&format!("before.db{suffix}")), there).unwrap();
    }
    disk.fill();
    let path = disk.path("events.db");
    expect_readable_and_back(&disk, &path, &written).await;
    log.store().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root"]
async fn el_3_closing_on_a_full_disk_tells_what_could_not_be_written() {
    let disk = SmallDisk::new();
    let log = open_synced(&disk.path("events.db")).await;
    append_some(&log, &session("s"), 1).await;
    disk.fill();
    while log.store().health().borrow().eq(&Health::Durable) {
        let entry = action(json!({ "t": "x".repeat(4096) }));
        let _ = try_append(&log, &session("s"), entry).await;
    }
    // More than the reserve takes, and no two the same, which would be kept once.
    let waiting: Vec<_> = (0..8)
        .map(|number| {
            let log = log.clone();
            tokio::spawn(async move { append_kept(&log, 900_000 + number).await })
        })
        .collect();
    wait_for(
        &log,
        |health| matches!(health, Health::NotDurable { waiting, .. } if *waiting > 0),
    )
    .await;
    let closed = tokio::time::timeout(LIMIT, log.store().close()).await;
    let error = closed.expect("it does not end").unwrap_err();
    let LogError::Unwritten { count, .. } = error else {
        panic!("{error}");
    };
    let mut refused = 0;
    for task in waiting {
        refused += usize::from(task.await.unwrap().is_err());
    }
    // Some may have come only after it was closed.
    assert!((1..=refused).contains(&count), "{count} of {refused}");
}
