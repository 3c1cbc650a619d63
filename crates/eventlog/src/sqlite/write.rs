//! The writer's side of the file: groups of deeds as transactions.

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, ffi};
use zareba_protocol::SessionId;

use super::{
    check,
    journal::Journal,
    open, read, remove,
    reserve::Reserve,
    schema,
    step::{Step, Stop, Tip},
};
use crate::{
    Durability, LogError, Options, Recovery,
    writer::{Backend, Deed, Done, Failure, Prompt, Settled},
};

/// How many sessions' heads are remembered; beyond that they are looked up again.
const HEADS_MAX: usize = 16 * 1024;

/// The connection that writes, and what it knows.
#[derive(Debug)]
pub(super) struct Connected {
    path: PathBuf,
    options: Options,
    connection: Connection,
    journal: Journal,
    generation: i64,
    heads: HashMap<SessionId, Tip>,
    reserve: Reserve,
    /// Whether it was opened again and nothing was written since: there is no third time.
    is_reopened: bool,
    /// Held as long as this lives.
    _lock: Arc<File>,
}

impl Connected {
    /// Opens what is behind the lock.
    pub(super) fn open(
        path: &Path,
        options: Options,
        lock: Arc<File>,
    ) -> Result<(Self, Recovery), LogError> {
        let (connection, journal) = open::connect(path, options.durability)?;
        let (generation, recovery) =
            check::begin(&connection).map_err(|error| open::unusable(path, error))?;
        let connected = Self {
            reserve: Reserve::new(open::beside(path, "reserve")),
            path: path.to_owned(),
            options,
            connection,
            journal,
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
        let mut step = Step::new(&self.connection, &self.options, &self.heads);
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

    /// Ends a transaction that failed, and says how it did.
    fn give_up(&self, stop: Stop) -> Failure {
        let failure = self.failure(stop);
        // Without a transaction there is nothing to roll back, and that is the aim.
        let _ = run(&self.connection, "ROLLBACK");
        failure
    }

    /// Sets how long another program may hold the file before that is a failure.
    fn wait_for_others(&self, patience: Duration) {
        // Refused only when it is longer than the library's numbers.
        let _ = self.connection.busy_timeout(patience);
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
            Some(code) if open::is_full(code) => Failure::Full(reason),
            Some(code) if is_file_trouble(code) && self.is_reopened => Failure::Broken(reason),
            Some(code) if is_file_trouble(code) => Failure::Lost {
                reason,
                in_doubt: is_commit,
            },
            Some(_) if is_busy(&error) => {
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
        let connected = open::connect(&self.path, self.options.durability);
        (self.connection, self.journal) = connected.map_err(|error| {
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
        self.transact(deeds).map_err(|stop| self.give_up(stop))
    }

    async fn settle(&mut self, deed: &Deed) -> Result<Settled, Failure> {
        let found = match deed {
            Deed::Append(append) => match append.attempt {
                None => return Ok(Settled::NotWritten),
                Some((sequence, _)) => {
                    let found = read::by_sequence(&self.connection, &append.session, sequence);
                    found.map(|found| Settled::by_record(append, found))
                }
            },
            Deed::Put {
                name,
                value,
                expected,
                ..
            } => {
                let found = read::document(&self.connection, name);
                found.map(|found| Settled::by_document(value, *expected, found))
            }
            // Doing these twice is as good as once, or is refused.
            Deed::Delete(_) | Deed::Remove(_) | Deed::Import(_) => return Ok(Settled::NotWritten),
        };
        found.map_err(|error| self.failure(Stop::Sqlite(error)))
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

    fn keep_up(&mut self) {
        if self.journal.is_long() {
            self.journal.fold(&self.connection);
            // The first to write into a journal that was folded in waits for the disk, so it is us.
            if let Err(error) = schema::count_meta(&self.connection, "folds") {
                tracing::debug!(%error, "cannot begin the journal of the event log anew");
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

impl Prompt for Connected {
    fn write_now(&mut self, deed: &mut Deed) -> Result<Option<Result<Done, LogError>>, Failure> {
        self.wait_for_others(Duration::ZERO);
        let transacted = self.transact(&mut [deed]);
        self.wait_for_others(open::BUSY_TIMEOUT);
        match transacted {
            Ok(mut outcomes) => Ok(outcomes.pop()),
            Err(stop) => {
                let is_held = matches!(&stop, Stop::Sqlite(error) if is_busy(error));
                let failure = self.give_up(stop);
                if is_held { Ok(None) } else { Err(failure) }
            }
        }
    }

    fn is_behind(&self) -> bool {
        self.journal.is_long()
    }

    fn is_synced(&self) -> bool {
        self.options.durability == Durability::Disk
    }
}

pub(super) fn run(connection: &Connection, statement: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(statement)?.execute([]).map(drop)
}

/// Whether a log could not be opened because another program held it for a moment.
pub(super) fn is_held(error: &LogError) -> bool {
    let source = std::error::Error::source(error);
    let by_sqlite = source.and_then(|source| source.downcast_ref::<rusqlite::Error>());
    by_sqlite.is_some_and(is_busy)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// The file failed, or is not what it was.
fn is_file_trouble(error: &ffi::Error) -> bool {
    use ErrorCode::{CannotOpen, DatabaseCorrupt, NotADatabase, ReadOnly, SystemIoFailure};
    matches!(
        error.code,
        SystemIoFailure | DatabaseCorrupt | NotADatabase | CannotOpen | ReadOnly
    )
}
