//! The suite on SQLite, and what is peculiar to it.

mod damage;
mod files;
mod full;
mod io_errors;
mod journal;
mod killed;
mod shortcut;
mod speed;

use zareba_eventlog::{Durability, EventLog, Options};

use crate::suite::suite;

suite!(with_log);

async fn with_log<F: Future<Output = ()>>(case: impl FnOnce(EventLog) -> F) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.db");
    let options = Options {
        durability: Durability::Process,
        session_bytes_max: Some(8 * 1024 * 1024),
    };
    let log = EventLog::open_file_with(&path, options).await.unwrap();
    case(log.clone()).await;
    // Closed already by some cases.
    let _ = log.store().close().await;
}
