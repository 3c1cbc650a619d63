//! A few connections that only read, so that readers never hold up the writer.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};
use tokio::sync::Semaphore;

use super::{open, schema};
use crate::LogError;

/// How many read at the same time; others wait their turn.
const READERS_MAX: usize = 4;

/// Connections that are opened when they are needed and kept.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    turns: Arc<Semaphore>,
    alone: Alone,
}

/// The connection for when there is no space for the file that connections share beside a
/// database. It keeps what would be in there to itself, and is alone with the database for that.
#[derive(Clone, Debug, Default)]
pub(super) struct Alone {
    connection: Arc<Mutex<Option<Connection>>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf, alone: Alone) -> Self {
        Self {
            path,
            idle: Arc::default(),
            turns: Arc::new(Semaphore::new(READERS_MAX)),
            alone,
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
        let alone = self.alone.clone();
        let query = move || {
            let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let opened = match kept {
                Some(connection) => Some(connection),
                None => alone.or_among_others(&path)?,
            };
            let Some(connection) = opened else {
                return alone.read(&path, query);
            };
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
        drop(self.alone.lock().take());
    }
}

impl Alone {
    /// Whether there is something to read, be it alone or among others.
    pub(super) fn can_read(&self, path: &Path) -> bool {
        match self.or_among_others(path) {
            Ok(Some(connection)) => schema::meta(&connection, "version").is_ok(),
            Ok(None) => self
                .read(path, |connection| schema::meta(connection, "version"))
                .is_ok(),
            Err(_) => false,
        }
    }

    /// Does something while nobody is alone with the database.
    pub(super) fn put_aside<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut connection = self.lock();
        drop(connection.take());
        work()
    }

    /// A connection like all others, unless there is no space for those.
    fn or_among_others(&self, path: &Path) -> rusqlite::Result<Option<Connection>> {
        if self.lock().is_some() {
            return Ok(None);
        }
        match open_among_others(path) {
            Ok(connection) => Ok(Some(connection)),
            Err(error) if error.sqlite_error().is_some_and(open::is_full) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs a query, alone with the database.
    fn read<T>(
        &self,
        path: &Path,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let mut kept = self.lock();
        let connection = match kept.take() {
            Some(connection) => connection,
            None => open_alone(path)?,
        };
        let found = query(&connection)?;
        // Only a connection without trouble is used again.
        *kept = Some(connection);
        Ok(found)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        (self.connection.lock()).unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that cannot write.
fn open_among_others(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    Ok(connection)
}

/// A connection that has the index of the journal in memory, which it must be alone for, and
/// leaves the journal as it is.
fn open_alone(path: &Path) -> rusqlite::Result<Connection> {
    // The lock that it needs can only be had with the right to write.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "query_only", true)?;
    prepare(&connection)?;
    Ok(connection)
}

/// Also makes sure that it can be read: SQLite opens what it needs only then.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(open::BUSY_TIMEOUT)?;
    open::keep_statements(connection, 32)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}
