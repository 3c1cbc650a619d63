//! What a database must do for the log.

use std::{future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use zareba_protocol::SessionId;

use crate::{
    Digest, Document, DocumentName, Entry, Expected, LogError, Record, Recovery, Selection,
    chain::Row, verify::LostBlob, writer::Imported,
};

/// A future that a `dyn` store returns.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What an acknowledged record survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of this process, by whatever cause.
    #[default]
    Process,
    /// The end of this machine, too: every group of records is synced.
    Disk,
}

/// What becomes of an entry while the log cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It is given back with [`LogError::Full`] at once: nothing has happened yet.
    None,
    /// It waits in memory and is written when that is possible again: it tells of what has
    /// happened. Only when there is no room for waiting entries is it given back.
    Kept,
}

/// What came of an append.
#[derive(Clone, Debug, PartialEq)]
pub enum Appended {
    /// It was written.
    New(Arc<Record>),
    /// An entry with the same key, or another observation of the same action, was there already,
    /// this one; nothing was written.
    Before(Arc<Record>),
}

/// Whether what is acknowledged is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is.
    Durable,
    /// Nothing can be written now; this many entries wait in memory.
    NotDurable {
        /// Why, for people.
        reason: String,
        /// How many wait.
        waiting: usize,
    },
}

/// Keeps records and documents. Every method may be called from many tasks at once.
pub trait Store: Send + Sync {
    /// Writes an entry behind the session's last and returns once it is durable.
    fn append(
        &self,
        session: SessionId,
        entry: Entry,
        patience: Patience,
    ) -> BoxFuture<'_, Result<Appended, LogError>>;

    /// Records from a number on, at most `limit` of them, and fewer when they are large: only none
    /// at all means that there are no more. A damaged record ends a page, and is an error when it
    /// comes first; behind it one reads on with the next number.
    fn read(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Record>>, LogError>>;

    /// The record with a key.
    fn by_key(
        &self,
        session: SessionId,
        key: crate::IdempotencyKey,
    ) -> BoxFuture<'_, Result<Option<Arc<Record>>, LogError>>;

    /// The observation whose cause is the action with this number.
    fn answer(
        &self,
        session: SessionId,
        action: u64,
    ) -> BoxFuture<'_, Result<Option<Arc<Record>>, LogError>>;

    /// The numbers of actions that have no observation, in order.
    fn unanswered(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<u64>, LogError>>;

    /// The number that the next record gets, changed with every record, also by other servers.
    fn end(&self, session: SessionId) -> BoxFuture<'_, Result<watch::Receiver<u64>, LogError>>;

    /// Whose logs there are.
    fn sessions(&self) -> BoxFuture<'_, Result<Vec<SessionId>, LogError>>;

    /// Removes a session's records, and blobs that nobody else uses.
    fn remove(&self, session: SessionId) -> BoxFuture<'_, Result<(), LogError>>;

    /// Stored bytes by their digest: payloads that are too large for a record.
    fn blob(&self, digest: Digest) -> BoxFuture<'_, Result<Option<Bytes>, LogError>>;

    /// Writes a document if what is expected of it is true.
    fn put(
        &self,
        name: DocumentName,
        value: Value,
        expected: Expected,
    ) -> BoxFuture<'_, Result<Document, LogError>>;

    /// A document.
    fn get(&self, name: DocumentName) -> BoxFuture<'_, Result<Option<Document>, LogError>>;

    /// All documents of a kind, by name.
    fn list(&self, kind: &'static str) -> BoxFuture<'_, Result<Vec<Document>, LogError>>;

    /// Some documents of a kind, by name: a page of them, chosen where they are kept.
    fn select(&self, selection: Selection) -> BoxFuture<'_, Result<Vec<Document>, LogError>>;

    /// Removes a document. Removing none is no error.
    fn delete(&self, name: DocumentName) -> BoxFuture<'_, Result<(), LogError>>;

    /// Whether what is acknowledged is stored, changed whenever that changes.
    fn health(&self) -> watch::Receiver<Health>;

    /// Writes what waits and ends; every later call fails with [`LogError::Closed`].
    fn close(&self) -> BoxFuture<'_, Result<(), LogError>>;
}

/// A number as databases keep it. None of ours is ever larger.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How far a session's log reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) next: u64,
    /// The last record's digest, as stored.
    pub(crate) last: String,
}

/// What a session's log takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Whose log.
    pub session: SessionId,
    /// How many records it has.
    pub records: u64,
    /// How large its payloads are together, those that are kept apart included.
    pub bytes: u64,
    /// When its last record was written.
    pub changed: Timestamp,
}

/// What a log needs of its store beyond what others may call.
pub(crate) trait Rows: Store {
    /// Records from a number on as they are stored, unchecked; a page of them.
    fn rows(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Row>, LogError>>;

    /// How far a session's log should reach.
    fn head(&self, session: SessionId) -> BoxFuture<'_, Result<Option<Head>, LogError>>;

    /// What each session takes.
    fn usage(&self) -> BoxFuture<'_, Result<Vec<Usage>, LogError>>;

    /// Writes records as they are behind what their session has.
    fn import(&self, records: Vec<Imported>) -> BoxFuture<'_, Result<(), LogError>>;

    /// The digests of what a record keeps apart.
    fn blobs_of(
        &self,
        session: SessionId,
        sequence: u64,
    ) -> BoxFuture<'_, Result<Vec<String>, LogError>>;

    /// What a session's records keep apart and is missing or wrong.
    fn lost_blobs(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<LostBlob>, LogError>>;

    /// What was found when the log was opened.
    fn recovery(&self) -> &Recovery;
}
