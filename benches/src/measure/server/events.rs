//! Many writers of events at once, through the library. Beside it what the disk can promise one
//! after the other.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use serde_json::{Map, json};
use tokio::{runtime, task::JoinSet};
use zareba_eventlog::{Durability, Entry, EntryKind, EventLog, Patience};
use zareba_protocol::SessionId;

use crate::{
    floors::Sync,
    lane::Subject as _,
    quantity::Quantity,
    setting::Setting,
    stats::median,
    table::{Goal, Row},
};

const WRITERS: usize = 64;
/// About what a command with some output has.
const PAYLOAD_BYTES: usize = 500;
/// Turns of the log and its floor.
const ROUNDS: u32 = 3;
const GOAL_PER_SECOND: f64 = 20_000.0;

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let threads = runtime::Builder::new_multi_thread().enable_all().build()?;
    let scratch = &setting.program.scratch;
    let time = setting.effort.race_time();
    let mut rows = Vec::new();
    for (name, durability) in [("process", Durability::Process), ("disk", Durability::Disk)] {
        let directory = tempfile::tempdir_in(scratch)?;
        let file = directory.path().join("events.db");
        let log = threads.block_on(EventLog::open_file(&file, durability))?;
        let (mut of_log, mut of_disk) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            of_log.push(threads.block_on(write_for(&log, time))?);
            of_disk.push(sync_for(directory.path(), time / ROUNDS)?);
        }
        threads.block_on(log.store().close())?;
        rows.push(
            Row::new(
                format!("events of {WRITERS} writers, log.durability {name}"),
                Quantity::PerSecond(median(&of_log)),
            )
            .goal(Goal::AtLeast(Quantity::PerSecond(GOAL_PER_SECOND)))
            .beside("fdatasync in turn", Quantity::PerSecond(median(&of_disk))),
        );
    }
    Ok(rows)
}

/// How many events are acknowledged in a second when everybody writes without a pause.
async fn write_for(log: &EventLog, time: Duration) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let session = SessionId::new(format!("s{writer}"))?;
        let log = log.clone();
        writers.spawn(async move {
            let mut written = 0_u32;
            while start.elapsed() < time {
                let appended = log.store().append(session.clone(), entry(), Patience::None);
                appended.await?;
                written += 1;
            }
            anyhow::Ok(written)
        });
    }
    let mut events = 0.0;
    while let Some(written) = writers.join_next().await {
        events += f64::from(written.context("a writer failed")??);
    }
    Ok(events / start.elapsed().as_secs_f64())
}

fn entry() -> Entry {
    let payload = Map::from_iter([("text".to_owned(), json!("x".repeat(PAYLOAD_BYTES)))]);
    Entry {
        kind: EntryKind::Action,
        cause: None,
        key: None,
        payload,
    }
}

fn sync_for(directory: &Path, time: Duration) -> anyhow::Result<f64> {
    let mut sync = Sync::new(&directory.join("synced"))?;
    let start = Instant::now();
    let mut count = 0.0;
    while start.elapsed() < time {
        sync.once()?;
        count += 1.0;
    }
    Ok(count / start.elapsed().as_secs_f64())
}
