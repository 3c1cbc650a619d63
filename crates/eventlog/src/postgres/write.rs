//! The writer's side: groups of deeds as transactions that several servers can run at once.
//!
//! A session's row is locked while records go behind its last, so that its numbers have no gaps
//! whoever writes them. All records of a group travel in one statement.

use std::time::Duration;

use serde_json::Value;
use tokio_postgres::Error;

use super::{
    batch::Batch,
    link::{Address, Link, describe, failure, is_worth_another_try},
    read, remove, schema,
};
use crate::{
    Document, DocumentName, Expected, LogError, Options,
    store::integer,
    writer::{Append, Backend, Deed, Done, Failure, Settled},
};

/// The channel on which servers tell each other of records.
pub(super) const CHANNEL: &str = "zareba_log";
/// How long a group may take before the connection is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a group is tried again that got into another server's way.
const TRIES_MAX: usize = 8;

/// The connection that writes.
#[derive(Debug)]
pub(super) struct Connected {
    address: Address,
    options: Options,
    link: Link,
}

/// How far a transaction came.
pub(super) enum Stop {
    Before(Error),
    Commit(Error),
    /// What is stored makes it impossible to go on.
    Senseless(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Before(error)
    }
}

impl Connected {
    pub(super) async fn open(address: Address, options: Options) -> Result<Self, LogError> {
        let link = address.connect().await;
        let mut link = link.map_err(|error| address.error(error))?;
        let version = schema::ensure(&mut link.client).await;
        let found = version.map_err(|error| address.error(error))?;
        let known = schema::VERSION;
        if found > known {
            return Err(address.error(super::link::Unusable::Version { found, known }));
        }
        Ok(Self {
            address,
            options,
            link,
        })
    }

    async fn transact(&self, deeds: &mut [&mut Deed]) -> Result<Vec<Result<Done, LogError>>, Stop> {
        self.link.execute("BEGIN", &[]).await?;
        let mut outcomes: Vec<Option<Result<Done, LogError>>> = Vec::new();
        outcomes.resize_with(deeds.len(), || None);
        let mut batch = Batch::gather(&self.link, &self.options, deeds).await?;
        batch.place(&self.link, deeds, &mut outcomes).await?;
        let mut news = batch.write(&self.link).await?;
        for (deed, outcome) in deeds.iter().zip(&mut outcomes) {
            match deed {
                Deed::Append(_) | Deed::Import(_) => {}
                Deed::Put {
                    name,
                    value,
                    text,
                    expected,
                } => {
                    let document = |version| Document {
                        name: name.clone(),
                        version,
                        value: value.clone(),
                    };
                    let version = self.put(name, text, *expected).await?;
                    *outcome = Some(match version {
                        Some(version) => Ok(Done::Document(document(version))),
                        None => Err(LogError::Conflict { name: name.clone() }),
                    });
                }
                Deed::Delete(name) => {
                    let statement = "DELETE FROM zareba.documents WHERE kind = $1 AND name = $2";
                    (self.link.execute(statement, &[&name.kind, &name.name])).await?;
                }
                Deed::Remove(session) => {
                    remove::hide(&self.link, session).await?;
                    news.push(format!("{session} removed"));
                }
            }
        }
        if !news.is_empty() {
            let statement = "SELECT pg_notify($1, news) FROM unnest($2::text[]) AS news";
            self.link.execute(statement, &[&CHANNEL, &news]).await?;
        }
        (self.link.execute("COMMIT", &[]).await).map_err(Stop::Commit)?;
        let done = |outcome: Option<_>| outcome.unwrap_or(Ok(Done::Nothing));
        Ok(outcomes.into_iter().map(done).collect())
    }

    /// The version that the document got, if it was as expected.
    async fn put(
        &self,
        name: &DocumentName,
        text: &str,
        expected: Expected,
    ) -> Result<Option<u64>, Error> {
        let (kind, name) = (name.kind, &name.name);
        let row = match expected {
            Expected::Absent => {
                let statement = "INSERT INTO zareba.documents (kind, name, version, value)
                    VALUES ($1, $2, 1, $3) ON CONFLICT DO NOTHING RETURNING version";
                self.link.query_opt(statement, &[&kind, name, &text]).await
            }
            Expected::Version(version) => {
                let statement = "UPDATE zareba.documents SET version = version + 1, value = $3
                    WHERE kind = $1 AND name = $2 AND version = $4 RETURNING version";
                let version = integer(version);
                (self
                    .link
                    .query_opt(statement, &[&kind, name, &text, &version]))
                .await
            }
            Expected::Anything => {
                let statement = "INSERT INTO zareba.documents AS there (kind, name, version, value)
                    VALUES ($1, $2, 1, $3) ON CONFLICT (kind, name)
                    DO UPDATE SET version = there.version + 1, value = $3 RETURNING version";
                self.link.query_opt(statement, &[&kind, name, &text]).await
            }
        };
        let version = row?.map(|row| row.try_get::<_, i64>(0)).transpose()?;
        Ok(version.map(i64::unsigned_abs))
    }

    /// What became of a deed of unknown outcome. The locks wait for a transaction that the database
    /// may still be working on, so the answer is final.
    async fn find(&self, deed: &Deed) -> Result<Settled, Error> {
        match deed {
            Deed::Append(append) => match append.attempt {
                None => Ok(Settled::NotWritten),
                Some((sequence, _)) => self.find_record(append, sequence).await,
            },
            Deed::Put {
                name,
                value,
                expected,
                ..
            } => self.find_document(name, value, *expected).await,
            // Doing these twice is as good as once, or is refused.
            Deed::Delete(_) | Deed::Remove(_) | Deed::Import(_) => Ok(Settled::NotWritten),
        }
    }

    async fn find_record(&self, append: &Append, sequence: u64) -> Result<Settled, Error> {
        self.link.execute("BEGIN", &[]).await?;
        let session = append.session.as_str();
        let insert = "INSERT INTO zareba.sessions (name) VALUES ($1) ON CONFLICT DO NOTHING";
        self.link.execute(insert, &[&session]).await?;
        let lock = "SELECT id FROM zareba.sessions WHERE name = $1 FOR UPDATE";
        self.link.query(lock, &[&session]).await?;
        let values: super::link::Values<'_> = &[&session, &integer(sequence)];
        let found = read::one(&self.link, &append.session, read::BY_SEQUENCE, values).await?;
        self.link.execute("ROLLBACK", &[]).await?;
        Ok(Settled::by_record(append, found))
    }

    async fn find_document(
        &self,
        name: &DocumentName,
        value: &Value,
        expected: Expected,
    ) -> Result<Settled, Error> {
        self.link.execute("BEGIN", &[]).await?;
        let place = "INSERT INTO zareba.documents (kind, name, version, value)
            VALUES ($1, $2, 0, 'null') ON CONFLICT DO NOTHING";
        self.link.execute(place, &[&name.kind, &name.name]).await?;
        let lock = "SELECT version FROM zareba.documents WHERE kind = $1 AND name = $2 FOR UPDATE";
        self.link.query(lock, &[&name.kind, &name.name]).await?;
        let found = read::document(&self.link, name).await;
        self.link.execute("ROLLBACK", &[]).await?;
        Ok(match found {
            Ok(found) => Settled::by_document(value, expected, found),
            Err(error) => Settled::Unknowable(error),
        })
    }

    async fn roll_back(&self) {
        // On a connection that is gone there is nothing to roll back.
        let _ = self.link.client.batch_execute("ROLLBACK").await;
    }
}

impl Backend for Connected {
    async fn write(
        &mut self,
        deeds: &mut [&mut Deed],
    ) -> Result<Vec<Result<Done, LogError>>, Failure> {
        let mut tries = 1;
        loop {
            let outcome = tokio::time::timeout(WRITE_TIMEOUT, self.transact(deeds)).await;
            let stop = match outcome {
                Ok(Ok(outcomes)) => return Ok(outcomes),
                Ok(Err(stop)) => stop,
                Err(_) => {
                    self.link.cut();
                    return Err(Failure::Lost {
                        reason: "PostgreSQL does not answer".to_owned(),
                        in_doubt: true,
                    });
                }
            };
            let (error, is_commit) = match stop {
                Stop::Before(error) => (error, false),
                Stop::Commit(error) => (error, true),
                Stop::Senseless(reason) => {
                    self.roll_back().await;
                    return Err(Failure::Refused(reason.into()));
                }
            };
            self.roll_back().await;
            if !is_worth_another_try(&error) || tries >= TRIES_MAX {
                return Err(failure(error, is_commit));
            }
            tries += 1;
        }
    }

    async fn settle(&mut self, deed: &Deed) -> Result<Settled, Failure> {
        match tokio::time::timeout(WRITE_TIMEOUT, self.find(deed)).await {
            Ok(Ok(settled)) => Ok(settled),
            Ok(Err(error)) => {
                self.roll_back().await;
                Err(failure(error, false))
            }
            // It is still unknown, and the transaction must not stay open.
            Err(_) => {
                self.link.cut();
                Err(Failure::Lost {
                    reason: "PostgreSQL does not answer".to_owned(),
                    in_doubt: true,
                })
            }
        }
    }

    async fn reopen(&mut self) -> Result<(), Failure> {
        self.link.cut();
        let link = self.address.connect().await;
        self.link = link.map_err(|error| Failure::Lost {
            reason: describe(&error),
            in_doubt: false,
        })?;
        Ok(())
    }

    fn open_reserve(&mut self) -> bool {
        false
    }

    fn refill_reserve(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    async fn tidy(&mut self) -> bool {
        match remove::some(&self.link).await {
            Ok(has_more) => has_more,
            Err(error) => {
                let reason = describe(&error);
                tracing::warn!(reason, "removed records are still in the event log");
                self.roll_back().await;
                false
            }
        }
    }

    async fn close(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}
