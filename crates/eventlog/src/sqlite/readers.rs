//! A few connections that only read, so that readers never hold up the writer.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use crate::LogError;

/// How many read at the same time; others wait their turn.
const READERS_MAX: usize = 4;

/// Connections that are opened when they are needed and kept.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Arc::default(),
            turns: Arc::new(Semaphore::new(READERS_MAX)),
        }
    }

    /// Runs a query on a thread where it may take its time.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, LogError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| LogError::Closed)?;
        let (path, idle) = (self.path.clone(), Arc::clone(&self.idle));
        let query = move || {
            let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = kept.map_or_else(|| open(&path), Ok)?;
            let found = query(&connection)?;
            // Only a connection without trouble is used again.
            (idle.lock().unwrap_or_else(PoisonError::into_inner)).push(connection);
            drop(turn);
            Ok(found)
        };
        let outcome: rusqlite::Result<T> = tokio::task::spawn_blocking(query)
            .await
            .map_err(|_| LogError::Closed)?;
        outcome.map_err(|error| LogError::Read {
            source: Box::new(error),
        })
    }

    /// Lets nobody in any more, waits for those inside and closes what they used.
    pub(super) async fn close(&self) {
        let all = self.turns.acquire_many(READERS_MAX as u32).await;
        self.turns.close();
        drop(all);
        (self.idle.lock().unwrap_or_else(PoisonError::into_inner)).clear();
    }
}

/// A connection that cannot write.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(super::open::BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}
