//! The log in a PostgreSQL database that several servers share.

mod batch;
mod link;
mod listen;
mod read;
mod readers;
mod remove;
mod schema;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::{sync::watch, task::AbortHandle};
use zareba_protocol::SessionId;

use crate::{
    Appended, Digest, Document, DocumentName, Entry, Expected, Health, IdempotencyKey, LogError,
    Options, Patience, Record, Recovery, Selection, Store, Usage,
    chain::Row,
    page,
    store::{BoxFuture, Head, Rows, integer},
    verify::{self, LostBlob},
    writer::{Conductor, Imported, Shared, Writer, conduct},
};
use link::{Address, Values, unread};
use readers::Readers;

/// A store in a database.
#[derive(Debug)]
pub(crate) struct Postgres {
    writer: Writer,
    readers: Readers,
    shared: Arc<Shared>,
    recovery: Recovery,
    listener: AbortHandle,
}

impl Postgres {
    /// Connects, makes the tables if there are none, and starts the writer.
    pub(crate) async fn open(url: &str, options: Options) -> Result<Self, LogError> {
        let address = Address::parse(url, options.durability)?;
        let backend = write::Connected::open(address.clone(), options).await?;
        let shared = Shared::new();
        let (writer, queue) = Writer::new();
        let post = Conductor::begin(backend, Arc::clone(&shared), None);
        tokio::spawn(conduct(post, queue));
        let listener = tokio::spawn(listen::listen(address.clone(), Arc::clone(&shared)));
        let mut store = Self {
            writer,
            readers: Readers::new(address),
            shared,
            recovery: Recovery::default(),
            listener: listener.abort_handle(),
        };
        store.recovery = verify::tails(&store).await?;
        Ok(store)
    }

    async fn one(
        &self,
        session: &SessionId,
        statement: &'static str,
        values: Values<'_>,
    ) -> Result<Option<Arc<Record>>, LogError> {
        let link = self.readers.lend().await?;
        let found = read::one(&link, session, statement, values).await;
        Ok(found.map_err(unread)??.map(Arc::new))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Store for Postgres {
    fn append(
        &self,
        session: SessionId,
        entry: Entry,
        patience: Patience,
    ) -> BoxFuture<'_, Result<Appended, LogError>> {
        Box::pin(self.writer.append(session, entry, patience))
    }

    fn read(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Record>>, LogError>> {
        Box::pin(async move {
            let link = self.readers.lend().await?;
            let records = read::records(&link, &session, from, limit).await?;
            Ok(page::shared(records))
        })
    }

    fn by_key(
        &self,
        session: SessionId,
        key: IdempotencyKey,
    ) -> BoxFuture<'_, Result<Option<Arc<Record>>, LogError>> {
        Box::pin(async move {
            let values: Values<'_> = &[&session.as_str(), &key.as_str()];
            self.one(&session, read::BY_KEY, values).await
        })
    }

    fn answer(
        &self,
        session: SessionId,
        action: u64,
    ) -> BoxFuture<'_, Result<Option<Arc<Record>>, LogError>> {
        Box::pin(async move {
            let values: Values<'_> = &[&session.as_str(), &integer(action)];
            self.one(&session, read::ANSWER, values).await
        })
    }

    fn unanswered(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<u64>, LogError>> {
        Box::pin(async move {
            let link = self.readers.lend().await?;
            read::unanswered(&link, &session).await.map_err(unread)
        })
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
        Box::pin(self.writer.remove(session))
    }

    fn blob(&self, digest: Digest) -> BoxFuture<'_, Result<Option<Bytes>, LogError>> {
        Box::pin(async move {
            let link = self.readers.lend().await?;
            read::checked_blob(&link, digest).await.map_err(unread)
        })
    }

    fn put(
        &self,
        name: DocumentName,
        value: Value,
        expected: Expected,
    ) -> BoxFuture<'_, Result<Document, LogError>> {
        Box::pin(self.writer.put(name, value, expected))
    }

    fn get(&self, name: DocumentName) -> BoxFuture<'_, Result<Option<Document>, LogError>> {
        Box::pin(async move {
            let link = self.readers.lend().await?;
            read::document(&link, &name).await
        })
    }

    fn list(&self, kind: &'static str) -> BoxFuture<'_, Result<Vec<Document>, LogError>> {
        Box::pin(async move {
            let link = self.readers.lend().await?;
            read::documents(&link, kind).await
        })
    }

    fn select(&self, selection: Selection) -> BoxFuture<'_, Result<Vec<Document>, LogError>> {
        Box::pin(async move {
            let link = self.readers.lend().await?;
            read::selected(&link, &selection).await
        })
    }

    fn delete(&self, name: DocumentName) -> BoxFuture<'_, Result<(), LogError>> {
        Box::pin(self.writer.delete(name))
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), LogError>> {
        Box::pin(async move {
            self.listener.abort();
            self.readers.close().await;
            self.writer.close().await
        })
    }
}

impl Rows for Postgres {
    fn rows(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Row>, LogError>> {
        Box::pin(async move {
            let link = self.readers.lend().await?;
            read::rows(&link, &session, from, limit)
                .await
                .map_err(unread)
        })
    }

    fn head(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Head>, LogError>> {
        Box::pin(async move {
            let link = self.readers.lend().await?;
            read::head(&link, &session).await.map_err(unread)
        })
    }

    fn usage(&self) -> BoxFuture<'_, Result<Vec<Usage>, LogError>> {
        Box::pin(async move {
            let link = self.readers.lend().await?;
            read::usage(&link).await.map_err(unread)
        })
    }

    fn import(&self, records: Vec<Imported>) -> BoxFuture<'_, Result<(), LogError>> {
        Box::pin(self.writer.import(records))
    }

    fn blobs_of(
        &self,
        session: SessionId,
        sequence: u64,
    ) -> BoxFuture<'_, Result<Vec<String>, LogError>> {
        Box::pin(async move {
            let link = self.readers.lend().await?;
            read::blobs_of(&link, &session, sequence)
                .await
                .map_err(unread)
        })
    }

    fn lost_blobs(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<LostBlob>, LogError>> {
        Box::pin(async move {
            let link = self.readers.lend().await?;
            read::lost_blobs(&link, &session).await.map_err(unread)
        })
    }

    fn recovery(&self) -> &Recovery {
        &self.recovery
    }
}
