//! [`Batch`]: the records of a group, from finding their places to writing them in one statement.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use tokio_postgres::Error;
use zareba_protocol::SessionId;

use super::{link::Link, link::Values, read, write::Stop};
use crate::{
    Appended, Digest, LogError, Options, Record,
    chain::{Row, now, origin, time_text},
    payload::{Blob, Stored},
    quota,
    store::integer,
    writer::{Append, Deed, Done, Imported},
};

/// What a group changes.
pub(super) struct Batch<'a> {
    options: &'a Options,
    tips: BTreeMap<SessionId, Tip>,
    /// Keys that this group has given away.
    keys: HashMap<(SessionId, String), Arc<Record>>,
    /// Actions that have an observation, of those that the group answers.
    answered: HashSet<(SessionId, u64)>,
    /// And the observations among them that this group writes.
    answers: HashMap<(SessionId, u64), Arc<Record>>,
    rows: Vec<(i64, Row)>,
    blobs: Vec<(i64, u64, Blob)>,
}

/// Where a session's next record goes.
#[derive(Clone, Debug)]
struct Tip {
    id: i64,
    next: u64,
    last: Digest,
    bytes: u64,
    is_changed: bool,
}

impl<'a> Batch<'a> {
    /// Locks the sessions that the group writes to, always in the same order.
    pub(super) async fn gather(
        link: &Link,
        options: &'a Options,
        deeds: &[&mut Deed],
    ) -> Result<Self, Stop> {
        let mut names = BTreeSet::new();
        let mut new_ones = BTreeSet::new();
        for deed in deeds {
            match &**deed {
                Deed::Append(append) => {
                    names.insert(append.session.as_str());
                    if append.opens {
                        new_ones.insert(append.session.as_str());
                    }
                }
                Deed::Import(records) => {
                    let sessions = records.iter().map(|record| record.row.session.as_str());
                    names.extend(sessions.clone());
                    new_ones.extend(sessions);
                }
                Deed::Put { .. } | Deed::Delete(_) | Deed::Remove(_) => {}
            }
        }
        let mut batch = Self {
            options,
            tips: BTreeMap::new(),
            keys: HashMap::new(),
            answered: HashSet::new(),
            answers: HashMap::new(),
            rows: Vec::new(),
            blobs: Vec::new(),
        };
        batch
            .lock(link, &names.into_iter().collect::<Vec<_>>())
            .await?;
        let missing: Vec<&str> = (new_ones.into_iter())
            .filter(|name| !batch.tips.keys().any(|known| known.as_str() == *name))
            .collect();
        if !missing.is_empty() {
            let statement = "INSERT INTO zareba.sessions (name) SELECT unnest($1::text[])
                ON CONFLICT DO NOTHING";
            link.execute(statement, &[&missing]).await?;
            batch.lock(link, &missing).await?;
        }
        batch.look_for_answers(link, deeds).await?;
        Ok(batch)
    }

    /// Asks once for all observations of the group whether their action has one.
    async fn look_for_answers(&mut self, link: &Link, deeds: &[&mut Deed]) -> Result<(), Stop> {
        let asked = deeds.iter().filter_map(|deed| match &**deed {
            Deed::Append(append) => Some((append.session.as_str(), integer(append.answers()?))),
            _ => None,
        });
        let (names, causes): (Vec<&str>, Vec<i64>) = asked.unzip();
        if names.is_empty() {
            return Ok(());
        }
        let statement = "SELECT asked.name, asked.cause
            FROM unnest($1::text[], $2::bigint[]) AS asked (name, cause)
            JOIN zareba.sessions ON sessions.name = asked.name
            JOIN zareba.events ON events.session = sessions.id
                AND events.cause = asked.cause AND events.kind = 'observation'";
        for row in link.query(statement, &[&names, &causes]).await? {
            if let Ok(session) = SessionId::new(row.try_get::<_, String>(0)?) {
                let cause = row.try_get::<_, i64>(1)?.unsigned_abs();
                self.answered.insert((session, cause));
            }
        }
        Ok(())
    }

    async fn lock(&mut self, link: &Link, names: &[&str]) -> Result<(), Stop> {
        if names.is_empty() {
            return Ok(());
        }
        let statement = "SELECT id, name, next, last, bytes FROM zareba.sessions
            WHERE name = ANY($1) ORDER BY name COLLATE \"C\" FOR UPDATE";
        for row in link.query(statement, &[&names]).await? {
            let name: String = row.try_get(1)?;
            let Ok(session) = SessionId::new(name) else {
                continue;
            };
            let last: String = row.try_get(3)?;
            let last = match Digest::from_hex(&last) {
                Some(last) => last,
                None if last.is_empty() => origin(&session),
                None => {
                    let reason = format!("the last digest of `{session}` is no digest");
                    return Err(Stop::Senseless(reason));
                }
            };
            let tip = Tip {
                id: row.try_get(0)?,
                next: row.try_get::<_, i64>(2)?.unsigned_abs(),
                last,
                bytes: row.try_get::<_, i64>(4)?.unsigned_abs(),
                is_changed: false,
            };
            self.tips.insert(session, tip);
        }
        Ok(())
    }

    /// Gives each entry its number, or says why it gets none.
    pub(super) async fn place(
        &mut self,
        link: &Link,
        deeds: &mut [&mut Deed],
        outcomes: &mut [Option<Result<Done, LogError>>],
    ) -> Result<(), Stop> {
        for (deed, outcome) in deeds.iter_mut().zip(outcomes) {
            match &mut **deed {
                Deed::Append(append) => *outcome = Some(self.append(link, append).await?),
                Deed::Import(records) => *outcome = Some(self.import(records)?),
                Deed::Put { .. } | Deed::Delete(_) | Deed::Remove(_) => {}
            }
        }
        Ok(())
    }

    async fn append(
        &mut self,
        link: &Link,
        append: &mut Append,
    ) -> Result<Result<Done, LogError>, Stop> {
        match self.before(link, append).await? {
            Err(error) => return Ok(Err(error)),
            Ok(Some(record)) => return Ok(Ok(Done::Appended(Appended::Before(record)))),
            Ok(None) => {}
        }
        let known = self.tips.get(&append.session);
        let Some(tip) = known.filter(|tip| append.opens || tip.next > 0) else {
            return Ok(Ok(Done::Nothing));
        };
        if let Err(error) = quota::check(append, tip.bytes, self.options.session_bytes_max) {
            return Ok(Err(error));
        }
        let placed = append.place(tip.next, tip.last);
        let (row, record) = placed.map_err(Stop::Senseless)?;
        append.attempt = Some((record.sequence, record.digest));
        let record = Arc::new(record);
        if let Some(key) = &append.key {
            let name = (append.session.clone(), key.as_str().to_owned());
            self.keys.insert(name, Arc::clone(&record));
        }
        if let Some(action) = append.answers() {
            let name = (append.session.clone(), action);
            self.answered.insert(name.clone());
            self.answers.insert(name, Arc::clone(&record));
        }
        self.push(row, &append.folded.blobs, record.digest);
        Ok(Ok(Done::Appended(Appended::New(record))))
    }

    /// The record that has the entry's key already, or answers the same action.
    async fn before(
        &self,
        link: &Link,
        append: &Append,
    ) -> Result<Result<Option<Arc<Record>>, LogError>, Error> {
        let session = &append.session;
        let Some(key) = &append.key else {
            return self.answer_before(link, append).await;
        };
        let key = key.as_str();
        if let Some(record) = self.keys.get(&(session.clone(), key.to_owned())) {
            return Ok(Ok(Some(Arc::clone(record))));
        }
        let values: Values<'_> = &[&session.as_str(), &key];
        let found = read::one(link, session, read::BY_KEY, values).await?;
        Ok(found.map(|record| record.map(Arc::new)))
    }

    async fn answer_before(
        &self,
        link: &Link,
        append: &Append,
    ) -> Result<Result<Option<Arc<Record>>, LogError>, Error> {
        let session = &append.session;
        let is_answered = |action: &u64| self.answered.contains(&(session.clone(), *action));
        let Some(action) = append.answers().filter(is_answered) else {
            return Ok(Ok(None));
        };
        if let Some(record) = self.answers.get(&(session.clone(), action)) {
            return Ok(Ok(Some(Arc::clone(record))));
        }
        let values: Values<'_> = &[&session.as_str(), &integer(action)];
        let found = read::one(link, session, read::ANSWER, values).await?;
        Ok(found.map(|record| record.map(Arc::new)))
    }

    /// All of it or nothing: it is looked at whole before any of it is taken.
    fn import(&mut self, records: &[Imported]) -> Result<Result<Done, LogError>, Stop> {
        let mut reached: HashMap<&SessionId, (u64, Digest)> = HashMap::new();
        for Imported { line, row, .. } in records {
            let tip = self.tips.get(&row.session);
            let tip = tip.map_or((0, origin(&row.session)), |tip| (tip.next, tip.last));
            let (next, last) = *reached.get(&row.session).unwrap_or(&tip);
            match row.follows(next, last) {
                Ok(digest) => reached.insert(&row.session, (next + 1, digest)),
                Err(reason) => {
                    let line = *line;
                    return Ok(Err(LogError::Import { line, reason }));
                }
            };
        }
        for Imported { row, blobs, .. } in records {
            let digest = row.check().map_err(Stop::Senseless)?;
            self.push(row.clone(), blobs, digest);
        }
        Ok(Ok(Done::Nothing))
    }

    fn push(&mut self, row: Row, blobs: &[Blob], digest: Digest) {
        let Some(tip) = self.tips.get_mut(&row.session) else {
            return;
        };
        let apart: usize = blobs.iter().map(|blob| blob.bytes.len()).sum();
        for blob in blobs {
            self.blobs.push((tip.id, row.sequence, blob.clone()));
        }
        tip.next = row.sequence + 1;
        tip.last = digest;
        tip.bytes += (row.bytes() + apart) as u64;
        tip.is_changed = true;
        self.rows.push((tip.id, row));
    }

    /// Writes everything. Returns what other servers should hear.
    pub(super) async fn write(self, link: &Link) -> Result<Vec<String>, Error> {
        if self.rows.is_empty() {
            return Ok(Vec::new());
        }
        self.write_rows(link).await?;
        self.write_heads(link).await?;
        self.write_blobs(link).await?;
        let changed = self.tips.iter().filter(|(_, tip)| tip.is_changed);
        Ok(changed
            .map(|(session, tip)| format!("{session} {}", tip.next))
            .collect())
    }

    async fn write_rows(&self, link: &Link) -> Result<(), Error> {
        let statement = "INSERT INTO zareba.events
            (session, sequence, time, kind, cause, key, payload, blob, previous, digest)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[],
                $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[])";
        let rows = || self.rows.iter().map(|(_, row)| row);
        let ids: Vec<i64> = self.rows.iter().map(|(id, _)| *id).collect();
        let sequences: Vec<i64> = rows().map(|row| integer(row.sequence)).collect();
        let times: Vec<&str> = rows().map(|row| row.time.as_str()).collect();
        let kinds: Vec<&str> = rows().map(|row| row.kind.as_str()).collect();
        let causes: Vec<Option<i64>> = rows().map(|row| row.cause.map(integer)).collect();
        let keys: Vec<Option<&str>> = rows().map(|row| row.key.as_deref()).collect();
        let payloads: Vec<Option<&str>> = rows()
            .map(|row| match &row.stored {
                Stored::Inline(text) => Some(text.as_str()),
                Stored::Apart(_) => None,
            })
            .collect();
        let blobs: Vec<Option<&str>> = rows()
            .map(|row| match &row.stored {
                Stored::Inline(_) => None,
                Stored::Apart(digest) => Some(digest.as_str()),
            })
            .collect();
        let previous: Vec<&str> = rows().map(|row| row.previous.as_str()).collect();
        let digests: Vec<&str> = rows().map(|row| row.digest.as_str()).collect();
        let values: Values<'_> = &[
            &ids, &sequences, &times, &kinds, &causes, &keys, &payloads, &blobs, &previous,
            &digests,
        ];
        link.execute(statement, values).await.map(drop)
    }

    async fn write_heads(&self, link: &Link) -> Result<(), Error> {
        let statement = "UPDATE zareba.sessions AS there
            SET next = news.next, last = news.last, bytes = news.bytes, changed = $5
            FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[])
                AS news (id, next, last, bytes)
            WHERE there.id = news.id";
        let tips = || self.tips.values().filter(|tip| tip.is_changed);
        let ids: Vec<i64> = tips().map(|tip| tip.id).collect();
        let nexts: Vec<i64> = tips().map(|tip| integer(tip.next)).collect();
        let lasts: Vec<String> = tips().map(|tip| tip.last.to_string()).collect();
        let bytes: Vec<i64> = tips().map(|tip| integer(tip.bytes)).collect();
        let changed = time_text(now());
        let values: Values<'_> = &[&ids, &nexts, &lasts, &bytes, &changed];
        link.execute(statement, values).await.map(drop)
    }

    async fn write_blobs(&self, link: &Link) -> Result<(), Error> {
        // Locked until the end, so that nobody removes as unused what is about to be used.
        let insert = "INSERT INTO zareba.blobs AS there (digest, content) VALUES ($1, $2)
            ON CONFLICT (digest) DO UPDATE SET digest = there.digest";
        let using = "INSERT INTO zareba.blob_uses (digest, session, sequence)
            VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        for (id, sequence, blob) in &self.blobs {
            let digest = blob.digest.to_string();
            link.execute(insert, &[&digest, &&blob.bytes[..]]).await?;
            link.execute(using, &[&digest, id, &integer(*sequence)])
                .await?;
        }
        Ok(())
    }
}
