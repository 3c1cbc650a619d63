//! Opening the file: who may read it, who writes to it, and how safely.

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig, ffi};

use super::{journal::Journal, schema};
use crate::{Durability, LogError};

/// How long a person with `sqlite3` may hold up the writer before it says so.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a file is no log that this program can use.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error(
        "it is no event log, or it is damaged; move it and the files beside it with the same \
         beginning aside, and put a copy in its place or let a new one be made"
    )]
    NoDatabase { source: rusqlite::Error },
    #[error("it has version {found}, this program knows {known}; use a newer program")]
    Version { found: i64, known: i64 },
}

/// Takes the lock beside the file, which only one process can have.
pub(super) fn lock(path: &Path) -> Result<File, LogError> {
    make_private(path).map_err(|source| error(path, source))?;
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(beside(path, "lock"))
        .map_err(|source| error(path, source))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(LogError::InUse {
            place: path.display().to_string(),
        }),
        Err(TryLockError::Error(source)) => Err(error(path, source)),
    }
}

/// The name of a file that belongs to the database.
pub(super) fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

/// Makes the directory and the file so that only this user can read them. SQLite gives its other
/// files the rights of the first.
fn make_private(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    File::open(directory)?.sync_all()
}

/// Connects, and makes the tables if there are none.
pub(super) fn connect(
    path: &Path,
    durability: Durability,
) -> Result<(Connection, Journal), LogError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection =
        Connection::open_with_flags(path, flags).map_err(|source| error(path, source))?;
    let prepared = prepare(&mut connection, durability);
    let (version, journal) = prepared.map_err(|source| unusable(path, source))?;
    check_version(path, version)?;
    Ok((connection, journal))
}

fn prepare(
    connection: &mut Connection,
    durability: Durability,
) -> rusqlite::Result<(i64, Journal)> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    keep_statements(connection, 64)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match durability {
        // Writing is enough to survive the end of this process.
        Durability::Process => "NORMAL",
        Durability::Disk => "FULL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    let journal = Journal::watch(connection)?;
    Ok((schema::ensure(connection)?, journal))
}

/// Keeps so many statements ready to be run again, with whatever values: the library would
/// otherwise look for the best way anew with each value that an index is searched for.
pub(super) fn keep_statements(connection: &Connection, count: usize) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(count);
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map(drop)
}

/// Whether a log could not be opened only because there was no space for it.
pub(super) fn is_for_space(error: &LogError) -> bool {
    let LogError::Open { source, .. } = error else {
        return false;
    };
    let by_sqlite = source.downcast_ref::<rusqlite::Error>();
    let by_system = source.downcast_ref::<io::Error>();
    by_sqlite
        .and_then(rusqlite::Error::sqlite_error)
        .is_some_and(is_full)
        || by_system.is_some_and(|error| error.kind() == io::ErrorKind::StorageFull)
}

/// No space: as SQLite says it, or as growing the journal's index does.
pub(super) fn is_full(error: &ffi::Error) -> bool {
    error.code == ErrorCode::DiskFull || error.extended_code == ffi::SQLITE_IOERR_SHMSIZE
}

/// Refuses a file of a later program.
pub(super) fn check_version(path: &Path, found: i64) -> Result<(), LogError> {
    let known = schema::VERSION;
    if found > known {
        return Err(error(path, Unusable::Version { found, known }));
    }
    Ok(())
}

/// The error for a file that cannot be opened.
pub(super) fn error(
    path: &Path,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> LogError {
    LogError::Open {
        place: path.display().to_string(),
        source: source.into(),
    }
}

/// The same for what SQLite says, with a way out.
pub(super) fn unusable(path: &Path, source: rusqlite::Error) -> LogError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, Unknown};
    match source.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase | Unknown) => {
            error(path, Unusable::NoDatabase { source })
        }
        _ => error(path, source),
    }
}
