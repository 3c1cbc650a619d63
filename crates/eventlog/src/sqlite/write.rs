//! The writer's side of the file: groups of deeds as transactions.

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::{Connection, ErrorCode, OptionalExtension, ffi};
use zareba_protocol::SessionId;

use super::{check, open, read, remove, reserve::Reserve, schema};
use crate::{
    Appended, Digest, Document, DocumentName, Expected, LogError, Options, Record, Recovery,
    chain::{Row, now, origin, time_text},
    payload::{Blob, Stored},
    quota,
    store::integer,
    writer::{Append, Backend, Deed, Done, Failure, Imported},
};

/// How many sessions' heads are remembered; beyond that they are looked up again.
const HEADS_MAX: usize = 16 * 1024;

/// The connection that writes, and what it knows.
#[derive(Debug)]
pub(super) struct Connected {
    path: PathBuf,
    options: Options,
    connection: Connection,
    generation: i64,
    heads: HashMap<SessionId, Tip>,
    reserve: Reserve,
    /// Whether it was opened again and nothing was written since: there is no third time.
    is_reopened: bool,
    /// Held as long as this lives.
    _lock: File,
}

/// Where a session's next record goes.
#[derive(Clone, Debug)]
struct Tip {
    id: i64,
    next: u64,
    last: Digest,
    bytes: u64,
}

/// Why a transaction was given up.
enum Stop {
    Sqlite(rusqlite::Error),
    /// It was the last step that failed, so it may have worked.
    Commit(rusqlite::Error),
    /// Another server has opened the log, against the lock.
    Usurped,
    /// What is stored makes it impossible to go on.
    Senseless(String),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Connected {
    pub(super) fn open(path: &Path, options: Options) -> Result<(Self, Recovery), LogError> {
        let lock = open::lock(path)?;
        let connection = open::connect(path, options.durability)?;
        let (generation, recovery) =
            check::begin(&connection).map_err(|error| open::unusable(path, error))?;
        let connected = Self {
            reserve: Reserve::new(open::beside(path, "reserve")),
            path: path.to_owned(),
            options,
            connection,
            generation,
            heads: HashMap::new(),
            is_reopened: false,
            _lock: lock,
        };
        Ok((connected, recovery))
    }

    fn transact(&mut self, deeds: &mut [&mut Deed]) -> Result<Vec<Result<Done, LogError>>, Stop> {
        run(&self.connection, "BEGIN IMMEDIATE")?;
        if schema::meta(&self.connection, "generation")? != self.generation {
            return Err(Stop::Usurped);
        }
        let mut step = Step {
            connection: &self.connection,
            options: &self.options,
            heads: &self.heads,
            staged: HashMap::new(),
        };
        let outcomes: Vec<_> = deeds
            .iter_mut()
            .map(|deed| step.perform(deed))
            .collect::<Result<_, _>>()?;
        let staged = step.store_heads(self.generation)?;
        run(&self.connection, "COMMIT").map_err(Stop::Commit)?;
        self.is_reopened = false;
        if self.heads.len() + staged.len() > HEADS_MAX {
            self.heads.clear();
        }
        for (session, tip) in staged {
            match tip {
                Some(tip) => self.heads.insert(session, tip),
                None => self.heads.remove(&session),
            };
        }
        Ok(outcomes)
    }

    fn failure(&self, stop: Stop) -> Failure {
        let (error, is_commit) = match stop {
            Stop::Usurped => {
                let place = self.path.display();
                return Failure::Broken(format!("another server has opened {place}"));
            }
            Stop::Senseless(reason) => return Failure::Refused(reason.into()),
            Stop::Sqlite(error) => (error, false),
            Stop::Commit(error) => (error, true),
        };
        let reason = format!("{}: {error}", self.path.display());
        match error.sqlite_error() {
            Some(code) if is_full(code) => Failure::Full(reason),
            Some(code) if is_file_trouble(code) && self.is_reopened => Failure::Broken(reason),
            Some(code) if is_file_trouble(code) => Failure::Lost {
                reason,
                in_doubt: is_commit,
            },
            Some(code)
                if matches!(
                    code.code,
                    ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked
                ) =>
            {
                Failure::Full(format!("{reason}; another program holds it"))
            }
            _ => Failure::Refused(Box::new(error)),
        }
    }

    /// Opens the file anew after it failed, and makes sure of what was written last.
    fn reconnect(&mut self) -> Result<(), Failure> {
        self.heads.clear();
        self.is_reopened = true;
        let broken = |error: &dyn std::fmt::Display| {
            Failure::Broken(format!(
                "{} cannot be used any more: {error}",
                self.path.display()
            ))
        };
        self.connection = open::connect(&self.path, self.options.durability).map_err(|error| {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            broken(&source.unwrap_or_else(|| error.to_string()))
        })?;
        // A sync that failed is never repeated on the same bytes, because the kernel may have
        // forgotten them: all that is in the journal is written to the database, and synced there.
        let folded = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                row.get::<_, i64>(0)
            });
        folded.map_err(|error| broken(&error))?;
        let recovery = check::again(&self.connection, self.generation);
        let recovery = recovery.map_err(|error| broken(&error))?;
        if recovery.cut > 0 || !recovery.damage.is_empty() {
            return Err(broken(&"records that were written before are damaged"));
        }
        Ok(())
    }
}

impl Backend for Connected {
    async fn write(
        &mut self,
        deeds: &mut [&mut Deed],
    ) -> Result<Vec<Result<Done, LogError>>, Failure> {
        self.transact(deeds).map_err(|stop| {
            let failure = self.failure(stop);
            // Without a transaction there is nothing to roll back, and that is the aim.
            let _ = run(&self.connection, "ROLLBACK");
            failure
        })
    }

    async fn settle(&mut self, append: &Append) -> Result<Option<Record>, Failure> {
        let Some((sequence, digest)) = append.attempt else {
            return Ok(None);
        };
        let found = read::by_sequence(&self.connection, &append.session, sequence);
        let found = found.map_err(|error| self.failure(Stop::Sqlite(error)))?;
        Ok((found.ok().flatten()).filter(|record| record.digest == digest))
    }

    async fn reopen(&mut self) -> Result<(), Failure> {
        self.reconnect()
    }

    fn open_reserve(&mut self) -> bool {
        self.reserve.open()
    }

    fn refill_reserve(&mut self) -> Result<(), Failure> {
        self.reserve.fill()
    }

    async fn tidy(&mut self) -> bool {
        match remove::some(&self.connection) {
            Ok(has_more) => has_more,
            Err(error) => {
                tracing::warn!(%error, "removed records are still in the event log");
                let _ = run(&self.connection, "ROLLBACK");
                false
            }
        }
    }

    async fn close(&mut self) -> Result<(), LogError> {
        let closed = schema::set_meta(&self.connection, "closed", 1);
        closed.map_err(|error| LogError::Io {
            source: Box::new(error),
        })
    }
}

/// One transaction as it grows.
struct Step<'a> {
    connection: &'a Connection,
    options: &'a Options,
    heads: &'a HashMap<SessionId, Tip>,
    /// Changed heads; `None` for a session that is no more.
    staged: HashMap<SessionId, Option<Tip>>,
}

impl Step<'_> {
    fn perform(&mut self, deed: &mut Deed) -> Result<Result<Done, LogError>, Stop> {
        match deed {
            Deed::Append(append) => self.append(append),
            Deed::Put {
                name,
                value,
                text,
                expected,
            } => self.put(name, value, text, *expected),
            Deed::Delete(name) => self.delete(name),
            Deed::Remove(session) => {
                remove::hide(self.connection, session)?;
                self.staged.insert(session.clone(), None);
                Ok(Ok(Done::Nothing))
            }
            Deed::Import(records) => self.import(records),
        }
    }

    fn append(&mut self, append: &mut Append) -> Result<Result<Done, LogError>, Stop> {
        if let Some(key) = &append.key {
            match read::by_key(self.connection, &append.session, key)? {
                Err(error) => return Ok(Err(error)),
                Ok(Some(record)) => {
                    let before = Appended::Before(Arc::new(record));
                    return Ok(Ok(Done::Appended(before)));
                }
                Ok(None) => {}
            }
        }
        let tip = match self.tip(&append.session)? {
            Some(tip) => tip,
            None if append.opens => Tip::new(&append.session),
            None => return Ok(Ok(Done::Nothing)),
        };
        if let Err(error) = quota::check(append, tip.bytes, self.options.session_bytes_max) {
            return Ok(Err(error));
        }
        let placed = append.place(tip.next, tip.last);
        let (row, record) = placed.map_err(Stop::Senseless)?;
        append.attempt = Some((record.sequence, record.digest));
        self.insert(tip, &row, &append.folded.blobs, record.digest)?;
        Ok(Ok(Done::Appended(Appended::New(Arc::new(record)))))
    }

    /// All of it or nothing: it is looked at whole before the first record is written.
    fn import(&mut self, records: &[Imported]) -> Result<Result<Done, LogError>, Stop> {
        let mut reached = HashMap::new();
        for Imported { line, row, .. } in records {
            let (next, last) = match reached.get(&row.session) {
                Some(known) => *known,
                None => (self.tip(&row.session)?)
                    .map_or((0, origin(&row.session)), |tip| (tip.next, tip.last)),
            };
            match row.follows(next, last) {
                Ok(digest) => reached.insert(row.session.clone(), (next + 1, digest)),
                Err(reason) => {
                    return Ok(Err(LogError::Import {
                        line: *line,
                        reason,
                    }));
                }
            };
        }
        for Imported { row, blobs, .. } in records {
            let tip = self.tip(&row.session)?;
            let tip = tip.unwrap_or_else(|| Tip::new(&row.session));
            let digest = row.check().map_err(Stop::Senseless)?;
            self.insert(tip, row, blobs, digest)?;
        }
        Ok(Ok(Done::Nothing))
    }

    fn insert(
        &mut self,
        mut tip: Tip,
        row: &Row,
        blobs: &[Blob],
        digest: Digest,
    ) -> rusqlite::Result<()> {
        if tip.id == 0 {
            self.connection
                .prepare_cached(
                    "INSERT INTO sessions (name, next, last, bytes, changed, generation)
                    VALUES (?1, 0, '', 0, '', 0)",
                )?
                .execute([row.session.as_str()])?;
            tip.id = self.connection.last_insert_rowid();
        }
        let (payload, blob) = match &row.stored {
            Stored::Inline(text) => (Some(text), None),
            Stored::Apart(digest) => (None, Some(digest)),
        };
        self.connection
            .prepare_cached(
                "INSERT INTO events
                (session, sequence, time, kind, cause, key, payload, blob, previous, digest)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute((
                tip.id,
                integer(row.sequence),
                &row.time,
                &row.kind,
                row.cause.map(integer),
                &row.key,
                payload,
                blob,
                &row.previous,
                &row.digest,
            ))?;
        let mut bytes = row.bytes();
        for blob in blobs {
            bytes += blob.bytes.len();
            self.insert_blob(tip.id, row.sequence, blob)?;
        }
        tip.next = row.sequence + 1;
        tip.last = digest;
        tip.bytes += bytes as u64;
        self.staged.insert(row.session.clone(), Some(tip));
        Ok(())
    }

    fn insert_blob(&self, session: i64, sequence: u64, blob: &Blob) -> rusqlite::Result<()> {
        let digest = blob.digest.to_string();
        self.connection
            .prepare_cached("INSERT OR IGNORE INTO blobs (digest, content) VALUES (?1, ?2)")?
            .execute((&digest, &blob.bytes[..]))?;
        self.connection
            .prepare_cached(
                "INSERT OR IGNORE INTO blob_uses (digest, session, sequence) VALUES (?1, ?2, ?3)",
            )?
            .execute((&digest, session, integer(sequence)))?;
        Ok(())
    }

    /// Where a session's next record goes; nothing for one without records.
    fn tip(&self, session: &SessionId) -> Result<Option<Tip>, Stop> {
        if let Some(staged) = self.staged.get(session) {
            return Ok(staged.clone());
        }
        if let Some(tip) = self.heads.get(session) {
            return Ok(Some(tip.clone()));
        }
        let found = self
            .connection
            .prepare_cached("SELECT id, next, last, bytes FROM sessions WHERE name = ?1")?
            .query_row([session.as_str()], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, i64>(1)?,
                    row.get::<_, String>(2)?,
                    row.get::<_, i64>(3)?,
                ))
            })
            .optional()?;
        let Some((id, next, last, bytes)) = found else {
            return Ok(None);
        };
        let last = Digest::from_hex(&last).ok_or_else(|| {
            Stop::Senseless(format!("the last digest of `{session}` is no digest"))
        })?;
        Ok(Some(Tip {
            id,
            next: next.unsigned_abs(),
            last,
            bytes: bytes.unsigned_abs(),
        }))
    }

    fn store_heads(self, generation: i64) -> rusqlite::Result<HashMap<SessionId, Option<Tip>>> {
        let changed = time_text(now());
        let mut statement = self.connection.prepare_cached(
            "UPDATE sessions SET next = ?2, last = ?3, bytes = ?4, changed = ?5, generation = ?6
            WHERE id = ?1",
        )?;
        for tip in self.staged.values().flatten() {
            statement.execute((
                tip.id,
                integer(tip.next),
                tip.last.to_string(),
                integer(tip.bytes),
                &changed,
                generation,
            ))?;
        }
        Ok(self.staged)
    }

    fn put(
        &self,
        name: &DocumentName,
        value: &serde_json::Value,
        text: &str,
        expected: Expected,
    ) -> Result<Result<Done, LogError>, Stop> {
        let found: Option<i64> = self
            .connection
            .prepare_cached("SELECT version FROM documents WHERE kind = ?1 AND name = ?2")?
            .query_row((name.kind, &name.name), |row| row.get(0))
            .optional()?;
        let found = found.map(i64::unsigned_abs);
        if !expected.is_met(found) {
            return Ok(Err(LogError::Conflict { name: name.clone() }));
        }
        let version = found.unwrap_or(0) + 1;
        self.connection
            .prepare_cached(
                "INSERT INTO documents (kind, name, version, value) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (kind, name) DO UPDATE SET version = ?3, value = ?4",
            )?
            .execute((name.kind, &name.name, integer(version), text))?;
        Ok(Ok(Done::Document(Document {
            name: name.clone(),
            version,
            value: value.clone(),
        })))
    }

    fn delete(&self, name: &DocumentName) -> Result<Result<Done, LogError>, Stop> {
        self.connection
            .prepare_cached("DELETE FROM documents WHERE kind = ?1 AND name = ?2")?
            .execute((name.kind, &name.name))?;
        Ok(Ok(Done::Nothing))
    }
}

impl Tip {
    fn new(session: &SessionId) -> Self {
        Self {
            id: 0,
            next: 0,
            last: origin(session),
            bytes: 0,
        }
    }
}

pub(super) fn run(connection: &Connection, statement: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(statement)?.execute([]).map(drop)
}

/// No space: as SQLite says it, or as growing the journal's index does.
fn is_full(error: &ffi::Error) -> bool {
    error.code == ErrorCode::DiskFull || error.extended_code == ffi::SQLITE_IOERR_SHMSIZE
}

/// The file failed, or is not what it was.
fn is_file_trouble(error: &ffi::Error) -> bool {
    use ErrorCode::{CannotOpen, DatabaseCorrupt, NotADatabase, ReadOnly, SystemIoFailure};
    matches!(
        error.code,
        SystemIoFailure | DatabaseCorrupt | NotADatabase | CannotOpen | ReadOnly
    )
}
