//! The log in one SQLite file: one connection writes, a few read.

mod check;
#[cfg(test)]
mod doubt_tests;
mod journal;
mod open;
mod read;
mod readers;
mod remove;
mod reserve;
mod schema;
mod side;
mod step;
mod write;

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;
use zareba_protocol::SessionId;

use crate::{
    Appended, Digest, Document, DocumentName, Entry, Expected, Health, IdempotencyKey, LogError,
    Options, Patience, Record, Recovery, Selection, Store, Usage,
    chain::Row,
    page,
    store::{BoxFuture, Head, Rows},
    verify::LostBlob,
    writer::{Conductor, Imported, Shared, Shortcut, Writer, conduct},
};
use readers::{Alone, Readers};
use side::{Opened, Side};

/// A store in one file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    /// Without one it is only read.
    writer: Option<Writer>,
    readers: Readers,
    shared: Arc<Shared>,
    recovery: Recovery,
}

impl Sqlite {
    /// Opens, or makes, the file, and starts its writer. One that cannot be opened for lack of
    /// space is only read until there is some.
    pub(crate) async fn open(path: &Path, options: Options) -> Result<Self, LogError> {
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || Self::open_now(&path, options))
            .await
            .map_err(|_| LogError::Closed)?
    }

    fn open_now(path: &Path, options: Options) -> Result<Self, LogError> {
        let alone = Alone::default();
        let Opened {
            side,
            recovery,
            unopened,
        } = Side::open(path, options, &alone)?;
        let shared = Shared::new();
        if let Some(reason) = &unopened {
            shared.health.send_replace(Health::NotDurable {
                reason: reason.clone(),
                waiting: 0,
            });
        }
        let (writer, queue) = Writer::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| open::error(path, error))?;
        let post = Conductor::begin(side, Arc::clone(&shared), unopened);
        let shortcut: Arc<dyn Shortcut> = post.clone();
        std::thread::Builder::new()
            .name("event-log".to_owned())
            .spawn(move || runtime.block_on(conduct(post, queue)))
            .map_err(|error| open::error(path, error))?;
        Ok(Self {
            writer: Some(writer.with_shortcut(shortcut)),
            readers: Readers::new(path.to_owned(), alone),
            shared,
            recovery,
        })
    }

    /// Opens a file that is there, perhaps in use, and writes nothing to it.
    pub(crate) async fn open_to_read(path: &Path) -> Result<Self, LogError> {
        let readers = Readers::new(path.to_owned(), Alone::default());
        let version = readers.run(|connection| schema::meta(connection, "version"));
        let version = version.await.map_err(|error| open::error(path, error))?;
        open::check_version(path, version)?;
        Ok(Self {
            writer: None,
            readers,
            shared: Shared::new(),
            recovery: Recovery::default(),
        })
    }

    fn writer(&self) -> Result<&Writer, LogError> {
        self.writer.as_ref().ok_or(LogError::ReadOnly)
    }
}

impl Store for Sqlite {
    fn append(
        &self,
        session: SessionId,
        entry: Entry,
        patience: Patience,
    ) -> BoxFuture<'_, Result<Appended, LogError>> {
        Box::pin(async move { self.writer()?.append(session, entry, patience).await })
    }

    fn read(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Record>>, LogError>> {
        Box::pin(async move {
            let found = self
                .readers
                .run(move |connection| read::records(connection, &session, from, limit));
            found.await?.map(page::shared)
        })
    }

    fn by_key(
        &self,
        session: SessionId,
        key: IdempotencyKey,
    ) -> BoxFuture<'_, Result<Option<Arc<Record>>, LogError>> {
        Box::pin(async move {
            let found = self
                .readers
                .run(move |connection| read::by_key(connection, &session, &key));
            Ok(found.await??.map(Arc::new))
        })
    }

    fn answer(
        &self,
        session: SessionId,
        action: u64,
    ) -> BoxFuture<'_, Result<Option<Arc<Record>>, LogError>> {
        Box::pin(async move {
            let found = self
                .readers
                .run(move |connection| read::answer(connection, &session, action));
            Ok(found.await??.map(Arc::new))
        })
    }

    fn unanswered(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<u64>, LogError>> {
        Box::pin(
            self.readers
                .run(move |connection| read::unanswered(connection, &session)),
        )
    }

    fn end(&self, session: SessionId) -> BoxFuture<'_, Result<watch::Receiver<u64>, LogError>> {
        Box::pin(async move {
            // Watched first and read then, so that no record falls between the two.
            let receiver = self.shared.ends.watch(&session).ok_or(LogError::Closed)?;
            if let Some(head) = self.head(session.clone()).await? {
                self.shared.ends.advance(&session, head.next);
            }
            Ok(receiver)
        })
    }

    fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionId>, LogError>> {
        Box::pin(async move {
            let usages = self.usage().await?;
            Ok(usages.into_iter().map(|usage| usage.session).collect())
        })
    }

    fn remove(&self, session: SessionId) -> BoxFuture<'_, Result<(), LogError>> {
        Box::pin(async move { self.writer()?.remove(session).await })
    }

    fn blob(&self, digest: Digest) -> BoxFuture<'_, Result<Option<Bytes>, LogError>> {
        Box::pin(
            self.readers
                .run(move |connection| read::checked_blob(connection, digest)),
        )
    }

    fn put(
        &self,
        name: DocumentName,
        value: Value,
        expected: Expected,
    ) -> BoxFuture<'_, Result<Document, LogError>> {
        Box::pin(async move { self.writer()?.put(name, value, expected).await })
    }

    fn get(&self, name: DocumentName) -> BoxFuture<'_, Result<Option<Document>, LogError>> {
        Box::pin(
            self.readers
                .run(move |connection| read::document(connection, &name)),
        )
    }

    fn list(&self, kind: &'static str) -> BoxFuture<'_, Result<Vec<Document>, LogError>> {
        Box::pin(
            self.readers
                .run(move |connection| read::documents(connection, kind)),
        )
    }

    fn select(&self, selection: Selection) -> BoxFuture<'_, Result<Vec<Document>, LogError>> {
        Box::pin(
            self.readers
                .run(move |connection| read::selected(connection, &selection)),
        )
    }

    fn delete(&self, name: DocumentName) -> BoxFuture<'_, Result<(), LogError>> {
        Box::pin(async move { self.writer()?.delete(name).await })
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), LogError>> {
        Box::pin(async move {
            // Readers first: the last connection to go, the writer's, folds the journal in.
            self.readers.close().await;
            match &self.writer {
                Some(writer) => writer.close().await,
                None => {
                    self.shared.ends.close();
                    Ok(())
                }
            }
        })
    }
}

impl Rows for Sqlite {
    fn rows(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Row>, LogError>> {
        Box::pin(
            self.readers
                .run(move |connection| read::rows(connection, &session, from, limit)),
        )
    }

    fn head(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Head>, LogError>> {
        Box::pin(
            self.readers
                .run(move |connection| read::head(connection, &session)),
        )
    }

    fn blobs_of(
        &self,
        session: SessionId,
        sequence: u64,
    ) -> BoxFuture<'_, Result<Vec<String>, LogError>> {
        Box::pin(
            self.readers
                .run(move |connection| read::blobs_of(connection, &session, sequence)),
        )
    }

    fn lost_blobs(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<LostBlob>, LogError>> {
        Box::pin(
            self.readers
                .run(move |connection| read::lost_blobs(connection, &session)),
        )
    }

    fn usage(&self) -> BoxFuture<'_, Result<Vec<Usage>, LogError>> {
        Box::pin(self.readers.run(read::usage))
    }

    fn import(&self, records: Vec<Imported>) -> BoxFuture<'_, Result<(), LogError>> {
        Box::pin(async move { self.writer()?.import(records).await })
    }

    fn recovery(&self) -> &Recovery {
        &self.recovery
    }
}
