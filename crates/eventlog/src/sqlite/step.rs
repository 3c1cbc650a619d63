//! What a transaction does, deed by deed.

use std::{collections::HashMap, sync::Arc};

use rusqlite::{Connection, OptionalExtension};
use zareba_protocol::SessionId;

use super::{read, remove};
use crate::{
    Appended, Digest, Document, DocumentName, Expected, LogError, Options, Record,
    chain::{Row, now, origin, time_text},
    payload::{Blob, Stored},
    quota,
    store::integer,
    writer::{Append, Deed, Done, Imported},
};

/// Where a session's next record goes.
#[derive(Clone, Debug)]
pub(super) struct Tip {
    id: i64,
    next: u64,
    last: Digest,
    bytes: u64,
}

/// Why a transaction was given up.
pub(super) enum Stop {
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

/// One transaction as it grows.
pub(super) struct Step<'a> {
    connection: &'a Connection,
    options: &'a Options,
    heads: &'a HashMap<SessionId, Tip>,
    /// Changed heads; `None` for a session that is no more.
    staged: HashMap<SessionId, Option<Tip>>,
}

impl<'a> Step<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        options: &'a Options,
        heads: &'a HashMap<SessionId, Tip>,
    ) -> Self {
        Self {
            connection,
            options,
            heads,
            staged: HashMap::new(),
        }
    }

    /// Does one deed: what came of it, or why the transaction cannot go on.
    pub(super) fn perform(&mut self, deed: &mut Deed) -> Result<Result<Done, LogError>, Stop> {
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
        match self.before(append)? {
            Err(error) => return Ok(Err(error)),
            Ok(Some(record)) => {
                let before = Appended::Before(Arc::new(record));
                return Ok(Ok(Done::Appended(before)));
            }
            Ok(None) => {}
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

    /// The record that has the entry's key already, or answers the same action.
    fn before(&self, append: &Append) -> rusqlite::Result<Result<Option<Record>, LogError>> {
        let (connection, session) = (self.connection, &append.session);
        match (&append.key, append.answers()) {
            (Some(key), _) => read::by_key(connection, session, key),
            (None, Some(action)) => read::answer(connection, session, action),
            (None, None) => Ok(Ok(None)),
        }
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

    /// Writes down where the changed sessions' logs end now.
    pub(super) fn store_heads(
        self,
        generation: i64,
    ) -> rusqlite::Result<HashMap<SessionId, Option<Tip>>> {
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
